"""A link restores what its sender saw, and says what it could not restore."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalog.scenario import KEYS, LIMITS, Decoded, Scenario, decode, encode, on_chips

MODELS = ["llama-3.1-8b", "smollm2-135m"]
ACCELERATORS = ["h100-sxm-80gb", "l4", "this-computer"]

scenarios = st.builds(
    Scenario,
    model=st.sampled_from(MODELS),
    accelerator=st.sampled_from(ACCELERATORS),
    weights=st.sampled_from(["bf16", "int4", "int8-dynamic"]),
    kv=st.sampled_from(["fp32", "bf16"]),
    **{name: st.integers(*limits) for name, limits in LIMITS.items()},
)


def read(params: dict[str, str]) -> Decoded:
    return decode(params, MODELS, ACCELERATORS)


@given(scenarios)
def test_every_scenario_survives_its_link(scenario: Scenario) -> None:
    assert read(encode(scenario)) == Decoded(scenario, ())


def test_defaults_leave_the_link_empty() -> None:
    assert encode(Scenario()) == {}
    assert read({}) == Decoded(Scenario(), ())


@given(st.dictionaries(st.sampled_from([*KEYS.values(), "v", "x"]), st.text(max_size=60)))
def test_no_link_can_break_the_page(params: dict[str, str]) -> None:
    decoded = read(params)
    for name, (low, high) in LIMITS.items():
        assert low <= getattr(decoded.scenario, name) <= high
    assert decoded.scenario.model in MODELS
    assert all(note.endswith(".") for note in decoded.notes)


@pytest.mark.parametrize(
    ("params", "note"),
    [
        ({"b": "999999"}, "The batch must be from 1 to 65,536; the link says 999,999, so 65,536 is used."),
        ({"b": "-3"}, "The batch must be from 1 to 65,536; the link says -3, so 1 is used."),
        ({"i": "many"}, "The input tokens must be a whole number; the link says 'many', so 2,048 is used."),
        (
            {"i": "9" * 5000},
            "The input tokens must be a whole number; the link says '" + "9" * 40 + "', so 2,048 is used.",
        ),
        ({"a": "EVIL"}, "The accelerator 'EVIL' in the link is not known here, so h100-sxm-80gb is used."),
        ({"k": "fp8"}, "The KV format 'fp8' in the link is not known here, so bf16 is used."),
    ],
)
def test_repairs_are_said_in_a_sentence(params: dict[str, str], note: str) -> None:
    assert read(params).notes == (note,)


def test_a_link_of_another_version_says_so() -> None:
    decoded = read({"v": "9", "b": "4"})
    assert decoded.scenario.batch == 4
    assert "made by another version (v='9')" in decoded.notes[0]


def test_a_page_may_bring_its_own_default() -> None:
    default = Scenario(model="smollm2-135m", batch=4)
    found: Any = decode({}, MODELS, ACCELERATORS, default).scenario
    assert found == default


@given(scenarios, st.integers(*LIMITS["count"]))
def test_chips_stay_where_the_split_divides_them_and_are_one_replica_elsewhere(
    scenario: Scenario, chips: int
) -> None:
    changed, share = on_chips(scenario, chips), scenario.tp * scenario.pp
    assert replace(changed, count=scenario.count) == scenario
    assert changed.count == (chips if chips % share == 0 else min(share, LIMITS["count"][1]))
