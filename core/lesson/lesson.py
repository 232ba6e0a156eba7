"""What one page teaches, as data. The words stand in ``assets/lessons``; the numbers are computed.

A lesson names its numbers ("ceiling_ratio"); ``core.lesson.quantities`` computes them with today's
catalogue. Texts may hold such names in braces, filled in by ``core.lesson.filled``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.analytic.machine import Machine
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.lesson.amount import SCENARIO_FIELDS, LessonCase, Value
from core.lesson.catalogue_case import catalogue_case
from core.lesson.filled import fill
from core.lesson.lesson_records import (
    Choice,
    Control,
    Exercise,
    InstructorNotes,
    Measurement,
    Misconception,
    Pictures,
    PredictionQuestion,
    Recall,
    Term,
    WorkedFormula,
)
from core.lesson.quantities import REGISTRY
from core.lesson.quantities.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Lesson:
    """One page's lesson; ``id`` is the page's file stem.

    Attributes:
        base: scenario fields and settings that the prediction is asked about, whatever the visitor set.
        beside: controls of a part that this page alone has; they stand in its link like the others.
    """

    id: str
    part: int
    number: int
    title: str
    question: str
    answer: str
    base: Mapping[str, Value]
    recall: Recall | None
    prediction: PredictionQuestion
    pictures: Pictures
    controls: tuple[Control, ...]
    worked: tuple[WorkedFormula, ...]
    measurement: Measurement
    because: Choice
    exercises: tuple[Exercise, ...]
    misconceptions: tuple[Misconception, ...]
    terms: tuple[Term, ...]
    instructor: InstructorNotes
    beside: tuple[Control, ...] = ()

    @property
    def base_case(self) -> LessonCase:
        """What the prediction is asked about: the running model on the running chip."""
        return catalogue_case(self.base)

    def page_case(
        self, scenario: Scenario, model: ModelSpec, machine: Machine, controls: Mapping[str, Value]
    ) -> LessonCase:
        """What the pictures and worked numbers show: the visitor's scenario, with the page's controls set.

        Args:
            scenario: of the visit.
            model: what its model stands for.
            machine: what its accelerator stands for.
            controls: values by control name; a control that is missing has its default, or the scenario's
                value where it is a scenario's field.
        """
        own = {name: value for name, value in self.defaults.items() if name not in SCENARIO_FIELDS}
        return LessonCase(scenario, model, machine, own).having(controls)

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """The lesson's named numbers."""
        return REGISTRY[self.id]

    def filled(self, text: str, changes: Mapping[str, Value] | None = None) -> str:
        """A text with its numbers, for the base case with some values changed."""
        return fill(text, catalogue_case({**self.base, **(changes or {})}), self.quantities)

    @property
    def defaults(self) -> dict[str, Value]:
        """Each control's value at the start."""
        return {control.name: control.default for control in self.controls}

    def exercise(self, id: str) -> Exercise:
        """An exercise of this lesson, which must have it."""
        return next(exercise for exercise in self.exercises if exercise.id == id)
