"""The parts of a lesson file, one function each, from a table to a record."""

from __future__ import annotations

from typing import Literal, cast

from core.errors import UserError
from core.lab.experiment import KINDS
from core.lab.request import RunRequest
from core.lesson.amount import UNITS
from core.lesson.diagnosis import DIAGNOSES
from core.lesson.lesson_records import (
    MOST_CONTROLS,
    Choice,
    CommonGuess,
    Control,
    Exercise,
    InstructorNotes,
    Measure,
    MeasuredRun,
    Measurement,
    Misconception,
    Option,
    Pictures,
    PredictedOption,
    PredictionQuestion,
    Recall,
    Symbol,
    Term,
    WorkedFormula,
    WrongAnswer,
)
from core.lesson.lesson_table import LessonTable
from core.lesson.measures import CHECKS, MEASURES


def choice(table: LessonTable) -> Choice:
    """A question with two to five options, one of them right."""
    options = tuple(_option(option) for option in table.tables("options", 2, 5))
    if sum(option.right for option in options) != 1:
        table.refuse("options", "exactly one right option")
    found = Choice(table.text("question"), options)
    table.finish()
    return found


def _option(table: LessonTable) -> Option:
    option = Option(table.text("text"), table.flag("right"), table.text("explanation"))
    table.finish()
    return option


def recall(table: LessonTable) -> Recall:
    """A question from an earlier page."""
    found = Recall(table.text("lesson"), choice(table.inner("choice")))
    table.finish()
    return found


def prediction(table: LessonTable) -> PredictionQuestion:
    """What to commit to: a number between bounds, or one of some options."""
    kind = cast('Literal["number", "choice"]', table.one_of("kind", ("number", "choice")))
    number = kind == "number"
    low = table.number("low", 1e-12) if number else 1.0
    found = PredictionQuestion(
        kind=kind,
        question=table.text("question"),
        quantity=table.text("quantity"),
        unit=table.one_of("unit", UNITS) if number and table.has("unit") else "",
        low=low,
        high=table.number("high", 10 * low) if number else 1.0,
        options=() if number else tuple(_predicted(option) for option in table.tables("options", 2, 5)),
        reveal=table.text("reveal"),
    )
    table.finish()
    return found


def _predicted(table: LessonTable) -> PredictedOption:
    option = PredictedOption(table.text("id"), table.text("text"), table.number("value"))
    table.finish()
    return option


def pictures(table: LessonTable) -> Pictures:
    """Figures by name, and what to look at."""
    found = Pictures(
        table.text("base"), table.text("answer"), table.texts("look"), table.texts("answer_look")
    )
    table.finish()
    return found


def controls(table: LessonTable) -> tuple[Control, ...]:
    """One to four controls."""
    return tuple(_control(control) for control in table.tables("controls", 1, MOST_CONTROLS))


def beside(table: LessonTable) -> tuple[Control, ...]:
    """Controls of a part that this page alone has beside the template's beats."""
    return tuple(_control(control) for control in table.tables("beside", 0, MOST_CONTROLS))


def _control(table: LessonTable) -> Control:
    kinds = ("range", "choice", "switch", "part", "chips")
    kind = cast('Literal["range", "choice", "switch", "part", "chips"]', table.one_of("kind", kinds))
    ranged = kind == "range"
    control = Control(
        name=table.text("name"),
        label=table.text("label"),
        kind=kind,
        help=table.text("help"),
        default=table.value("default"),
        low=table.whole("low", 0, 10**9) if ranged else 0,
        high=table.whole("high", 1, 10**9) if ranged else 0,
        logarithmic=table.flag("logarithmic") if ranged else False,
        options=table.texts("options", 2) if kind == "choice" else (),
    )
    table.finish()
    return control


def worked(table: LessonTable) -> tuple[WorkedFormula, ...]:
    """One to three numbers with their derivation."""
    return tuple(_worked(formula) for formula in table.tables("worked", 1, 3))


def _worked(table: LessonTable) -> WorkedFormula:
    formula = WorkedFormula(
        name=table.text("name"),
        formula=table.text("formula"),
        quantity=table.text("quantity"),
        symbols=tuple(_symbol(symbol) for symbol in table.tables("symbols", 1, 8)),
        python=table.lines("python"),
        note=table.text("note", ""),
        case=table.values("case"),
        about=table.text("about", "{model_name} on {machine_name}"),
    )
    table.finish()
    return formula


def _symbol(table: LessonTable) -> Symbol:
    symbol = Symbol(*(table.text(name) for name in ("symbol", "name", "meaning", "quantity", "source")))
    table.finish()
    return symbol


def measurement(table: LessonTable) -> Measurement:
    """Runs of the lab, and the lines to show of them; or an experiment that the page itself draws."""
    experiment = table.one_of("experiment", KINDS) if table.has("experiment") else ""
    least = 0 if experiment else 1
    runs = tuple(_run(run) for run in table.tables("runs", least, 0 if experiment else 3))
    names = tuple(run.name for run in runs)
    found = Measurement(
        words=table.text("words"),
        runs=runs,
        measures=tuple(
            _measure(m, {k: n for k, (_, n) in MEASURES.items()}, names)
            for m in table.tables("measures", least, 6)
        ),
        checks=tuple(
            _measure(m, {k: n for k, (_, n) in CHECKS.items()}, names) for m in table.tables("checks", 0, 3)
        ),
        experiment=experiment,
    )
    table.finish()
    return found


def _run(table: LessonTable) -> MeasuredRun:
    name = table.text("name")
    # A prompt is one line: how a lesson file wraps it must not change its tokens.
    asked = {k: " ".join(v.split()) if isinstance(v, str) else v for k, v in table.values("request").items()}
    try:
        request = RunRequest.from_json(asked)
    except UserError as problem:
        table.refuse("request", f"a request that the lab accepts ({problem})")
    table.finish()
    return MeasuredRun(name, request)


def _measure(table: LessonTable, known: dict[str, int], runs: tuple[str, ...]) -> Measure:
    measure = Measure(table.one_of("measure", known), table.text("label"), table.texts("runs"))
    if len(measure.runs) != known[measure.measure] or not set(measure.runs) <= set(runs):
        table.refuse("runs", f"{known[measure.measure]} of {', '.join(runs)}")
    table.finish()
    return measure


def exercises(table: LessonTable, lesson: str) -> tuple[Exercise, ...]:
    """One to three exercises."""
    return tuple(_exercise(exercise, lesson) for exercise in table.tables("exercises", 1, 3))


def _exercise(table: LessonTable, lesson: str) -> Exercise:
    parameters = table.inner("parameters")
    exercise = Exercise(
        lesson=lesson,
        id=table.text("id"),
        question=table.text("question"),
        solution=table.text("solution"),
        quantity=table.text("quantity"),
        unit=table.one_of("unit", UNITS) if table.has("unit") else "",
        tolerance=table.number("tolerance", 0.001, 0.2),
        parameters={name: _drawn(parameters, name) for name in parameters.data},
        diagnoses=table.texts("diagnoses", least=0),
        wrong=tuple(_wrong(wrong) for wrong in table.tables("wrong", 0, 4)),
    )
    for name in exercise.diagnoses:
        if name not in DIAGNOSES:
            table.refuse("diagnoses", f"only {', '.join(DIAGNOSES)}, not {name!r},")
    table.finish()
    return exercise


def _drawn(table: LessonTable, name: str) -> tuple[int | float | str, ...]:
    values = table.data[name]
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(v, int | float | str) for v in values)
    ):
        table.refuse(name, "a list of numbers or texts to draw from")
    return tuple(values)


def _wrong(table: LessonTable) -> WrongAnswer:
    wrong = WrongAnswer(table.text("quantity"), table.text("says"))
    table.finish()
    return wrong


def misconceptions(table: LessonTable) -> tuple[Misconception, ...]:
    """One or two things often believed."""
    return tuple(_misconception(card) for card in table.tables("misconceptions", 1, 2))


def _misconception(table: LessonTable) -> Misconception:
    card = Misconception(
        claim=table.text("claim"),
        tempting=table.text("tempting"),
        evidence=table.text("evidence"),
        rule=table.text("rule"),
        source=table.text("source"),
        case=table.values("case"),
    )
    table.finish()
    return card


def terms(table: LessonTable) -> tuple[Term, ...]:
    """Words explained here."""
    return tuple(_term(term) for term in table.tables("terms", 1, 12))


def _term(table: LessonTable) -> Term:
    term = Term(table.text("term"), table.text("meaning"))
    table.finish()
    return term


def instructor(table: LessonTable) -> InstructorNotes:
    """Notes for whoever teaches it."""
    notes = InstructorNotes(
        aim=table.text("aim"),
        minutes=table.whole("minutes", 3, 30),
        vote=table.text("vote"),
        guesses=tuple(_guess(guess) for guess in table.tables("guesses", 2, 3)),
        stop=table.text("stop"),
        no_laptop=table.text("no_laptop"),
    )
    table.finish()
    return notes


def _guess(table: LessonTable) -> CommonGuess:
    guess = CommonGuess(table.text("guess"), table.text("question"))
    table.finish()
    return guess
