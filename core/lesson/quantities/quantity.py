"""What a named quantity is: a pure function from a case to an amount."""

from __future__ import annotations

from collections.abc import Callable

from core.lesson.amount import Amount, LessonCase

#: Calls ``core.analytic`` only; the same case always gives the same amount.
Quantity = Callable[[LessonCase], Amount]
