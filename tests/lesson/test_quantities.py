"""The lessons' numbers: known cases by hand, and laws."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.plan import plan
from core.catalog.models import catalogue
from core.errors import FormatError
from core.lesson.amount import Amount
from core.lesson.catalogue_case import catalogue_case
from core.lesson.quantities import kv_cache, prefill_and_decode
from core.lesson.quantities.answer_timeline import MOST_TICKS, timeline, tokens_per_s_by_batch
from core.lesson.quantities.kv_cache import work_by_step

LLAMA_70B: dict[str, Any] = {"model": "llama-2-70b", "batch": 8, "input_tokens": 3840, "output_tokens": 256}
values: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "model": st.sampled_from(list(catalogue())),
        "batch": st.integers(1, 64),
        "input_tokens": st.integers(1, 20_000),
        "output_tokens": st.integers(1, 2_000),
    }
)


def test_the_hidden_size_shortcut_is_eight_times_too_much() -> None:
    case = catalogue_case(LLAMA_70B)
    assert kv_cache.cache(case).text == "10.7 GB"
    assert kv_cache.cache(case).value == 2 * 80 * 8 * 128 * 2 * 4096 * 8 / 1e9
    assert kv_cache.cache_by_hidden_size(case).text == "85.9 GB"
    assert kv_cache.cache_by_hidden_size(case).value == 2 * 80 * 8192 * 2 * 4096 * 8 / 1e9
    assert kv_cache.shortcut_factor(case).value == 8
    assert kv_cache.cache_gib(case).value == 10.0


def test_eight_thousand_tokens_take_a_gibibyte() -> None:
    case = catalogue_case({"context": 8192})
    assert (kv_cache.cache(case).text, kv_cache.cache_gib(case).text) == ("1.07 GB", "1.00 GiB")
    assert kv_cache.cache_of_twice_the_context(case).value == 2 * kv_cache.cache(case).value
    assert kv_cache.scores(case).value == 32 * 8192**2 * 2 / 1e9


def test_the_two_ceilings_of_the_running_chip() -> None:
    case = catalogue_case({"mfu": 0.5})
    assert prefill_and_decode.prefill_ceiling(case).value == pytest.approx(68_300, rel=0.01)
    assert prefill_and_decode.decode_ceiling(case).value == pytest.approx(221, rel=0.02)
    assert prefill_and_decode.ceiling_ratio(case).value == pytest.approx(312, rel=0.01)
    assert prefill_and_decode.prefill_flops(case).text == "29.7 TFLOP"
    assert prefill_and_decode.ttft_floor(case).text == "60.0 ms"
    assert prefill_and_decode.ttft_at_full_peak(case).value == prefill_and_decode.ttft_floor(case).value / 2


def test_a_chip_without_the_arithmetic_is_a_sentence() -> None:
    with pytest.raises(FormatError, match="has no bf16 arithmetic"):
        prefill_and_decode.peak(catalogue_case({"accelerator": "t4"}))


@given(values)
def test_a_timeline_adds_up_to_the_plan(given: dict[str, Any]) -> None:
    case = catalogue_case(given)
    line = timeline(case)
    made = plan(case.scenario, case.model, case.machine)
    assert line.prefill_s == made.ttft_s
    assert line.end_s == pytest.approx(made.end_to_end_s, rel=2e-3)
    assert len(line.step_s) <= MOST_TICKS
    assert len(line.starts_s) == max(len(line.step_s), 1)


@given(values)
def test_a_cache_never_costs_work_and_grows_with_every_token(given: dict[str, Any]) -> None:
    work = work_by_step(catalogue_case(given))
    assert np.all(work.recomputed_flops >= work.cached_flops)
    assert np.all(np.diff(work.cache_bytes) >= 0)
    assert np.all(np.diff(work.recomputed_flops) > 0)
    assert len({len(column) for column in (work.contexts, work.cached_s, work.recomputed_s)}) == 1


@given(values)
def test_a_step_without_a_cache_grows_between_linearly_and_with_the_square(given: dict[str, Any]) -> None:
    assert 0 < kv_cache.growth_exponent(catalogue_case(given)).value < 2


def test_more_users_write_more_tokens() -> None:
    rates = tokens_per_s_by_batch(catalogue_case({}), np.array([1.0, 8.0, 64.0]))
    assert np.all(np.diff(rates) > 0)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Amount(0.302, "GB"), "0.302 GB"),
        (Amount(9350, "ms"), "9.35 s"),
        (Amount(8.0, "×"), "8 ×"),
        (Amount(60.0, "%"), "60 %"),
        (Amount(2304, "tokens"), "2,304 tokens"),
        (Amount(1.0524), "1.05"),
    ],
)
def test_amounts_are_written_with_their_unit(amount: Amount, text: str) -> None:
    assert amount.text == text


def test_amounts_change_units() -> None:
    assert Amount(1, "GiB").in_unit("GB").value == pytest.approx(1.073741824)
    assert Amount(1, "GiB").kind == "bytes"
