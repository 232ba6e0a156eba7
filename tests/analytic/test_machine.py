"""A machine answers for every operator, from its own entry or the one for all formats."""

from dataclasses import replace

import numpy as np
import pytest

from core.analytic.collectives import Collective
from core.analytic.machine import Machine, Rate
from core.catalog.accelerators import links
from core.errors import ScenarioError

ANY = Rate(fixed_s=1e-6, bytes_per_s=1e9, rows=(1.0,), flops_per_s=(1e12,))
OWN = Rate(fixed_s=2e-6, bytes_per_s=2e9, rows=(1.0, 100.0), flops_per_s=(1e10, 1e12))
MACHINE = Machine(
    id="test",
    name="Test",
    origin="measured",
    capacity_bytes=1e9,
    bandwidth_bytes_per_s=3e9,
    peak_flops_per_s={"bf16": 1e12},
    rates={("linear", "*"): ANY, ("linear", "int4"): OWN},
    step_fixed_s=0.0,
)


def test_the_own_entry_comes_first() -> None:
    assert MACHINE.rate("linear", "int4") is OWN
    assert MACHINE.rate("linear", "bf16") is ANY


def test_an_operator_that_was_measured_by_itself_comes_before_its_kind() -> None:
    machine = replace(MACHINE, operator_rates={("qkv", "int4"): ANY})
    assert machine.rate("linear", "int4", "qkv") is ANY
    assert machine.rate("linear", "int4", "down") is OWN
    assert machine.rate("linear", "bf16", "qkv") is ANY


def test_a_kind_without_any_entry_is_never_guessed() -> None:
    with pytest.raises(KeyError):
        MACHINE.rate("attention", "bf16")


def test_the_flop_rate_is_interpolated_in_the_logarithm_and_held_outside() -> None:
    rates = OWN.flops_at(np.array([0.5, 1.0, 10.0, 100.0, 1e6]))
    assert rates == pytest.approx([1e10, 1e10, 1e11, 1e12, 1e12])
    assert ANY.flops_at(np.array([1.0, 50.0])).tolist() == [1e12, 1e12]


def test_chips_in_one_box_use_its_link_and_others_the_network() -> None:
    joined = replace(MACHINE, link=links()["nvlink-4"], network=links()["infiniband-ndr"], link_share=0.5)
    near, far = Collective("all_reduce", 8), Collective("all_reduce", 16)
    scattered = Collective("all_to_all", 4, spread=32)
    assert joined.link_for(near).bytes_per_s == pytest.approx(225e9)
    assert joined.link_for(far).bytes_per_s == joined.link_for(scattered).bytes_per_s == pytest.approx(25e9)
    rack = replace(joined, link=links()["nvlink-5-nvl72"])
    assert rack.link_for(far).bytes_per_s == pytest.approx(450e9)
    pair = replace(joined, link=links()["nvlink-4-bridge"])
    assert pair.link_for(near).bytes_per_s == pytest.approx(25e9)
    assert replace(joined, network=None).link_for(far) == joined.link_for(near)
    with pytest.raises(ScenarioError, match="none is known of Test"):
        MACHINE.link_for(near)
