"""Money and energy are time on chips times a price or a power, idle hours included."""

from datetime import date

import numpy as np
import pytest

from core.analytic.answer import speed
from core.analytic.cost import (
    LOAD,
    PRICE_USD,
    HourlyPrice,
    Power,
    TokenCost,
    Work,
    list_price,
    token_cost,
    token_energy,
    usual_power,
)
from core.analytic.datasheet import machine_from
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.models import model
from core.errors import ScenarioError

WORK = Work(ttft_s=0.2, tpot_s=0.02, batch=4, input_tokens=1000, output_tokens=51, chips=2)
TODAY = date(2026, 11, 29)


def test_the_parts_are_the_whole() -> None:
    """Input and output tokens together cost what the chips cost while they serve the request."""
    found = token_cost(WORK, HourlyPrice(3.6))
    parts = (found.input_usd * 1000 + found.output_usd * 51) / 1e6
    assert float(found.request_usd) == pytest.approx(float(parts))
    assert float(found.request_usd) == pytest.approx(2 * (0.2 + 50 * 0.02) / 4 * 3.6 / 3600)


def test_a_server_that_is_idle_half_the_time_costs_twice() -> None:
    busy, half = (
        token_cost(Work(0.2, 0.02, 4, 1000, 51, load=load), HourlyPrice(2.0)) for load in (1.0, 0.5)
    )
    assert float(half.output_usd) == pytest.approx(2 * float(busy.output_usd))


def test_the_batch_makes_output_cheaper_and_input_hardly() -> None:
    chip = machine_from(accelerator("h100-sxm-80gb"))
    batch = np.array([1, 64])
    served = speed(
        model("llama-3.1-8b"),
        chip,
        batch=batch,
        input_tokens=2048,
        output_tokens=256,
        weights="bf16",
        kv="bf16",
    )
    found = token_cost(Work(served.ttft_s, served.tpot_s, batch, 2048, 256), HourlyPrice(3.0))
    assert found.output_usd[0] > 15 * found.output_usd[1]
    assert found.input_usd[0] < 1.5 * found.input_usd[1]
    assert found.output_usd[1] > found.input_usd[1]


def test_one_token_is_all_prefill() -> None:
    found = token_cost(Work(0.2, float("nan"), 1, 1000, 1), HourlyPrice(1.0))
    assert float(found.output_usd) == 0
    assert float(found.request_usd) == pytest.approx(0.2 / 3600)


def test_idle_power_counts_for_the_hours_without_work() -> None:
    power = Power(prefill_w=700, decode_w=490, idle_w=105)
    always = token_energy(WORK, power)
    rarely = token_energy(Work(0.2, 0.02, 4, 1000, 51, chips=2, load=0.1), power)
    assert float(always.idle_share) == 0
    assert float(always.output_j) == pytest.approx(2 * 490 * 50 * 0.02 / (4 * 51))
    waiting = 105 * 9
    assert float(rarely.output_j) == pytest.approx(2 * (490 + waiting) * 50 * 0.02 / (4 * 51))
    assert 0.6 < float(rarely.idle_share) < 0.7


def test_an_old_price_says_so() -> None:
    old, new, mine = (
        HourlyPrice(3.22, "2024-12-23", "a list"),
        HourlyPrice(3.22, "2026-11-09", "a list"),
        HourlyPrice(3.22),
    )
    assert "23 months ago: it may have moved" in old.note(TODAY)
    assert new.note(TODAY) == "3.22 dollars an hour for each chip, read on 2026-11-09."
    assert mine.note(TODAY) == "3.22 dollars an hour for each chip, typed in by you."
    assert mine.age_days(TODAY) is None
    limit = HourlyPrice(1.0, "2026-05-30", "a list")
    assert "may have moved" not in limit.note(TODAY)
    assert "may have moved" in limit.note(date(2026, 12, 1))


def test_catalogue_prices_and_powers() -> None:
    price = list_price(accelerator("h100-sxm-80gb"))
    assert price is not None
    assert price.usd == pytest.approx((2.60 * 12.29) ** 0.5)
    assert price.date == "2026-09-20"
    for chip in accelerators().values():
        found, power = list_price(chip), usual_power(chip)
        assert (found is None) == (chip.price is None)
        assert (power is None) == (chip.power_w is None)


@pytest.mark.parametrize("usd", [0.0, -1.0, 1e-5, 1.1e6, 1e308, float("nan"), float("inf")])
def test_a_price_that_is_none_is_a_sentence(usd: float) -> None:
    with pytest.raises(ScenarioError, match=r"A price must be from 0\.0001 to 1,000,000 dollars"):
        HourlyPrice(usd)


@pytest.mark.parametrize("load", [0.0, 1e-320, 1.5, float("nan"), -0.1])
def test_a_load_that_cannot_be_is_a_sentence(load: float) -> None:
    with pytest.raises(ScenarioError, match=r"The load must be from 0\.001 to 1 \(busy"):
        Work(0.2, 0.02, 1, 1, 1, load=load)


def test_the_load_that_is_wrong_is_the_one_that_is_said() -> None:
    with pytest.raises(ScenarioError, match="got 1e-05"):
        Work(0.2, 0.02, 1, 1, 1, load=np.array([0.5, 1e-5, 1.0]))


@pytest.mark.parametrize("usd", PRICE_USD)
@pytest.mark.parametrize("load", LOAD)
def test_at_every_limit_the_numbers_are_finite(usd: float, load: float) -> None:
    work = Work(1e6, 1e6, 65_536, 1, 1_000_000, chips=8192, load=load)
    cost = token_cost(work, HourlyPrice(usd))
    assert all(np.isfinite([cost.input_usd, cost.output_usd, cost.request_usd]))


def test_power_below_idle_is_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="at least the idle power"):
        Power(100.0, 50.0, 80.0)


def test_a_sweep_is_one_call() -> None:
    load = np.array([0.25, 0.5, 1.0])
    found: TokenCost = token_cost(Work(0.2, 0.02, 4, 1000, 51, load=load), HourlyPrice(1.0))
    assert found.output_usd.shape == (3,)
    assert np.all(np.diff(found.output_usd) < 0)
