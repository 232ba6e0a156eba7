"""Measured beside predicted, for a lesson: lines made of the lab's records."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from core.lab.record import RunRecord
from core.lesson.lesson_file import lessons
from core.lesson.measures import CHECKS, MEASURES, same_text


def _examples() -> ModuleType:
    """The lab's synthetic records; tests are no package, so the file is loaded by its path."""
    path = Path(__file__).parents[1] / "lab" / "examples.py"
    spec = importlib.util.spec_from_file_location("lab_examples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def record() -> Callable[..., RunRecord]:
    made: Callable[..., RunRecord] = _examples().record
    return made


def test_every_line_of_every_lesson_can_be_made(record: Callable[..., RunRecord]) -> None:
    for lesson in lessons().values():
        records = {run.name: record(1.2) for run in lesson.measurement.runs}
        for measure in lesson.measurement.measures:
            row = MEASURES[measure.measure][0]([records[name] for name in measure.runs])
            assert row is not None
            assert row.low.value <= row.measured.value <= row.high.value
        for check in lesson.measurement.checks:
            assert CHECKS[check.measure][0]([records[name] for name in check.runs]).holds


def test_times_and_rates_turn_round(record: Callable[..., RunRecord]) -> None:
    slow = [record(2.0)]
    time, rate = MEASURES["time_per_token"][0](slow), MEASURES["answer_rate"][0](slow)
    assert time is not None
    assert rate is not None
    assert time.ratio == pytest.approx(2, rel=0.05)
    assert rate.ratio == pytest.approx(0.5, rel=0.05)
    assert rate.measured.value == pytest.approx(1000 / time.measured.value)
    prompt = MEASURES["prompt_rate"][0](slow)
    factor = MEASURES["rate_ratio"][0](slow)
    assert prompt is not None
    assert factor is not None
    assert factor.measured.value == pytest.approx(prompt.measured.value / rate.measured.value)
    assert factor.measured.unit == "×"


def test_two_runs_give_a_factor(record: Callable[..., RunRecord]) -> None:
    row = MEASURES["time_ratio"][0]([record(3.0), record(1.0)])
    assert row is not None
    assert row.predicted.value == 1
    assert row.measured.value == pytest.approx(3, rel=0.05)


def test_other_words_are_told_with_the_reason(record: Callable[..., RunRecord]) -> None:
    first, second = record(text="The tide rose."), record(text="The tide fell.")
    assert same_text([first, first]).sentence == "Both runs wrote the same 8 tokens."
    found = same_text([first, second])
    assert not found.holds
    assert "differ after 9 characters" in found.sentence
    assert "differ after 8 characters" in same_text([first, record(text="The tide")]).sentence
