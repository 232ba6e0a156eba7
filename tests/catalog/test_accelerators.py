"""Every accelerator is a set of facts with a source, and what nobody published stays unknown."""

import pytest

from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerator, accelerators, in_base_units, links
from core.catalog.custom_chip import KINDS
from core.catalog.scenario import Scenario
from core.errors import ScenarioError
from core.units import GIB, MIB

ALL = list(accelerators())
#: Chips whose 8-bit rate is not twice their 16-bit rate, and what it is.
OTHER_FP8_RATES = {
    "rubin-announced": 4.375,
    "gaudi3": 1.0,
    "tpu-v6e": 1.0,
    "inferentia2": 1.0,
    "trainium2": 1.948,
    "trainium3": 3.751,
    "l40s": 2.025,
}
#: Chips whose 16-bit rates differ from each other.
UNLIKE_16_BIT = {"gaudi3", "xeon-8480plus", "xeon-8481c", "xeon-8488c", "raspberry-pi-5"}


@pytest.mark.parametrize("id", ALL)
def test_every_fact_has_a_source_a_date_and_a_positive_value(id: str) -> None:
    chip = accelerator(id)
    assert chip.kind in KINDS
    assert {"bandwidth", "year"} <= set(chip.facts)
    assert {"fp16", "bf16"} & set(chip.facts)
    assert chip.vendor and chip.architecture and chip.form_factor
    for fact in chip.facts.values():
        assert fact.source.startswith("https://")
        assert fact.date[:2] == "20" and len(fact.date) == 10
        assert in_base_units(fact) > 0


@pytest.mark.parametrize("id", ALL)
def test_peaks_are_dense_and_grow_with_fewer_bits(id: str) -> None:
    chip = accelerator(id)
    peaks = chip.peak_flops_per_s
    half = peaks.get("bf16", peaks.get("fp16", 0.0))
    if chip.kind in {"hbm", "gddr", "amd"}:
        assert peaks["fp32"] < half < (5.1e15 if chip.announced else 2.6e15)  # the largest on sale
    if id not in UNLIKE_16_BIT and {"fp16", "bf16"} <= set(peaks):
        assert peaks["fp16"] == peaks["bf16"]
    if "fp8" in peaks:
        assert peaks["fp8"] / half == pytest.approx(OTHER_FP8_RATES.get(id, 2.0), rel=2e-3)


def test_the_h100_is_the_dense_one_way_one() -> None:
    chip = accelerator("h100-sxm-80gb")
    assert chip.peak_flops_per_s["bf16"] == pytest.approx(989.4e12)
    assert chip.bandwidth_bytes_per_s == pytest.approx(3.35e12)
    assert chip.capacity_bytes == 81_559 * MIB
    assert chip.power_w == 700
    assert chip.link is not None
    assert chip.link.bandwidth_bytes_per_s == pytest.approx(450e9)


def test_what_is_not_known_is_not_derived() -> None:
    assert accelerator("rtx-4080").capacity_bytes is None
    assert "bf16" not in accelerator("t4").peak_flops_per_s
    assert "fp8" not in accelerator("a100-sxm-80gb").peak_flops_per_s
    assert "int4" not in accelerator("h100-sxm-80gb").peak_flops_per_s
    assert accelerator("apple-m2-ultra").power_w is None
    assert accelerator("apple-m2-ultra").link is None
    assert accelerator("gb300").price is None
    assert links()["infinity-fabric-4"].latency_s is None


def test_what_nobody_measured_is_marked() -> None:
    announced = {key for key in ALL if accelerator(key).announced}
    assert announced == {"b100", "rubin-announced", "mi455x-announced"}


def test_a_price_is_a_dated_span() -> None:
    price = accelerator("h100-sxm-80gb").price
    assert price is not None
    assert (price.low_usd_per_hour, price.high_usd_per_hour) == (2.60, 12.29)
    assert (price.low_date, price.high_date) == ("2026-09-20", "2026-11-09")
    prices = [chip.price for chip in accelerators().values() if chip.price]
    assert len(prices) >= 25
    assert all(0 < p.low_usd_per_hour <= p.high_usd_per_hour for p in prices)


@pytest.mark.parametrize("id", [key for key in ALL if accelerator(key).capacity_bytes])
def test_the_usable_memory_is_near_the_number_on_the_box(id: str) -> None:
    chip = accelerator(id)
    assert chip.capacity_bytes is not None
    # Metal keeps a quarter or a third of a Mac's memory from the GPU.
    least = 0.66 if chip.kind == "apple" else 0.91
    assert least <= chip.capacity_bytes / GIB / chip.facts["memory"].value <= 1.0


def test_links_have_sources() -> None:
    assert all(link.source.startswith("https://") and link.date for link in links().values())


def test_unknown_accelerators_are_sentences() -> None:
    assert Scenario().accelerator in accelerators()
    with pytest.raises(
        ScenarioError, match=r"must be one of the \d+ known here; got 'h100'\. Did you mean h100-"
    ):
        accelerator("h100")
    with pytest.raises(ScenarioError, match="This computer has no data sheet; its speed is measured"):
        accelerator(THIS_COMPUTER)
