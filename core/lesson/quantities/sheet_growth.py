"""What grew from one chip to another, line by line of their data sheets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.catalog.accelerators import accelerators
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.chip_pair import chip, memory_bytes, peak
from core.units import GB

#: An amount of the chip that a setting names.
Reader = Callable[[LessonCase, str], Amount]


@dataclass(frozen=True, slots=True)
class Growth:
    """One line of two data sheets: its name, and the amount on each chip."""

    name: str
    earlier: Amount
    later: Amount

    @property
    def factor(self) -> float:
        """The later over the earlier."""
        return self.later.value / self.earlier.value


def sheet_growth(case: LessonCase) -> list[Growth]:
    """Arithmetic and bandwidth first, then memory, link and power where both chips state them.

    Raises:
        FormatError: a chip has no arithmetic in the page's precision.
    """
    lines = [
        Growth(f"arithmetic, {case.word('precision')}", *_both(case, _peak_amount)),
        Growth("memory bandwidth", *_both(case, _bandwidth_amount)),
    ]
    for name, read in (("memory", _memory), ("link, one direction", _link), ("power", _power)):
        earlier, later = read(case, "earlier"), read(case, "later")
        if earlier is not None and later is not None:
            lines.append(Growth(name, earlier, later))
    return lines


def _both(case: LessonCase, read: Reader) -> tuple[Amount, Amount]:
    return read(case, "earlier"), read(case, "later")


def _peak_amount(case: LessonCase, setting: str) -> Amount:
    return Amount(peak(case, setting) / 1e12, "TFLOP/s")


def _bandwidth_amount(case: LessonCase, setting: str) -> Amount:
    return Amount(chip(case, setting).bandwidth_bytes_per_s / 1e12, "TB/s")


def _memory(case: LessonCase, setting: str) -> Amount | None:
    known = memory_bytes(case, setting)
    return None if known is None else Amount(known / GB, "GB")


def _link(case: LessonCase, setting: str) -> Amount | None:
    link = chip(case, setting).link
    return None if link is None else Amount(link.bandwidth_bytes_per_s / GB, "GB/s")


def _power(case: LessonCase, setting: str) -> Amount | None:
    sheet = accelerators().get(chip(case, setting).id)
    return None if sheet is None or sheet.power_w is None else Amount(sheet.power_w, "W")
