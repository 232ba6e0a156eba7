"""The planner's worked numbers: each program runs on its own and prints what the plan says."""

import contextlib
import io

import pytest

from core.analytic.planner_room import Case
from core.catalog.accelerators import accelerators
from core.catalog.models import catalogue
from core.catalog.scenario import Scenario
from core.errors import FormatError, ScenarioError
from core.ui.planner.arithmetic import worked_number
from core.ui.planner.found import Found, find
from core.ui.scenario.record import catalogue_machines

SCENARIOS = [
    Scenario(),
    Scenario(batch=32, weights="int4", input_tokens=300, output_tokens=500),
    Scenario(model="llama-2-70b", weights="int8"),  # too large for the chip
    Scenario(model="qwen3-0.6b", accelerator="t4", weights="fp16", kv="fp16", output_tokens=2),
    Scenario(model="llama-3.3-70b", accelerator="a100-sxm-80gb", count=4, tp=4),
    Scenario(model="llama-3.3-70b", count=8, tp=2, pp=4, batch=8),
    Scenario(model="llama-3.3-70b", count=16, tp=1, pp=16, batch=2),
    Scenario(model="qwen3-30b-a3b", count=8, tp=4, ep=8, batch=16),
]


def found_for(scenario: Scenario) -> Found:
    machine = catalogue_machines()[scenario.accelerator]
    case = Case(scenario, catalogue()[scenario.model], machine)
    return find(case, accelerators()[scenario.accelerator])


def printed(program: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})  # noqa: S102 - our own text
    return out.getvalue().strip()


def number(text: str) -> float:
    return float(text.split(maxsplit=1)[0].replace(",", ""))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_program_prints_the_plans_number(scenario: Scenario) -> None:
    found = found_for(scenario)
    plan = found.plan
    assert plan.memory is not None
    assert plan.ttft_s is not None
    assert plan.tpot_s is not None
    assert plan.tokens_per_s is not None
    assert found.users is not None
    assert found.context is not None
    expected = {
        "Memory": float(plan.memory.total_bytes) / 2**30,
        "TTFT": plan.ttft_s * 1000,
        "TPOT": plan.tpot_s * 1000,
        "Tokens/s": plan.tokens_per_s,
        "Users": found.users,
        "Context": found.context.memory_tokens,
    }
    for name, value in expected.items():
        shown = printed(worked_number(found, name).python)
        assert number(shown) == pytest.approx(value, rel=6e-3), name


def test_the_neighbours_prove_how_many_users_fit() -> None:
    found = found_for(Scenario(input_tokens=7936))
    assert found.users == 60
    text = worked_number(found, "Users").substituted
    assert text.startswith("60: ")
    assert "61: " in text
    assert "≤" in text
    assert ">" in text


def test_a_number_that_cannot_be_said_is_a_sentence() -> None:
    unknown = found_for(Scenario(accelerator="rtx-4080"))
    with pytest.raises(ScenarioError, match=r"usable memory, which is unknown for NVIDIA GeForce RTX 4080"):
        worked_number(unknown, "Users")
    no_bf16 = found_for(Scenario(model="qwen3-0.6b", accelerator="t4"))
    with pytest.raises(FormatError, match="NVIDIA T4 has no bf16 arithmetic"):
        worked_number(no_bf16, "TTFT")
    with pytest.raises(ScenarioError, match="unknown here"):
        worked_number(no_bf16, "Tokens/s")
    ragged = found_for(Scenario(tp=3, count=3))
    for name in ("Memory", "TTFT", "TPOT", "Users", "Context"):
        with pytest.raises(ScenarioError, match="must divide by its plan"):
            worked_number(ragged, name)


def test_a_split_that_cannot_be_timed_says_why() -> None:
    found = found_for(
        Scenario(model="llama-3.3-70b", accelerator="a100-sxm-80gb", count=4, tp=4, weights="fp8")
    )
    assert worked_number(found, "Memory").result
    for name in ("TTFT", "TPOT"):
        with pytest.raises(ScenarioError, match="has no fp8"):
            worked_number(found, name)


def test_a_split_pass_says_what_one_chip_does_and_what_it_sends() -> None:
    found = found_for(Scenario(model="llama-3.3-70b", count=4, tp=4))
    made = worked_number(found, "TPOT")
    inputs = {item.symbol: item for item in made.inputs}
    whole = found.plan.decode
    assert whole is not None
    assert number(inputs["bytes"].value) == pytest.approx(whole.bytes / 4 / 1e9, rel=6e-3)
    assert "reads" in inputs["one chip"].meaning
    # Two all-reduces a layer, one for the embedding, and the gathering of the logits.
    assert inputs["collectives"].meaning.startswith("162 of them; one chip sends")
    assert inputs["link rate"].url.startswith("https://")
    assert made.formula == "TPOT = pass cost + one chip + collectives"
    assert "collectives" in made.substituted


def test_a_pipeline_shows_its_slowest_stage() -> None:
    found = found_for(Scenario(model="llama-3.3-70b", count=8, tp=2, pp=4, batch=8))
    assert worked_number(found, "TTFT").formula == "TTFT = all stages + ( m − 1 ) × slowest stage"
    inputs = {item.symbol: item for item in worked_number(found, "TPOT").inputs}
    assert inputs["m"].value == "4"


def test_a_split_memory_is_of_the_fullest_chip() -> None:
    found = found_for(Scenario(model="llama-3.3-70b", count=4, tp=4))
    made = worked_number(found, "Memory")
    assert made.note.startswith("The fullest of the 4 chips")
    assert "part of the parameters" in made.inputs[0].meaning


def test_the_sources_of_a_chip_can_be_opened() -> None:
    inputs = {item.symbol: item for item in worked_number(found_for(Scenario()), "Memory").inputs}
    assert inputs["usable memory"].url.startswith("https://")
    assert "read 20" in inputs["usable memory"].source


def test_equal_scenarios_are_planned_once() -> None:
    assert found_for(Scenario(batch=7)) is found_for(Scenario(batch=7))
    assert found_for(Scenario(batch=7)) is not found_for(Scenario(batch=9))
