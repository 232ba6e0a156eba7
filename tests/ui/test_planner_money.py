"""Cost and energy beside the plan: each program prints the tile's number, and what is unknown is said."""

import doctest
from dataclasses import replace

import pytest

from core.analytic.cost import HourlyPrice
from core.catalog.scenario import Scenario
from core.errors import ScenarioError
from core.ui.planner import money
from core.ui.planner.found import Found
from core.ui.planner.money import tiles, typed_price, value
from core.ui.planner.money_arithmetic import NAMES, worked
from tests.ui.test_planner_arithmetic import found_for, number, printed

SCENARIOS = [
    Scenario(),
    Scenario(batch=32, weights="int4", input_tokens=300, output_tokens=500),
    Scenario(model="llama-3.3-70b", count=8, tp=4, pp=2, batch=8),
    Scenario(model="qwen3-0.6b", accelerator="t4", weights="fp16", kv="fp16", output_tokens=2),
]


def shown(found: Found, price: HourlyPrice | None = None, load: float = 1.0) -> dict[str, str]:
    return {tile.name: tile.value for tile in tiles(value(found, price, load))}


@pytest.mark.parametrize("load", [0.3, 1.0])
@pytest.mark.parametrize("price", [None, HourlyPrice(3.0)])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_program_prints_the_tiles_number(
    scenario: Scenario, price: HourlyPrice | None, load: float
) -> None:
    found = found_for(scenario)
    worth = value(found, price, load)
    for name, tile in shown(found, price, load).items():
        made = worked(found, worth, load, name)
        assert number(printed(made.python)) == pytest.approx(number(tile.strip("$")), rel=6e-3), name
        assert tile in made.result


def test_idle_hours_are_paid_for() -> None:
    found = found_for(Scenario())
    busy, idle = (value(found, None, load).cost for load in (1.0, 0.25))
    assert busy is not None
    assert idle is not None
    assert float(idle.output_usd) == pytest.approx(4 * float(busy.output_usd))


def test_a_batch_makes_written_tokens_cheaper() -> None:
    one, many = (value(found_for(Scenario(batch=batch)), None, 1.0).cost for batch in (1, 32))
    assert one is not None
    assert many is not None
    assert float(many.output_usd) < float(one.output_usd) / 10


def test_a_price_has_its_date_and_a_typed_one_says_so() -> None:
    found = found_for(Scenario())
    listed, typed = value(found, None, 1.0), value(found, HourlyPrice(3.0), 1.0)
    assert any("read on 20" in note for note in listed.notes)
    assert any("3 dollars an hour for each chip, typed in by you" in note for note in typed.notes)


def test_without_a_price_a_cost_is_unknown_until_one_is_typed() -> None:
    found = found_for(Scenario(accelerator="apple-m2-ultra", weights="fp16", kv="fp16"))
    assert set(shown(found).values()) == {"unknown"}
    worth = value(found, None, 1.0)
    for name in NAMES:
        with pytest.raises(ScenarioError):
            worked(found, worth, 1.0, name)
    assert shown(found, HourlyPrice(1.0))["Output"].startswith("$")


def test_an_answer_of_one_token_is_paid_with_the_prompt() -> None:
    found = found_for(replace(Scenario(), output_tokens=1))
    assert shown(found)["Output"] == "$0"


@pytest.mark.parametrize("typed", ["many", None, -1.0, 0.0, float("nan"), float("inf"), 1e9])
def test_a_price_that_cannot_be_one_is_none(typed: object) -> None:
    assert typed_price(typed) is None


def test_examples_hold() -> None:
    assert doctest.testmod(money) == (0, 1)
