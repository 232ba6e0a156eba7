"""Three chips put in order by what a job waits for: the answer of an exercise is a number such as 213."""

from __future__ import annotations

from typing import Final

from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.chip_pair import chip, known_memory_bytes, peak_flops_per_s
from core.lesson.quantities.quantity import Quantity
from core.units import GB

_TRIO: Final = ("first", "second", "third")
#: The job of an exercise -> what decides it.
JOBS: Final[dict[str, str]] = {
    "one user chats": "bandwidth",
    "one long prompt follows another": "peak",
    "as many conversations as possible are kept in memory": "memory",
}


def _deciding(case: LessonCase, what: str) -> list[float]:
    """The value of each of the three chips by which they are put in order."""
    if what == "bandwidth":
        return [chip(case, name).bandwidth_bytes_per_s for name in _TRIO]
    if what == "peak":
        return [peak_flops_per_s(chip(case, name), "16 bits") for name in _TRIO]
    return [known_memory_bytes(case, name) for name in _TRIO]


def _order(case: LessonCase, what: str) -> Amount:
    """The chips' numbers, best first, read as one number: 213."""
    values = _deciding(case, what)
    best_first = sorted((1, 2, 3), key=lambda number: -values[number - 1])
    return Amount(float("".join(map(str, best_first))))


def order(case: LessonCase) -> Amount:
    """The three chips of the exercise in the order of what its job waits for."""
    return _order(case, JOBS[case.word("job")])


def order_by_peak(case: LessonCase) -> Amount:
    """The same by dense arithmetic."""
    return _order(case, "peak")


def order_by_bandwidth(case: LessonCase) -> Amount:
    """The same by bandwidth."""
    return _order(case, "bandwidth")


def order_by_memory(case: LessonCase) -> Amount:
    """The same by memory size."""
    return _order(case, "memory")


def worst_first(case: LessonCase) -> Amount:
    """The right order turned round."""
    return Amount(float(str(round(order(case).value))[::-1]))


def _of_trio(index: int, what: str) -> Quantity:
    units = {"peak": (1e12, "TFLOP/s"), "bandwidth": (1e12, "TB/s"), "memory": (GB, "GB")}

    def amount(case: LessonCase) -> Amount:
        size, unit = units[what]
        return Amount(_deciding(case, what)[index] / size, unit)

    amount.__name__ = f"{_TRIO[index]}_{what}"
    amount.__doc__ = f"The {what} of the {_TRIO[index]} of three chips."
    return amount


#: What an exercise on three chips may name.
ORDER_QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        order, order_by_peak, order_by_bandwidth, order_by_memory, worst_first,
        *(_of_trio(index, what) for index in range(3) for what in ("peak", "bandwidth", "memory")),
    )
}  # fmt: skip
