"""The axis below a picture of steps: in steps, or in the time that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.ui.svg import Drawing, Scale, ticks


@dataclass(frozen=True, slots=True)
class StepAxis:
    """Where steps lie.

    Attributes:
        edges: the beginning of each step and the end of the last, in ``unit``; one more than steps. A
            step in which nobody ran may have no width.
        unit: "steps", or for example "ms, measured".
    """

    edges: Sequence[float]
    unit: str = "steps"

    def scale(self, left: float, right: float) -> Scale:
        """From the first edge to the last, over a width."""
        return Scale(0, max(self.edges[-1], 1e-9), left, right)


def counted(steps: int) -> StepAxis:
    """All steps of the same width.

    >>> counted(3)
    StepAxis(edges=(0.0, 1.0, 2.0, 3.0), unit='steps')
    """
    return StepAxis(tuple(float(step) for step in range(steps + 1)))


def draw_axis(drawing: Drawing, axis: StepAxis, x: Scale, bottom: float) -> None:
    """Ticks, their numbers and the unit; 44 units of height below ``bottom``."""
    for value in ticks(axis.edges[-1], 6):
        drawing.path([(x(value), bottom), (x(value), bottom + 5)], "thin line-muted")
        drawing.text(x(value), bottom + 22, f"{value:g}", "fill-muted", anchor="middle")
    drawing.text(x.end, bottom + 40, axis.unit, "fill-muted", anchor="end")
