"""A search times what the planner times, keeps its limits, and its front is a front."""

import math

import numpy as np
import pytest

from core.analytic.cost import HourlyPrice
from core.analytic.datasheet import machine_from
from core.analytic.deployment import pass_on_chips
from core.analytic.latency import step_time
from core.analytic.memory import fullest, stage_footprint
from core.analytic.operators import operators
from core.analytic.parallel import ParallelPlan, stages
from core.analytic.search.candidates import Searched, search
from core.analytic.search.chip_array import ChipArray
from core.analytic.search.ranking import MEASURES, front, left_out, ranked
from core.analytic.search.request import RATE, Choices, Wanted
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.models import model
from core.errors import FormatError, ScenarioError

CHIPS = tuple(accelerator(key) for key in ("h100-sxm-80gb", "a100-sxm-80gb", "l4", "mi300x", "gb300"))
CHOICES = Choices(
    chips=CHIPS,
    plans=(ParallelPlan(), ParallelPlan(tp=4), ParallelPlan(tp=2, pp=2)),
    weights=("bf16", "fp8"),
    caches=("bf16",),
    batches=(1, 8, 64),
)
WANTED = Wanted(2048, 256, ttft_s=2.0, tpot_s=0.05)


@pytest.fixture(scope="module")
def found() -> Searched:
    return search(model("llama-3.3-70b"), WANTED, CHOICES)


def test_all_chips_at_once_are_each_chip_alone() -> None:
    machines = tuple(machine_from(chip) for chip in accelerators().values())
    table = operators(
        model("mixtral-8x7b-v0.1"),
        batch=np.array([1, 7, 300]),
        new_tokens=1,
        context=3000,
        weights="int4",
        kv="bf16",
    )
    together = ChipArray(machines).step_s(table)
    for machine, times in zip(machines, together, strict=True):
        if "bf16" in machine.peak_flops_per_s:
            assert times == pytest.approx(step_time(table, machine))
        else:
            assert np.isnan(times).all()


def test_a_candidate_takes_what_its_plan_takes(found: Searched) -> None:
    spec, machine = model("llama-3.3-70b"), machine_from(CHIPS[0])
    formats = {"weights": "fp8", "kv": "bf16"}
    for index, plan in enumerate(CHOICES.plans):
        prompt = pass_on_chips(
            spec, machine, plan, "prefill", batch=1, new_tokens=2048, context=2048, **formats
        )
        step = pass_on_chips(spec, machine, plan, "decode", batch=8, new_tokens=1, context=2176, **formats)
        place = (0, index, 1, 0, 1)
        assert found.ttft_s[place] == pytest.approx(1.5 * float(prompt.time_s))
        assert found.tpot_s[place] == pytest.approx(float(step.time_s) + 7 * float(prompt.time_s) / 256)


def test_memory_is_that_of_the_fullest_chip(found: Searched) -> None:
    spec, machine, plan = model("llama-3.3-70b"), machine_from(CHIPS[0]), CHOICES.plans[2]
    need = fullest(
        [
            stage_footprint(spec, machine, plan, stage, batch=64, context=2304, weights="bf16", kv="bf16")
            for stage in stages(spec, plan)
        ]
    )
    assert machine.capacity_bytes is not None
    margin = 1 - float(need.total_bytes) / machine.capacity_bytes
    assert found.memory_margin[0, 2, 0, 0, 2] == pytest.approx(margin)


def test_what_is_good_keeps_every_limit(found: Searched) -> None:
    assert found.good.any()
    good = found.good
    assert (found.ttft_s[good] <= 2.0).all()
    assert (found.tpot_s[good] <= 0.05).all()
    assert (found.memory_margin[good] >= 0).all()
    assert not good[1, :, 1].any()  # an A100 multiplies no fp8
    assert not good[:, 0, 0].any() or found.memory_margin[3, 0, 0, 0, 0] > 0  # 141 GB fit one MI300X alone


@pytest.mark.parametrize("by", MEASURES)
def test_the_order_is_that_of_the_measure(found: Searched, by: str) -> None:
    best = ranked(found, by, most=50, one_a_chip=False)  # type: ignore[arg-type]
    values = {
        "cost": [one.usd_per_million or math.inf for one in best],
        "memory": [-one.memory_margin for one in best],
        "latency": [one.tpot_s for one in best],
    }[by]
    assert values == sorted(values)
    each = ranked(found, by)  # type: ignore[arg-type]
    assert len({one.chip.id for one in each}) == len(each)


def test_a_chip_without_a_price_is_ranked_but_not_by_cost(found: Searched) -> None:
    assert "gb300" in {one.chip.id for one in ranked(found, "latency")}
    assert "gb300" not in {one.chip.id for one in ranked(found, "cost")}
    assert left_out(found)["no dated price is known"] > 0
    priced = search(
        model("llama-3.3-70b"),
        WANTED,
        Choices(CHIPS, CHOICES.plans, ("fp8",), ("bf16",), (8,), {"gb300": HourlyPrice(0.1)}),
    )
    assert ranked(priced, "cost")[0].chip.id == "gb300"


def test_nobody_on_the_front_is_beaten_and_everybody_else_is(found: Searched) -> None:
    line = front(found)
    assert len(line) >= 2
    costs = [one.usd_per_million for one in line]
    assert costs == sorted(costs, key=lambda cost: cost or 0)
    assert [one.tpot_s for one in line] == sorted((one.tpot_s for one in line), reverse=True)
    for one in ranked(found, "cost", most=1000, one_a_chip=False):
        assert any(
            (other.usd_per_million or 0) <= (one.usd_per_million or 0) and other.tpot_s <= one.tpot_s
            for other in line
        )


def test_more_requests_need_more_replicas_and_the_price_follows(found: Searched) -> None:
    many = search(model("llama-3.3-70b"), Wanted(2048, 256, 2.0, 0.05, requests_per_s=40.0), CHOICES)
    good = many.good
    assert (many.replicas[good] * many.requests_per_s[good] >= 40.0 * (1 - 1e-9)).all()
    assert ((many.replicas[good] - 1) * many.requests_per_s[good] < 40.0).all()
    # Whole replicas are never busier than full, so a token never costs less than on a full one.
    both = good & np.isfinite(found.usd_per_million)
    assert (many.usd_per_million[both] >= found.usd_per_million[both] * (1 - 1e-9)).all()


def test_a_hundred_thousand_candidates_are_looked_at() -> None:
    assert Choices().size >= 100_000
    assert all(not chip.announced for chip in Choices().chips)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ttft_s": 0.0}, "The TTFT must be above zero"),
        ({"tpot_s": math.nan}, "The TPOT must be above zero"),
        ({"requests_per_s": -1.0}, r"The rate must be from 0\.000001 to 1,000,000,000"),
        ({"requests_per_s": math.inf}, "The rate must be from"),
        ({"requests_per_s": 1e308}, r"requests a second; got 1e\+308"),
        ({"requests_per_s": 1e-308}, "requests a second; got 1e-308"),
        ({"input_tokens": 0}, "The prompt must have 1 to"),
    ],
)
def test_a_wish_that_cannot_be_is_a_sentence(change: dict[str, float], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        Wanted(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", RATE)
def test_at_every_limit_of_the_rate_the_numbers_are_finite(rate: float) -> None:
    chips = (accelerator("l40s"),)
    prices = {"l40s": HourlyPrice(1e6)}
    found = search(model("smollm2-135m"), Wanted(requests_per_s=rate), Choices(chips=chips, prices=prices))
    assert np.isfinite(found.usd_per_million[found.good]).all()
    assert np.isfinite(found.chips[found.good]).all()


def test_choices_are_checked() -> None:
    with pytest.raises(ScenarioError, match="one of the plans or more"):
        Choices(plans=())
    with pytest.raises(FormatError):
        Choices(weights=("int3",))
    with pytest.raises(ScenarioError, match="A batch must be 1 or more"):
        Choices(batches=(0,))
