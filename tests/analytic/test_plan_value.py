"""A plan's ranges, cost and energy come from its times, its chip's facts, and say what is unknown."""

import pytest

from core.analytic.cost import HourlyPrice, Power
from core.analytic.datasheet import machine_from
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import plan
from core.analytic.plan_value import PlanValue, conditions, value_of
from core.catalog.accelerators import accelerator
from core.catalog.models import model
from core.catalog.scenario import Scenario
from core.errors import ScenarioError

SPEC = model("llama-3.1-8b")


def valued(id: str = "h100-sxm-80gb", scenario: Scenario | None = None, **more: object) -> PlanValue:
    chip, asked = accelerator(id), scenario or Scenario()
    machine = machine_from(chip)
    return value_of(plan(asked, SPEC, machine), asked, SPEC, machine, chip, **more)  # type: ignore[arg-type]


def test_ranges_hold_the_prediction() -> None:
    made = plan(Scenario(), SPEC, machine_from(accelerator("h100-sxm-80gb")))
    found = valued()
    assert found.ttft and found.tpot and made.ttft_s and made.tpot_s
    assert found.ttft.low_s < made.ttft_s < found.ttft.high_s
    assert found.tpot.low_s < made.tpot_s < found.tpot.high_s
    assert found.notes[0] == "Ranges hold four published measurements in five."


def test_outside_the_data_the_reason_stands_in_the_notes() -> None:
    found = valued("gaudi3")
    assert found.tpot and found.tpot.reasons
    assert "wider here: no published measurement is of such an accelerator" in found.notes[0]


def test_cost_and_energy_of_a_chip() -> None:
    found = valued(price=HourlyPrice(3.6), load=0.5)
    twice = valued(price=HourlyPrice(7.2), load=0.5)
    assert found.cost and twice.cost and found.energy
    assert float(twice.cost.output_usd) == pytest.approx(2 * float(found.cost.output_usd))
    assert float(found.energy.idle_share) > 0.1
    assert "busy 50% of the time" in found.notes[1]
    assert valued(power=Power(1.0, 1.0, 0.0)).energy is not None


def test_a_split_pays_for_all_its_chips() -> None:
    one, four = valued(), valued(plan=ParallelPlan(tp=4))
    assert one.cost and four.cost
    assert float(four.cost.request_usd) == pytest.approx(4 * float(one.cost.request_usd))


def test_what_is_unknown_is_not_guessed() -> None:
    found = valued("apple-m2-ultra")
    assert found.cost is None and found.energy is None
    assert "No dated price" in found.notes[1]
    assert "Nobody states" in found.notes[2]
    assert valued("gb300").cost is None


def test_without_times_there_is_no_value() -> None:
    found = valued("t4")  # no bf16
    assert found == PlanValue(None, None, None, None, None, ())
    single = valued(scenario=Scenario(output_tokens=1))
    assert single.tpot is None and single.cost is not None
    assert float(single.cost.output_usd) == 0


def test_conditions_follow_the_scenario() -> None:
    at = conditions(
        machine_from(accelerator("mi300x")),
        model("jamba-1.5-mini"),
        Scenario(batch=4, tp=2, pp=2, weights="nvfp4"),
    )
    assert (at.kind, at.batch, at.chips, at.pipeline, at.format_class) == ("amd", 4, 2, 2, "fp4")
    assert at.state and at.experts


def test_a_load_of_nothing_is_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="load"):
        valued(load=0.0)
