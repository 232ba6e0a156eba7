"""The ranges beside the planner's times: around the number, as a rate too, and wider outside the data."""

import doctest
from dataclasses import replace

import pytest

from core.analytic.prediction_range import Range
from core.catalog.scenario import Scenario
from core.ui.planner import numbers, ranges
from tests.ui.test_planner_arithmetic import found_for


def test_examples_hold() -> None:
    assert doctest.testmod(ranges).failed == 0
    assert ranges.between(None) == ranges.rates_between(None, 1) == ""


def test_each_time_stands_within_its_range() -> None:
    found = found_for(Scenario(batch=4))
    worth = ranges.value(found)
    assert found.plan.ttft_s is not None
    assert found.plan.tpot_s is not None
    assert worth.ttft is not None
    assert worth.tpot is not None
    assert worth.ttft.low_s < found.plan.ttft_s < worth.ttft.high_s
    assert worth.tpot.low_s < found.plan.tpot_s < worth.tpot.high_s


def test_the_tiles_carry_their_ranges() -> None:
    found = found_for(Scenario(batch=4))
    worth = ranges.value(found)
    meanings = {tile.name: tile.meaning for tile in numbers.tiles(found)}
    assert (
        meanings["TTFT"]
        == f"time to first token, all 4 prompts arriving at once: {ranges.between(worth.ttft)}"
    )
    assert meanings["TPOT"].endswith(ranges.between(worth.tpot))
    assert meanings["Tokens/s"].endswith(ranges.rates_between(worth.tpot, 4))


def test_a_rate_is_of_one_replica_where_there_are_several() -> None:
    split = Scenario("llama-3.3-70b", tp=4, batch=4)
    several, alone = (
        {tile.name: tile.meaning for tile in numbers.tiles(found_for(replace(split, count=count)))}
        for count in (8, 4)
    )
    assert several["Tokens/s"].startswith("written for all 4 users of one replica: ")
    assert several["Users"].startswith("fit on one replica at 2,304 tokens each")
    assert alone["Tokens/s"].startswith("written for all 4 users: ")


def test_without_a_time_there_is_no_range() -> None:
    found = found_for(Scenario(accelerator="t4"))
    assert ranges.sentence(ranges.value(found), 1) == ""
    assert {tile.name: tile.meaning for tile in numbers.tiles(found)}["TTFT"] == "time to first token"


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        (Scenario(input_tokens=65_536), "no published context is above"),
        (Scenario(model="mixtral-8x7b-v0.1", weights="int4"), "few published rows are of a mixture"),
        (Scenario(batch=4096), "no published batch is above"),
    ],
)
def test_outside_the_data_is_said(scenario: Scenario, reason: str) -> None:
    said = ranges.sentence(ranges.value(found_for(scenario)), scenario.batch)
    assert "This scenario lies outside the data, so they are wider" in said
    assert reason in said


def test_inside_the_data_nothing_is_added() -> None:
    said = ranges.sentence(ranges.value(found_for(Scenario())), 1)
    assert said.startswith("Four published measurements in five")
    assert "outside" not in said


def test_a_rate_is_the_other_way_round() -> None:
    low, _, high = ranges.rates_between(Range(0.01, 0.02), 8).partition(" to ")
    assert float(low) == 400
    assert float(high) == 800
