"""The planner inverts the memory table exactly, and a lever is a plan, not an estimate."""

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analytic import planner, planner_comparison, planner_room, planner_splits, planner_words
from core.analytic.datasheet import machine_from
from core.analytic.plan import PassCost
from core.analytic.plan_on_chips import plan_on_chips
from core.analytic.planner import MOST_LEVERS, Lever, levers, value_of
from core.analytic.planner_comparison import compare_plans
from core.analytic.planner_room import (
    MOST_TOKENS,
    MOST_USERS,
    Case,
    context_that_fits,
    fits,
    users_that_fit,
)
from core.analytic.planner_words import GOALS, Goal, memory_sentence, waiting_sentence
from core.catalog.accelerators import accelerators
from core.catalog.models import catalogue, model
from core.catalog.scenario import Scenario
from core.units import KIB

CHIPS = {key: machine_from(chip) for key, chip in accelerators().items()}


def case(**change: Any) -> Case:
    scenario = Scenario(**change)
    return Case(scenario, model(scenario.model), CHIPS[scenario.accelerator])


cases = st.builds(
    case,
    model=st.sampled_from(list(catalogue())),
    accelerator=st.sampled_from(list(CHIPS)),
    weights=st.sampled_from(["bf16", "fp16", "int8", "int4"]),
    batch=st.integers(1, 600),
    input_tokens=st.integers(1, 200_000),
    output_tokens=st.integers(1, 5_000),
)


@pytest.mark.parametrize("module", [planner, planner_room, planner_splits, planner_words, planner_comparison])
def test_examples_hold(module: Any) -> None:
    found = doctest.testmod(module)
    assert (found.attempted > 0, found.failed) == (True, 0)


# --- What fits ------------------------------------------------------------------------------------


split_cases = st.builds(
    case,
    model=st.sampled_from(["llama-3.3-70b", "qwen3-30b-a3b", "deepseek-v2-lite", "smollm2-135m"]),
    accelerator=st.sampled_from(["h100-sxm-80gb", "a100-sxm-80gb", "rtx-4080"]),
    count=st.sampled_from([1, 4, 8]),
    tp=st.sampled_from([1, 2, 3, 4, 8]),
    pp=st.sampled_from([1, 2, 3]),
    batch=st.integers(1, 600),
    input_tokens=st.integers(1, 100_000),
)
either = st.one_of(cases, split_cases)


@given(either)
def test_so_many_users_fit_and_not_one_more(now: Case) -> None:
    users = users_that_fit(now)
    if not now.weighed:
        assert users is None
        return
    assert users is not None
    assert users == 0 or fits(now.changed(batch=users)) is True
    assert users == MOST_USERS or fits(now.changed(batch=users + 1)) is False


@given(either)
def test_so_long_a_context_fits_and_not_one_token_more(now: Case) -> None:
    room = context_that_fits(now)
    if not now.weighed:
        assert room is None
        return
    assert room is not None
    longest = room.memory_tokens
    if longest > 1:
        assert fits(now.changed(input_tokens=longest - 1, output_tokens=1)) is True
    if longest < MOST_TOKENS - 1:
        assert fits(now.changed(input_tokens=max(longest, 1), output_tokens=1)) is False
    assert room.tokens == min(longest, now.model.max_context)


def test_known_cases() -> None:
    assert users_that_fit(case(model="llama-3.3-70b")) == 0
    assert users_that_fit(case(model="smollm2-135m", input_tokens=1, output_tokens=1)) == MOST_USERS
    eight_k = users_that_fit(case(input_tokens=8192 - 256))
    capacity, weights, overhead = 85_520_809_984, 16_060_522_496, 3.5e9
    # By hand: what is left beside weights and overhead, over 8,192 tokens at 128 KiB; activations take one.
    by_hand = (capacity - weights - overhead) / (8192 * 128 * KIB)
    assert eight_k is not None
    assert 0 < by_hand - eight_k < 2


@pytest.mark.parametrize("degree", ["tp", "pp"])
def test_a_split_model_is_planned_on_its_chips(degree: str) -> None:
    now = case(**{degree: 2, "count": 4})
    assert now.replicas == 2
    made = plan_on_chips(now.scenario, now.model, now.machine).plan
    assert (now.planned().plan.ttft_s, now.planned().plan.decode) == (made.ttft_s, made.decode)
    assert now.planned().plan.memory is not None
    assert now.planned().plan.violations == made.violations == ()
    assert memory_sentence(now.planned().plan).startswith("It fits")
    three = case(**{degree: 3 if degree == "tp" else 64})
    assert memory_sentence(three.planned().plan).startswith("The model does not divide by this plan")
    assert (users_that_fit(three), context_that_fits(three), fits(three)) == (None, None, None)


@settings(max_examples=30)
@given(either)
def test_a_part_of_a_plan_alone_says_what_the_plan_says(now: Case) -> None:
    made = now.planned().plan
    if made.ttft_s is None:
        return
    assert now.ttft_s() == pytest.approx(made.ttft_s, rel=1e-12)
    assert now.planned(now.memory()).plan.memory is not None
    assert now.planned(now.memory()).plan.fits == made.fits
    if made.tpot_s is not None:
        alone = now.tpot_s(np.array([now.scenario.batch, 2 * now.scenario.batch]))
        assert alone[0] == pytest.approx(made.tpot_s, rel=1e-12)
        assert float(now.tpot_s(now.scenario.batch)) == pytest.approx(made.tpot_s, rel=1e-12)


# --- Levers ---------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(either, st.sampled_from(list(GOALS)))
def test_a_lever_is_a_plan_that_works_and_helps(now: Case, goal: Goal) -> None:
    before = now.planned()
    found = levers(before, goal, CHIPS)
    assert len({lever.kind for lever in found}) == len(found) <= MOST_LEVERS
    assert [lever.value for lever in found] == sorted((lever.value for lever in found), reverse=True)
    old = value_of(goal, before)
    for lever in found:
        assert lever.after.plan.fits is not False
        assert lever.after.plan.ttft_s == lever.after.case.planned().plan.ttft_s
        assert lever.value == value_of(goal, lever.after)
        assert lever.effect == (None if old is None else lever.value / old)
        assert lever.effect is None or lever.effect > 1
        assert lever.label in lever.sentence
        assert lever.sentence.endswith(".")
        assert lever.after.case.scenario != now.scenario


def by_kind(goal: Goal, **change: Any) -> dict[str, Lever]:
    return {lever.kind: lever for lever in levers(case(**change).planned(), goal, CHIPS)}


def test_throughput_comes_from_a_batch_that_keeps_users_waiting_at_most_twice_as_long() -> None:
    found = by_kind("throughput")
    batch = found["batch"].after
    assert batch.plan.tpot_s is not None
    single = case().planned().plan.tpot_s
    assert single is not None
    assert batch.plan.tpot_s <= 2 * single
    twice = case(batch=2 * batch.case.scenario.batch).planned().plan
    assert twice.tpot_s is not None
    assert twice.tpot_s > 2 * single
    assert found["batch"].effect == max(lever.effect or 0 for lever in found.values())
    assert "Each user then waits" in found["batch"].sentence


def test_a_faster_token_comes_from_fewer_bytes_or_more_bandwidth() -> None:
    found = by_kind("tpot")
    assert found["formats"].after.case.scenario.weights == "int4"
    assert "check the answers on your own task" in found["formats"].sentence
    # The next larger chip, not the largest.
    assert found["chip"].after.case.scenario.accelerator == "h100-nvl-94gb"
    assert "batch" not in found


def test_what_does_not_fit_gets_levers_that_fit_and_no_factor() -> None:
    found = by_kind("throughput", batch=512, input_tokens=30_000)
    room = users_that_fit(case(input_tokens=30_000))
    assert found["batch"].after.case.scenario.batch == room
    assert found["batch"].effect is None
    assert "Then it fits, which it does not now." in found["batch"].sentence
    assert by_kind("tpot", model="llama-3.3-70b")["formats"].after.case.scenario.weights == "int4"


def test_what_the_chip_cannot_compute_gets_formats_it_can() -> None:
    found = by_kind("ttft", accelerator="t4", model="smollm2-135m")
    assert found["formats"].effect is None
    assert found["formats"].after.case.scenario.kv == "fp16"
    assert found["formats"].after.plan.ttft_s is not None


def test_room_in_memory_counts_even_where_it_does_not_fit() -> None:
    found = by_kind("fit", model="llama-3.3-70b")
    assert found["formats"].effect is not None
    assert "full instead of 170%" in found["formats"].sentence


def test_an_answer_of_one_token_has_no_time_per_token_to_improve() -> None:
    assert by_kind("tpot", output_tokens=1) == {}
    assert by_kind("throughput", output_tokens=1) == {}


BIG = {"model": "llama-3.3-70b", "accelerator": "a100-sxm-80gb"}


def test_a_model_too_large_for_one_chip_is_split() -> None:
    assert case(**BIG).planned().plan.fits is False
    assert case(**BIG, count=4, tp=4).planned().plan.fits is True
    split = by_kind("tpot", **BIG)["split"]
    after = split.after.case.scenario
    assert (split.label, after.tp, after.count) == ("split over 2 chips", 2, 2)
    assert split.after.plan.violations == ()
    assert "Then it fits, which it does not now. It takes 2 chips, not 1. At list prices" in split.sentence


def test_a_split_uses_the_chips_that_are_there() -> None:
    split = by_kind("tpot", **BIG, count=4)["split"]
    assert (split.after.case.scenario.count, split.after.case.replicas) == (4, 2)
    assert "It takes" not in split.sentence


def test_what_does_not_divide_is_helped_by_another_split_alone() -> None:
    found = by_kind("ttft", model="llama-3.3-70b", count=3, tp=3)
    assert list(found) == ["split"]
    assert found["split"].after.case.scenario.tp == 4


def test_more_chips_for_throughput_must_beat_as_many_replicas() -> None:
    assert "split" not in by_kind("throughput")
    fewer = by_kind("throughput", count=4, tp=4)["split"]
    assert (fewer.after.case.scenario.tp, fewer.after.case.scenario.count) == (2, 4)
    assert "Each user then waits" in fewer.sentence


def test_other_levers_keep_the_split() -> None:
    found = by_kind("throughput", model="llama-3.3-70b", count=8, tp=4)
    assert {found[kind].after.case.scenario.tp for kind in ("batch", "formats", "chip")} == {4}
    batch = found["batch"].after
    assert batch.plan.tpot_s is not None
    assert value_of("throughput", batch) == 2 * batch.case.scenario.batch / batch.plan.tpot_s


def test_a_chip_without_a_link_is_not_split() -> None:
    assert CHIPS["apple-m4-max"].link is None
    assert "split" not in by_kind("fit", accelerator="apple-m4-max", weights="fp16", kv="fp16")


def test_experts_stay_spread_where_that_works() -> None:
    now = {"model": "mixtral-8x7b-v0.1", "accelerator": "a100-sxm-80gb"}
    split = by_kind("tpot", **now, count=2, tp=2, ep=2)["split"].after.case.scenario
    assert (split.tp, split.ep) == (4, 2)


def test_another_chip_is_named_with_its_price() -> None:
    assert "At list prices that is $" in by_kind("tpot")["chip"].sentence
    assert "No dated price of the chip is known" in by_kind("tpot", **BIG)["chip"].sentence


# --- Words and comparison -------------------------------------------------------------------------


def test_the_limit_is_a_sentence() -> None:
    now = case().planned()
    assert now.plan.prefill is not None
    assert now.plan.decode is not None
    decode = waiting_sentence("Decode", now.plan.decode, now.case.machine, "bf16")
    assert decode.startswith("Decode waits for memory: it does 1.06 FLOPs for each byte")
    assert "waits for arithmetic" in waiting_sentence("Prefill", now.plan.prefill, now.case.machine, "bf16")
    small = case(model="smollm2-135m").planned().plan.decode
    assert small is not None
    assert "waits for fixed costs" in waiting_sentence("Decode", small, now.case.machine, "bf16")
    unknown = case(accelerator="t4").planned().plan.decode
    assert unknown is not None
    assert "unknown" in waiting_sentence("Decode", unknown, CHIPS["t4"], "bf16")
    sending = PassCost(1e9, 1e9, 0.01, "link", 2.0)
    assert "waits for other chips" in waiting_sentence("Decode", sending, now.case.machine, "q4_k")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({}, "It fits: 18.7 GiB of 79.6 GiB."),
        ({"model": "llama-3.3-70b"}, "It does not fit: 136 GiB of 79.6 GiB."),
        ({"accelerator": "rtx-4080"}, "It takes 18.7 GiB. How much this chip offers to software is unknown."),
    ],
)
def test_memory_is_a_sentence(change: dict[str, Any], sentence: str) -> None:
    assert memory_sentence(case(**change).planned().plan) == sentence


def test_two_scenarios_side_by_side() -> None:
    found = compare_plans(case(), case(accelerator="h200-sxm-141gb"))
    rows = {row.name: row for row in found.rows}
    assert rows["TPOT"].better == "second"
    assert rows["memory"].better == "same"
    assert rows["users that fit"].factor is not None
    assert rows["users that fit"].factor > 1
    assert found.sentence.startswith("Both fit. The second writes a token 1.29 × as fast")
    assert rows["TPOT"].text(rows["TPOT"].first) == "7.85 ms"
    assert rows["memory"].text(rows["memory"].first) == "18.7 GiB"
    assert rows["rate"].text(None) == "unknown"


def test_replicas_are_compared_with_a_split_over_the_same_chips() -> None:
    replicas, split = case(count=4), case(count=4, tp=4)
    rows = {row.name: row for row in compare_plans(replicas, split).rows}
    alone, together = users_that_fit(replicas), users_that_fit(split)
    assert alone is not None
    assert (rows["users that fit"].first, rows["users that fit"].second) == (4 * alone, together)
    assert (rows["TPOT"].better, rows["rate"].better) == ("second", "first")
    assert rows["memory"].better == "second"


@settings(max_examples=15)
@given(either, either)
def test_a_comparison_turned_round_says_the_same(first: Case, second: Case) -> None:
    there, back = compare_plans(first, second), compare_plans(second, first)
    opposite = {"first": "second", "second": "first"}
    for one, other in zip(there.rows, back.rows, strict=True):
        assert one.better == opposite.get(other.better, other.better)
    assert "nan" not in there.sentence


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ({"model": "llama-3.3-70b"}, {"model": "llama-3.3-70b"}, "Neither fits. The two do not differ."),
        ({}, {"model": "llama-3.3-70b"}, "Only the first fits."),
        ({"model": "llama-3.3-70b"}, {}, "Only the second fits."),
        ({"accelerator": "rtx-4080"}, {}, "Whether both fit is unknown."),
        ({"tp": 2, "count": 2}, {}, "Both fit. The first writes a token 1."),
        ({"tp": 3, "count": 3}, {}, "Whether both fit is unknown. No speed to compare."),
    ],
)
def test_verdicts(first: dict[str, Any], second: dict[str, Any], verdict: str) -> None:
    assert compare_plans(case(**first), case(**second)).sentence.startswith(verdict)
