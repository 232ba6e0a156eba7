"""The chips that a setting of a lesson names, and what their data sheets say of them."""

from __future__ import annotations

from functools import cache
from typing import Final

from core.analytic.datasheet import machine_from
from core.analytic.machine import Machine
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import accelerator, accelerators, in_base_units
from core.errors import FormatError
from core.lesson.amount import LessonCase

#: The option of a control that stands for the chip of the visitor's scenario.
SCENARIO_CHIP: Final = "the scenario's chip"
#: How many bits a number has -> the compute formats of that size; the faster one counts.
PRECISIONS: Final[dict[str, tuple[str, ...]]] = {
    "16 bits": ("bf16", "fp16"),
    "8 bits": ("fp8", "int8"),
    "4 bits": ("fp4", "int4"),
}


@cache
def _catalogue_machine(id: str) -> Machine:
    return machine_from(accelerator(id))


def chip(case: LessonCase, setting: str) -> Machine:
    """The machine that a setting names."""
    named = case.word(setting)
    return case.machine if named == SCENARIO_CHIP else _catalogue_machine(named)


def _sheet(case: LessonCase, setting: str) -> Accelerator | None:
    """Its data sheet; None for a chip that the visitor brought."""
    return accelerators().get(chip(case, setting).id)


def peak_flops_per_s(machine: Machine, precision: str) -> float:
    """The dense peak with numbers of so many bits, the faster of the formats that have them.

    Raises:
        FormatError: the chip multiplies no such numbers.
    """
    formats = PRECISIONS[precision]
    peaks = [machine.peak_flops_per_s[name] for name in formats if name in machine.peak_flops_per_s]
    if not peaks:
        raise FormatError(
            f"{machine.name} must multiply numbers of {precision} to be compared in them, and has neither "
            f"{' nor '.join(formats)} arithmetic. Choose numbers of more bits, or another chip."
        )
    return max(peaks)


def memory_bytes(case: LessonCase, setting: str) -> float | None:
    """The memory on the box, else what software sees; None where neither is known."""
    sheet = _sheet(case, setting)
    if sheet is not None and "memory" in sheet.facts:
        return in_base_units(sheet.facts["memory"])
    return chip(case, setting).capacity_bytes


def known_memory_bytes(case: LessonCase, setting: str) -> float:
    """The same, where it must be known.

    Raises:
        FormatError: it is not.
    """
    known = memory_bytes(case, setting)
    if known is None:
        name = chip(case, setting).name
        raise FormatError(f"The memory of {name} must be known for this, and it is not. Choose another chip.")
    return known


def link_bytes_per_s(case: LessonCase, setting: str) -> float:
    """What the chip sends to its neighbours, one direction.

    Raises:
        FormatError: it has no link.
    """
    link = chip(case, setting).link
    if link is None:
        name = chip(case, setting).name
        raise FormatError(f"{name} must have a link to its neighbours for this. Choose a chip with one.")
    return link.bandwidth_bytes_per_s


def peak(case: LessonCase, setting: str) -> float:
    """Its dense peak in the precision of the page."""
    return peak_flops_per_s(chip(case, setting), case.word("precision"))
