"""Lines that count instead of timing, and lines that come from the calibration."""

from dataclasses import replace

import pytest

from core.lab.pace import Pace
from core.lesson.measures import MEASURES
from tests.lab import examples


def test_weights_are_counted_on_the_tensors_of_each_step() -> None:
    record = examples.record()
    row = MEASURES["weights_read"][0]([record])
    assert row is not None
    assert record.prediction.decode is not None
    assert row.predicted.value == record.prediction.decode.weight_bytes / 1e6
    steps = record.later_steps
    assert row.measured.value == pytest.approx(sum(step.weight_bytes for step in steps) / len(steps) / 1e6)
    assert row.low == row.high == row.measured


def test_reading_is_held_against_memory_alone() -> None:
    record = examples.record()
    small = MEASURES["smallest_read"][0]([record])
    large = MEASURES["middle_read"][0]([record])
    assert small is not None
    assert large is not None
    assert (small.predicted.text, small.measured.text) == ("30.0 GB/s", "90.0 GB/s")
    assert small.ratio == pytest.approx(3)
    assert small.about == "4.00 MB, again and again"
    assert large.ratio == pytest.approx(1)


def test_memory_is_read_before_and_after_the_run() -> None:
    record = examples.record()
    load = replace(record.load, before=Pace(24e9, 2e-6), after=Pace(27e9, 2e-6))
    row = MEASURES["memory_read"][0]([replace(record, load=load)])
    assert row is not None
    assert (row.predicted.text, row.measured.text) == ("30.0 GB/s", "27.0 GB/s")
    assert (row.low.text, row.high.text) == ("24.0 GB/s", "27.0 GB/s")


def test_a_matrix_is_followed_from_one_token_to_a_prompt() -> None:
    record = examples.record(slowness=1.0)
    rows = [
        MEASURES[name][0]([record]) for name in ("matrix_of_a_step", "matrix_of_a_prompt", "matrix_factor")
    ]
    step, prompt, factor = rows
    assert step is not None
    assert prompt is not None
    assert factor is not None
    assert factor.predicted.value == pytest.approx(prompt.predicted.value / step.predicted.value)
