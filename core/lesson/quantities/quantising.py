"""The numbers of "Quantising weights and activations": steps, errors, and what an outlier costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.rounding_example import BASE, error, found, place, setting
from core.numerics.outlier import COLUMNS, ROWS, outlier_tensor

_WHOLE: Final = "all numbers"
_FINEST: Final = "groups of 32"


# --- The tensor and its grid ----------------------------------------------------------------------


def numbers(case: LessonCase) -> Amount:
    """Numbers in the tensor, the outlier among them."""
    del case
    return Amount(ROWS * COLUMNS)


def width(case: LessonCase) -> Amount:
    """From the lowest level to the highest, of the grid that the outlier is in."""
    return Amount(step(case).value * steps(case).value)


def steps(case: LessonCase) -> Amount:
    """Steps between the lowest level and the highest: one less than there are levels."""
    scheme = setting(case).scheme()
    return Amount(2 * scheme.top if scheme.symmetric else scheme.top)


def levels(case: LessonCase) -> Amount:
    """Levels of the grid."""
    return Amount(steps(case).value + 1)


def step(case: LessonCase) -> Amount:
    """From a level to the next, of the grid that the outlier is in."""
    now = setting(case)
    return Amount(float(found(now).scale[place(now)]))


def levels_in_use(case: LessonCase) -> Amount:
    """Levels of the outlier's grid on which the other numbers of the tensor lie, where it is one for all."""
    now = setting(case)
    used = found(now, _WHOLE).levels.copy()
    values = np.abs(outlier_tensor(now.outlier))
    return Amount(len(np.unique(used[values < values.max()])))


# --- The error ------------------------------------------------------------------------------------


def expected_error(case: LessonCase) -> Amount:
    """Mean-square error of a number that may lie anywhere within a step: ``step**2 / 12``."""
    return Amount(step(case).value ** 2 / 12)


def tensor_error(case: LessonCase) -> Amount:
    """Mean-square error with one grid for all."""
    return Amount(error(setting(case), _WHOLE))


def group_error(case: LessonCase) -> Amount:
    """Mean-square error with a grid for each 128 numbers."""
    return Amount(error(setting(case), BASE))


def now_error(case: LessonCase) -> Amount:
    """Mean-square error with the grids that are set."""
    return Amount(error(setting(case)))


def outlier_penalty(case: LessonCase) -> Amount:
    """How many times as large the error is with one grid for all as with a grid for each 128."""
    return Amount(tensor_error(case).value / group_error(case).value, "×")


def plain_penalty(case: LessonCase) -> Amount:
    """The same without the outlier."""
    return outlier_penalty(case.having({"outlier": 0}))


def groups(case: LessonCase) -> Amount:
    """Groups of 128 in the tensor."""
    del case
    return Amount(ROWS * COLUMNS / 128)


def eight_bit_error(case: LessonCase) -> Amount:
    """Mean-square error of 8 bits with one grid for all."""
    return Amount(error(setting(case), _WHOLE, 8))


def four_bit_error(case: LessonCase) -> Amount:
    """Mean-square error of 4 bits with a grid for each 32 numbers."""
    return Amount(error(setting(case), _FINEST, 4))


def plain_four_bit_error(case: LessonCase) -> Amount:
    """Mean-square error of 4 bits with one grid for all, without the outlier."""
    return Amount(error(replace(setting(case), outlier=0.0), _WHOLE, 4))


def plain_eight_bit_error(case: LessonCase) -> Amount:
    """The same of 8 bits."""
    return Amount(error(replace(setting(case), outlier=0.0), _WHOLE, 8))


# --- The exercises --------------------------------------------------------------------------------


def _asked(case: LessonCase) -> tuple[float, float, int]:
    """The least and the largest number of the question, and its bits."""
    least, largest = (
        float(case.settings.get(name, value)) for name, value in (("least", 0.5), ("largest", 1))
    )
    return least, largest, int(case.settings.get("asked_bits", 4))


def asked_step(case: LessonCase) -> Amount:
    """The step of an asymmetric grid: the range over all levels but one."""
    least, largest, bits = _asked(case)
    return Amount((least + largest) / (2**bits - 1))


def asked_step_of_all_levels(case: LessonCase) -> Amount:
    """The same divided by the number of levels, which is one step too many."""
    least, largest, bits = _asked(case)
    return Amount((least + largest) / 2**bits)


def asked_symmetric_step(case: LessonCase) -> Amount:
    """The step of a symmetric grid: the largest size over half of the levels."""
    least, largest, bits = _asked(case)
    return Amount(max(least, largest) / (2 ** (bits - 1) - 1))


def asked_half_step(case: LessonCase) -> Amount:
    """The most that rounding moves a number."""
    return Amount(asked_step(case).value / 2)


def asked_top(case: LessonCase) -> Amount:
    """The highest level, counted from 0."""
    return Amount(2 ** _asked(case)[2] - 1)


def asked_zero_point(case: LessonCase) -> Amount:
    """The level that stands for 0, counted from the lowest."""
    return Amount(round(_asked(case)[0] / asked_step(case).value))


def asked_zero_from_top(case: LessonCase) -> Amount:
    """The same counted from the highest level."""
    return Amount(asked_top(case).value - asked_zero_point(case).value)


def asked_middle(case: LessonCase) -> Amount:
    """The level in the middle, where 0 would be in a symmetric grid."""
    return Amount(2 ** (_asked(case)[2] - 1))


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        numbers, width, steps, levels, step, levels_in_use, expected_error, tensor_error, group_error,
        now_error, outlier_penalty, plain_penalty, groups, eight_bit_error, four_bit_error,
        plain_four_bit_error, plain_eight_bit_error, asked_step, asked_step_of_all_levels,
        asked_symmetric_step, asked_half_step, asked_top, asked_zero_point, asked_zero_from_top, asked_middle,
    )
}  # fmt: skip
