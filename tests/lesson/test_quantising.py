"""The numbers of page 12: by hand, for every setting of its controls, and the words of its comparison."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from core.catalog.assets import FOLDER
from core.lab.quality import CACHES, WEIGHTS
from core.lab.quality_record import QualityRecord
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.quality_trial import (
    COMPARED,
    experiment_of,
    map_names,
    reference_words,
    request_of,
    row_name,
)
from core.lesson.quantities import quantising
from core.lesson.quantities.rounding_example import (
    BITS,
    SHARED,
    VIEW,
    Setting,
    block_errors,
    ends,
    error,
    grids,
    setting,
    view,
)
from core.numerics.outlier import outlier_tensor
from tests.lab.quality_example import quality_record

LESSON = lessons()["quantising"]
CASE = LESSON.base_case
NOW = setting(CASE)


def test_the_step_of_the_outliers_grid_by_hand() -> None:
    assert Setting("all numbers", 8, True, 60.0) == NOW
    assert quantising.step(CASE).value == pytest.approx(60 / 127)
    assert quantising.width(CASE).value == pytest.approx(120, rel=1e-6)
    assert quantising.levels(CASE).value == 255
    assert quantising.expected_error(CASE).value == pytest.approx((60 / 127) ** 2 / 12, rel=1e-6)


def test_one_grid_costs_thirty_times_as_much() -> None:
    assert quantising.outlier_penalty(CASE).value == pytest.approx(30, rel=0.05)
    assert 1 < quantising.plain_penalty(CASE).value < 2
    assert 10 < quantising.levels_in_use(CASE).value < 20


def test_an_asymmetric_grid_is_as_wide_as_the_numbers() -> None:
    case = CASE.having({"symmetric": False})
    values = outlier_tensor(60.0)
    assert quantising.width(case).value == pytest.approx(float(np.ptp(values)), rel=1e-6)
    assert quantising.steps(case).value == 255
    assert quantising.now_error(case).value < quantising.now_error(CASE).value


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("bits", BITS.values())
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("outlier", [0.0, 3.0, 120.0])
def test_every_setting_has_its_pictures_numbers(
    shared: str, bits: int, symmetric: bool, outlier: float
) -> None:
    now = Setting(shared, bits, symmetric, outlier)
    assert error(now) == pytest.approx(float(block_errors(now).mean()), rel=1e-6)
    least, largest = ends(now)
    assert least <= block_errors(now)[block_errors(now) > 0].min() <= block_errors(now).max() <= largest
    assert 1 <= len(grids(now)) <= 2
    assert all(grid.scale > 0 and grid.count == (2**bits - symmetric) for grid in grids(now))
    assert sum(view(now).counts) == int((np.abs(outlier_tensor(outlier)) <= VIEW).sum())


def test_finer_sharing_never_has_a_larger_error_with_an_outlier() -> None:
    for bits in BITS.values():
        errors = [error(replace(NOW, shared=shared, bits=bits)) for shared in SHARED]
        assert errors == sorted(errors, reverse=True)


def test_four_bits_in_groups_beat_eight_with_one_grid() -> None:
    """What the page says against the belief that bits alone decide."""
    assert quantising.four_bit_error(CASE).value < quantising.eight_bit_error(CASE).value
    assert quantising.plain_eight_bit_error(CASE).value < quantising.four_bit_error(CASE).value / 100


@pytest.mark.parametrize("seed", range(12))
def test_the_exercises_by_hand(seed: int) -> None:
    for exercise in LESSON.exercises:
        drawn = draw(LESSON, exercise, seed)
        case = drawn.case
        least, largest, bits = (case.number(name) for name in ("least", "largest", "asked_bits"))
        step = (least + largest) / (2**bits - 1)
        wanted = step if exercise.id == "step" else round(least / step)
        assert drawn.answer.value == pytest.approx(wanted)
        for wrong in exercise.wrong:
            away = LESSON.quantities[wrong.quantity](case).value / drawn.answer.value
            assert abs(away - 1) > 2 * exercise.tolerance


def test_what_can_be_compared_are_the_lessons_options() -> None:
    control = LESSON.beside[0]
    assert control.options == tuple(COMPARED)
    assert request_of({"compare": control.default}).weights == WEIGHTS
    assert request_of({"compare": "cache formats"}).kv == CACHES
    for name in COMPARED:
        request_of({"compare": name}).validate()
        assert experiment_of(request_of({"compare": name})).kind == LESSON.measurement.experiment


def test_the_reference_is_named_plainly() -> None:
    said = reference_words(quality_record())
    assert "not the weights that were trained" in said
    assert "4 bits in groups of 32" in said
    assert "does not show what 4 bits cost" in said
    assert "does not show" not in reference_words(replace(quality_record(), stored_as=("plain", "plain")))


def test_rows_and_maps_have_names_of_their_own() -> None:
    record = quality_record()
    names = [row_name(row) for row in record.rows]
    assert names[:2] == ["fp32, the reference", "int8 weights"]
    assert names[-1] == "fp16 cache"
    assert len(set(names)) == len(names)
    assert len(map_names(record)) == len(record.maps)
    assert math.isclose(record.rows[0].perplexity, math.exp(3.265))


def test_the_shipped_comparison_is_whole_and_of_the_pages_first_choice() -> None:
    path = FOLDER / "records" / "experiments" / "quantising.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    record = QualityRecord.from_json(kept["result"])
    first = experiment_of(request_of({"compare": LESSON.beside[0].default}))
    assert (kept["kind"], kept["payload"]) == (first.kind, first.payload)
    assert row_name(record.rows[0]) == "fp32, the reference"
    assert len(record.rows) == 1 + len(WEIGHTS) + len(CACHES)
    assert record.host.cpu
    assert not record.noisy or not any(row.step_s for row in record.rows)  # no speeds of a busy host
