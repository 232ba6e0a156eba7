"""Every lesson file holds a whole lesson, its numbers are the catalogue's, and its words are plain."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.lab.limits import Limits
from core.lab.request import RunRequest
from core.lesson.catalogue_case import catalogue_case
from core.lesson.filled import fill, names_in
from core.lesson.lesson import Lesson
from core.lesson.lesson_file import LESSONS, lessons, read_lesson
from core.lesson.lesson_records import WorkedFormula
from core.lesson.lesson_table import LessonFileError
from core.lesson.quantities import REGISTRY
from core.lesson.worked import work

ALL = list(lessons().values())
FORMULAS = [(lesson, formula) for lesson in ALL for formula in lesson.worked]
#: Cases that a page's worked numbers are also asked for: another model, chip, batch and format.
CASES: list[dict[str, Any]] = [
    {},
    {"model": "qwen2.5-7b", "accelerator": "a100-sxm-80gb", "batch": 7, "weights": "int4"},
    {"model": "llama-2-7b", "accelerator": "b200-sxm", "kv": "fp32", "input_tokens": 999},
]


def name(value: object) -> str:
    return str(getattr(value, "id", getattr(value, "name", "")))


def test_the_first_lessons_are_there() -> None:
    assert {"one_token", "prefill_and_decode", "kv_cache"} <= set(lessons())
    assert set(lessons()) == set(REGISTRY)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("lesson", "formula"), FORMULAS, ids=name)
def test_the_python_beside_a_number_gives_the_number(
    lesson: Lesson, formula: WorkedFormula, case: dict[str, Any]
) -> None:
    worked = work(formula, catalogue_case({**lesson.base, **case}), lesson.quantities)
    names: dict[str, Any] = {}
    exec(worked.python, names)  # noqa: S102 - the page offers it as a program that runs
    assert names["result"] == pytest.approx(worked.result.value, rel=1e-9)


@pytest.mark.parametrize("lesson", ALL, ids=name)
def test_a_copied_program_needs_nothing_else(lesson: Lesson, tmp_path: Path) -> None:
    for formula in lesson.worked:
        worked = work(formula, lesson.base_case, lesson.quantities)
        ran = subprocess.run(
            [sys.executable, "-I", "-c", worked.python],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert float(ran.stdout) == pytest.approx(worked.result.value, rel=1e-9)


@pytest.mark.parametrize(("lesson", "formula"), FORMULAS, ids=name)
def test_a_worked_number_shows_every_symbol_with_its_value(lesson: Lesson, formula: WorkedFormula) -> None:
    worked = work(formula, lesson.base_case, lesson.quantities)
    assert worked.note
    for symbol in worked.symbols:
        assert symbol.symbol in worked.formula
        assert symbol.amount.text in worked.substituted
        assert symbol.source
    assert not re.search(r"[a-z]{5}", worked.substituted.replace("tokens", "").replace("TFLOP", ""))


@pytest.mark.parametrize("lesson", ALL, ids=name)
def test_every_quantity_is_positive_and_has_words(lesson: Lesson) -> None:
    case = catalogue_case({**lesson.base, "mfu": 0.5})
    for key, quantity in lesson.quantities.items():
        amount = quantity(case)
        assert amount.value > 0, key
        assert amount == quantity(case)
        assert amount.text
        assert quantity.__doc__


# --- Words ----------------------------------------------------------------------------------------


def words(value: object) -> list[str]:
    """Every text in a lesson, wherever it stands."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [text for item in value for text in words(item)]
    if isinstance(value, RunRequest) or not hasattr(value, "__dataclass_fields__"):
        return []
    return [text for key in value.__dataclass_fields__ for text in words(getattr(value, key))]


def sentences(lesson: Lesson) -> list[str]:
    case = catalogue_case({**lesson.base, "mfu": 0.5, "context": 8192})
    full = [fill(text, case, lesson.quantities) for text in words(lesson) if " " in text]
    return [s for text in full for s in re.split(r"(?<=[.?:;])\s", text)]


@pytest.mark.parametrize("lesson", ALL, ids=name)
def test_words_are_plain(lesson: Lesson) -> None:
    for sentence in sentences(lesson):
        assert "!" not in sentence, sentence
        assert "—" not in sentence, sentence
        assert len(sentence.split()) <= 36, sentence
        assert not re.search(r"\b(simply|just|obviously|of course|basically|very|we|our|us)\b", sentence), (
            sentence
        )


@pytest.mark.parametrize("lesson", ALL, ids=name)
def test_abbreviations_are_explained(lesson: Lesson) -> None:
    explained = {term.term for term in lesson.terms}
    used = set(
        re.findall(r"\b(TTFT|TPOT|MFU|KV cache|KV heads?|causal mask|GiB)\b", " ".join(sentences(lesson)))
    )
    assert {word.removesuffix("s") if word.startswith("KV h") else word for word in used} - explained == set()


@pytest.mark.parametrize("lesson", ALL, ids=name)
def test_measured_quantities_are_computed_and_never_written_down(lesson: Lesson) -> None:
    """Numbers with a unit come from braces; a number in a text would go stale with the catalogue."""
    unit = r"\b\d[\d.,]*\s?(GB|GiB|TB|MB|KiB|ms|µs|TFLOP|GFLOP|tokens/s)\b"
    assert [text for text in words(lesson) if re.search(unit, text)] == []


@pytest.mark.parametrize("lesson", ALL, ids=name)
def test_runs_fit_the_lab(lesson: Lesson) -> None:
    for run in lesson.measurement.runs:
        run.request.validate()
        assert run.request.model == "smollm2-135m"
        assert run.request.max_tokens <= 32
    assert Limits().job_s >= 120


# --- Files that do not hold -----------------------------------------------------------------------


TEXT = (LESSONS / "kv_cache.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("part = 2", "part = ", "must be TOML"),
        ("part = 2", "part = 9", "a whole number from 1 to 5 at 'part'"),
        ("part = 2\n", "", "a value at 'part'"),
        ("part = 2", "part = 2\nsurprise = 1", "not the unknown name at 'surprise'"),
        ('quantity = "growth_exponent"', 'quantity = "growth"', "'growth' must be a quantity of this lesson"),
        ("{growth_factor}", "{growth}", "must be a known name"),
        ("{cache_gib}, if", "{gib}, if", "must be a known name"),
        ("right = true", "right = false", "exactly one right option"),
        ("default = 2048", "default = 99_999", "must start between 1 and 32768"),
        ("default = true", "default = 1", "must be true or false at the start"),
        ('kind = "switch"', 'kind = "knob"', "one of range, choice, switch, part, chips, not 'knob'"),
        ('symbol = "layers"', 'symbol = "levels"', "must hold its symbol 'levels'"),
        ('unit = "GB"', 'unit = "gigabytes"', "not 'gigabytes', at 'unit'"),
        ('["query_heads", ', '["magic", ', "not 'magic', at 'diagnoses'"),
        ('"qwen2.5-7b", ', '"gpt-9", ', "draws what is not in the catalogue"),
        ('model = "llama-3.1-8b"', 'model = "gpt-9"', "base must be of the catalogue"),
        ("tolerance = 0.03", "tolerance = 0.5", "a number from 0.001 to 0.2"),
        ("max_tokens = 24", "max_tokens = 9999", "a request that the lab accepts"),
        ('measure = "same_text"', 'measure = "same_mood"', "one of same_text, not 'same_mood'"),
        ('runs = ["with a cache"]', 'runs = ["with a kettle"]', "1 of without a cache, with a cache"),
        ("[measurement]", '[measurement]\nexperiment = "magic"', "one of serve-trace, speculate, quality"),
        ("[measurement]", '[measurement]\nexperiment = "speculate"', "0 to 0 tables at 'runs'"),
        ("minutes = 8", "minutes = 90", "a whole number from 3 to 30"),
        ("high = 32_768", "high = 9_000_000", "must lie within 1 and 2,000,000"),
    ],
)
def test_a_file_that_does_not_hold_a_lesson_is_refused(
    old: str, new: str, sentence: str, tmp_path: Path
) -> None:
    assert old in TEXT
    path = tmp_path / "kv_cache.toml"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(LessonFileError, match=re.escape(sentence)) as caught:
        read_lesson(path)
    assert "kv_cache" in str(caught.value)


def test_a_lesson_needs_its_module_of_quantities(tmp_path: Path) -> None:
    path = tmp_path / "another.toml"
    path.write_text(TEXT, encoding="utf-8")
    with pytest.raises(LessonFileError, match="a module of its name"):
        read_lesson(path)


def test_a_scale_must_hold_the_true_value(tmp_path: Path) -> None:
    text = (LESSONS / "prefill_and_decode.toml").read_text(encoding="utf-8")
    path = tmp_path / "prefill_and_decode.toml"
    path.write_text(text.replace("high = 10_000\nreveal", "high = 100\nreveal"), encoding="utf-8")
    with pytest.raises(LessonFileError, match="scale must contain the true value, 312 ×"):
        read_lesson(path)


def test_a_page_shows_the_visitors_scenario_with_its_controls_set() -> None:
    lesson = lessons()["kv_cache"]
    visit = catalogue_case({"model": "qwen3-8b", "batch": 4})
    case = lesson.page_case(visit.scenario, visit.model, visit.machine, {"input_tokens": 77})
    assert (case.scenario.model, case.scenario.batch, case.scenario.input_tokens) == ("qwen3-8b", 4, 77)
    assert dict(case.settings) == {"cache": True}
    assert lesson.filled("{input_tokens} {kv_heads}", {"input_tokens": 1024}) == "1,024 8"
    assert fill("{input_tokens} for {model_name}", case, lesson.quantities) == "77 for Qwen3 8B"


def test_names_in_braces() -> None:
    assert list(names_in("{a} and {b_2}, {not this} {}")) == ["a", "b_2"]
