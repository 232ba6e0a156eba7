"""Every accelerator is a set of facts with a source, and what nobody published stays unknown."""

import pytest

from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerator, accelerators, in_base_units, links
from core.catalog.scenario import Scenario
from core.errors import ScenarioError
from core.units import GIB, MIB


@pytest.mark.parametrize("id", list(accelerators()))
def test_every_fact_has_a_source_a_date_and_a_positive_value(id: str) -> None:
    chip = accelerator(id)
    assert chip.link is not None
    assert {"memory", "bandwidth", "fp32", "fp16", "tdp"} <= set(chip.facts)
    for fact in chip.facts.values():
        assert fact.source.startswith("https://")
        assert fact.date.startswith("2026-")
        assert in_base_units(fact) > 0


@pytest.mark.parametrize("id", list(accelerators()))
def test_peaks_are_dense_and_grow_with_fewer_bits(id: str) -> None:
    peaks = accelerator(id).peak_flops_per_s
    assert peaks["fp32"] < peaks["fp16"] < 2.6e15  # the largest dense 16-bit rate on sale
    assert peaks.get("bf16", peaks["fp16"]) == peaks["fp16"]
    assert peaks.get("fp8", 2 * peaks["fp16"]) == pytest.approx(2 * peaks["fp16"], rel=2e-3)


def test_the_h100_is_the_dense_one_way_one() -> None:
    chip = accelerator("h100-sxm-80gb")
    assert chip.peak_flops_per_s["bf16"] == pytest.approx(989.4e12)
    assert chip.bandwidth_bytes_per_s == pytest.approx(3.35e12)
    assert chip.capacity_bytes == 81_559 * MIB
    assert chip.link is not None
    assert chip.link.bandwidth_bytes_per_s == pytest.approx(450e9)


def test_what_is_not_known_is_not_derived() -> None:
    assert accelerator("rtx-4090").capacity_bytes is None
    assert "bf16" not in accelerator("t4").peak_flops_per_s
    assert "fp8" not in accelerator("a100-sxm-80gb").peak_flops_per_s
    assert links()["infinity-fabric-4"].latency_s is None


@pytest.mark.parametrize("id", sorted(set(accelerators()) - {"rtx-4090"}))
def test_the_usable_memory_is_near_the_number_on_the_box(id: str) -> None:
    chip = accelerator(id)
    assert chip.capacity_bytes is not None
    assert 0.93 <= chip.capacity_bytes / GIB / chip.facts["memory"].value <= 1.0


def test_links_have_sources() -> None:
    assert all(link.source.startswith("https://") and link.date for link in links().values())


def test_unknown_accelerators_are_sentences() -> None:
    assert Scenario().accelerator in accelerators()
    with pytest.raises(ScenarioError, match=r"must be one of t4, .*; got 'h100'"):
        accelerator("h100")
    with pytest.raises(ScenarioError, match="This computer has no data sheet; its speed is measured"):
        accelerator(THIS_COMPUTER)
