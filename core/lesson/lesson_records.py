"""The parts of a lesson, each a small record; ``core.lesson.lesson_parts`` reads them from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from core.lab.request import RunRequest
from core.lesson.amount import Value

MOST_CONTROLS: Final = 4
#: How sure one can be of a prediction, the same on every page; the last counts as certain.
CONFIDENCES: Final = ("a guess", "fairly sure", "certain")


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to choose: its text, whether it is right, and what to say to who chose it."""

    text: str
    right: bool
    explanation: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A question with options, exactly one of them right."""

    question: str
    options: tuple[Option, ...]

    @property
    def right(self) -> int:
        """The index of the right option."""
        return next(index for index, option in enumerate(self.options) if option.right)


@dataclass(frozen=True, slots=True)
class Recall:
    """A question from an earlier page, by its id."""

    lesson: str
    choice: Choice


@dataclass(frozen=True, slots=True)
class PredictedOption:
    """One option of a prediction, and the value of the quantity that it stands for."""

    id: str
    text: str
    value: float


@dataclass(frozen=True, slots=True)
class PredictionQuestion:
    """What to commit to before the answer is shown.

    Attributes:
        kind: "number", a mark on a log scale from ``low`` to ``high``, or "choice".
        quantity: the name of the true value, computed for the lesson's base case.
        unit: of the scale. options: of a choice; the true one is nearest to the quantity.
        reveal: what to say once it is committed; names in braces are filled in.
    """

    kind: Literal["number", "choice"]
    question: str
    quantity: str
    unit: str
    low: float
    high: float
    options: tuple[PredictedOption, ...]
    reveal: str


@dataclass(frozen=True, slots=True)
class Control:
    """One control of the picture.

    Attributes:
        name: a scenario's field, or a setting of the lesson's own. label, help: for people.
        kind: "range" (whole numbers from low to high), "choice", "switch", or "part": a part of the picture,
            which the visitor may also click; which parts there are follows from the case; or "chips": keys of
            the catalogue's chips with commas between.
        logarithmic: whether the range is stepped by factors. default: at the start.
        options: of a choice.
    """

    name: str
    label: str
    kind: Literal["range", "choice", "switch", "part", "chips"]
    help: str
    default: Value
    low: int = 0
    high: int = 0
    logarithmic: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of a formula: how it is written, its name in Python, its meaning, quantity and source."""

    symbol: str
    name: str
    meaning: str
    quantity: str
    source: str


@dataclass(frozen=True, slots=True)
class WorkedFormula:
    """A number with its derivation; ``core.lesson.worked`` fills it in.

    Attributes:
        name: what comes out. formula: in words and symbols. quantity: the result by name.
        symbols: of the formula. python: lines that make ``result`` of the symbols' names.
        note: what the formula leaves out. case: values that this number is asked for instead of the
            page's own; empty where it follows the page.
        about: what the numbers are of, with names in braces; the model and its chip unless given.
    """

    name: str
    formula: str
    quantity: str
    symbols: tuple[Symbol, ...]
    python: str
    note: str
    case: Mapping[str, Value]
    about: str = "{model_name} on {machine_name}"


@dataclass(frozen=True, slots=True)
class Pictures:
    """Figure names of ``core.ui``, before and after the prediction, and what to look at in each."""

    base: str
    answer: str
    look: tuple[str, ...]
    answer_look: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run in the lab, by name."""

    name: str
    request: RunRequest


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of measured beside predicted: a measure of ``core.lesson.measures``, over runs by name."""

    measure: str
    label: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What to run here, and what to compare.

    Attributes:
        words: what is done. runs, measures, checks: plain runs, and the lines to show of them.
        experiment: a kind of ``core.lab.experiment`` that the page runs instead; empty where there are runs.
    """

    words: str
    runs: tuple[MeasuredRun, ...]
    measures: tuple[Measure, ...]
    checks: tuple[Measure, ...]
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """A wrong answer with a reason: the quantity that gives it, and what to say."""

    quantity: str
    says: str


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question whose numbers are drawn from a seed.

    Attributes:
        lesson: its lesson's id. id: within the lesson. question, solution: names in braces are filled in.
        quantity, unit: the answer. tolerance: relative. parameters: name -> values to draw from.
        diagnoses: ids of ``core.lesson.diagnosis`` that apply. wrong: further wrong answers.
    """

    lesson: str
    id: str
    question: str
    solution: str
    quantity: str
    unit: str
    tolerance: float
    parameters: Mapping[str, tuple[Value, ...]]
    diagnoses: tuple[str, ...]
    wrong: tuple[WrongAnswer, ...]


@dataclass(frozen=True, slots=True)
class Misconception:
    """Something often believed: why it is tempting, what speaks against it, what holds instead.

    ``case`` are the values that its numbers are computed for, beside the lesson's base.
    """

    claim: str
    tempting: str
    evidence: str
    rule: str
    source: str
    case: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Term:
    """A word explained where it is first met."""

    term: str
    meaning: str


@dataclass(frozen=True, slots=True)
class CommonGuess:
    """A common wrong prediction, and the question that unsticks it."""

    guess: str
    question: str


@dataclass(frozen=True, slots=True)
class InstructorNotes:
    """For whoever teaches it: aim, minutes, an opening vote, wrong predictions, when to stop."""

    aim: str
    minutes: int
    vote: str
    guesses: tuple[CommonGuess, ...]
    stop: str
    no_laptop: str
