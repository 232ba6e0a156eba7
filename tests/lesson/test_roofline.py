"""The numbers of page 4: against the operator table, a published log line, and laws over every model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.catalog.accelerators import accelerators
from core.catalog.models import catalogue
from core.errors import FormatError
from core.lesson.catalogue_case import catalogue_case
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.quantities import roofline
from core.lesson.quantities.roof_points import PHASES, peak_flops_per_s, roof_pass
from tests.lesson.diagnosed import is_wrong_by_a_factor

CHIPS = [key for key, chip in accelerators().items() if "bf16" in chip.peak_flops_per_s]
values: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "model": st.sampled_from(list(catalogue())),
        "accelerator": st.sampled_from(CHIPS),
        "batch": st.integers(1, 512),
        "input_tokens": st.integers(1, 20_000),
        "weights": st.sampled_from(["bf16", "int8", "int4"]),
    }
)


def test_the_corner_of_the_running_chip() -> None:
    case = catalogue_case({})
    assert roofline.ridge(case).text == "295 FLOP/B"
    assert roofline.critical_batch(case).text == "295 tokens"
    assert roofline.critical_batch(catalogue_case({"weights": "int8"})).value == pytest.approx(148, rel=0.01)
    assert roofline.sparse_peak(case).value == pytest.approx(1979, rel=0.01)
    assert roofline.matrix_flops(case).value * 1e9 == pytest.approx(2 * 28_672 * 4096)
    assert roofline.matrix_time(case).text == "70.1 µs"


def test_a_published_log_line() -> None:
    """gpt-fast, Llama 2 7B in bf16 on one A100: 104.9 tokens/s and 13.3 GB a token, 69 % of the sheet."""
    case = catalogue_case({"model": "llama-2-7b", "accelerator": "a100-sxm-80gb", "input_tokens": 200})
    share = 104.9 / (roofline.log_rate(case).value / 0.7)
    case = case.having({"reached": share})
    assert roofline.log_rate(case).value == pytest.approx(104.9)
    assert roofline.mbu(case).value == pytest.approx(68.5, abs=1.0)


def test_a_log_line_gives_the_share_that_was_reached() -> None:
    case = catalogue_case({"reached": 0.42})
    assert roofline.mbu(case).value == pytest.approx(42)
    assert roofline.mfu(case).value == pytest.approx(42)
    assert roofline.mfu_of_sparse_peak(case).value == pytest.approx(21)
    assert roofline.mbu_of_stored(case).value > 42


@given(values)
def test_points_are_the_operator_table_and_lie_under_the_roof(given: dict[str, Any]) -> None:
    case = catalogue_case(given)
    for phase in PHASES:
        found = roof_pass(case, phase)
        prompt = given["input_tokens"]
        table = operators(
            case.model,
            batch=given["batch"],
            new_tokens=prompt if phase == "prefill" else 1,
            context=prompt if phase == "prefill" else prompt + 1,
            weights=given["weights"],
            kv="bf16",
        )
        assert sum(point.flops for point in found.points) == pytest.approx(float(table.total("flops")))
        assert found.time_s == pytest.approx(float(step_time(table, case.machine)))
        shares = found.shares
        assert shares.memory + shares.arithmetic + shares.overhead == pytest.approx(1)
        bandwidth = case.machine.bandwidth_bytes_per_s
        for point in found.points:
            assert point.flops_per_s <= point.intensity * bandwidth * 1.001
        assert found.matrices.flops <= sum(point.flops for point in found.points) * 1.000001


def test_a_batch_lifts_the_matrices_and_not_attention() -> None:
    one, many = (roof_pass(catalogue_case({"batch": batch}), "decode") for batch in (1, 64))
    assert many.matrices.intensity > 50 * one.matrices.intensity
    attention = [
        next(point.intensity for point in item.points if point.name == "attention") for item in (one, many)
    ]
    assert attention[1] == pytest.approx(attention[0], rel=1e-6)
    assert roofline.attention_intensity(catalogue_case({})).value == pytest.approx(4, rel=0.02)


def test_a_chip_without_the_arithmetic_is_a_sentence() -> None:
    case = catalogue_case({"accelerator": "t4"})
    with pytest.raises(FormatError, match="has no bf16 arithmetic"):
        peak_flops_per_s(case)
    with pytest.raises(FormatError, match="has no bf16 arithmetic"):
        roof_pass(case, "decode")


@pytest.mark.parametrize(
    ("exercise", "factor", "says"),
    [
        ("mbu", 1 / 100, "as a fraction of one"),
        ("mbu", 8, "looks like bits"),
        ("mfu", 1 / 2, "divide by the dense peak"),
        ("mfu", 1 / 100, "as a fraction of one"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: str, factor: float, says: str) -> None:
    is_wrong_by_a_factor(lessons()["roofline"], exercise, factor, says, seed=3)


def test_counting_the_input_table_is_diagnosed() -> None:
    lesson = lessons()["roofline"]
    draws = (draw(lesson, lesson.exercise("mbu"), seed) for seed in range(200))
    instance = next(found for found in draws if found.values["model"] == "llama-3.1-8b")
    wrong = roofline.mbu_of_stored(instance.case).value
    assert "one row of the input table" in instance.check(f"{wrong:.5g}").sentence
