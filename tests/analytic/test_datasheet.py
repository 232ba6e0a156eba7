"""A data sheet's machine reaches a share of its peaks, and has no rate for what it cannot do."""

from typing import get_args

import numpy as np
import pytest

from core.analytic.datasheet import machine_from, priors, reached, setting_of
from core.analytic.efficiency import QUANTITIES, centre_of, effects_of, spread_of
from core.analytic.setting import format_class
from core.analytic.table import Kind
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.custom_chip import KINDS
from core.catalog.formats import STORAGE_FORMATS


def test_every_prior_is_an_effect_with_its_origin() -> None:
    assert len(priors()) > 100
    for effect, prior in priors().items():
        assert effect.partition("|")[0] in QUANTITIES
        assert spread_of(effect) > 0
        assert "assets/benchmarks.csv" in prior.source
        assert prior.runs > 0
        assert prior.date.startswith("20")


def test_what_no_measurement_informs_stays_at_its_centre() -> None:
    tpu = setting_of(accelerator("tpu-v5e"), "16")
    unknown = [e for q in QUANTITIES for e in effects_of(q, tpu) if e not in priors()]
    assert "weight_bandwidth|chip:other" in unknown
    assert all(centre_of(effect) == 0 for effect in unknown)
    assert 0.6 < reached("weight_bandwidth", tpu) < 0.95


@pytest.mark.parametrize("id", list(accelerators()))
def test_no_rate_exceeds_its_peak(id: str) -> None:
    machine = machine_from(accelerator(id))
    most = max(machine.peak_flops_per_s.values())
    for rate in machine.rates.values():
        assert rate.bytes_per_s < machine.bandwidth_bytes_per_s
        assert max(rate.flops_per_s) <= most
        assert rate.fixed_s > 0
    assert 0 < machine.link_share < 1
    assert machine.announced == accelerator(id).announced


def test_every_class_of_chips_has_a_machine_and_says_what_it_is_of() -> None:
    machines = [machine_from(chip) for chip in accelerators().values()]
    assert {machine.kind for machine in machines} == set(KINDS)
    assert "guesses" in " ".join(machine_from(accelerator("gaudi3")).notes)
    assert "nobody has measured" in " ".join(machine_from(accelerator("rubin-announced")).notes)
    assert "a local runtime" in machine_from(accelerator("apple-m2-ultra")).notes[0]


def test_every_kind_of_operator_has_a_rate() -> None:
    machine = machine_from(accelerator("h100-sxm-80gb"))
    assert all(machine.rate(kind, "bf16").bytes_per_s > 0 for kind in get_args(Kind))


def test_a_format_without_a_peak_has_no_rate() -> None:
    t4 = machine_from(accelerator("t4"))
    for kind in ("linear", "attention"):
        with pytest.raises(KeyError):
            t4.rate(kind, "bf16")
    with pytest.raises(KeyError):
        t4.rate("linear", "int4")  # its product is bf16
    assert t4.rate("linear", "int8-dynamic").bytes_per_s > 0


def test_a_few_rows_are_padded_to_a_tile() -> None:
    chip = accelerator("h100-sxm-80gb")
    one, many = machine_from(chip).rate("linear", "bf16").flops_at(np.array([1.0, 8192.0]))
    share = reached("compute", setting_of(chip, "16"))
    assert one < many / 3
    assert many == pytest.approx(share * 989.4e12, rel=2e-3)
    processor = machine_from(accelerator("epyc-9654"))
    assert len(set(processor.rate("linear", "bf16").flops_per_s)) == 1  # pads nothing
    assert processor.overhead_bytes == 0 < machine_from(chip).overhead_bytes


def test_a_format_is_multiplied_as_its_class_says() -> None:
    classes = {key: format_class(STORAGE_FORMATS[key]) for key in ("bf16", "q8_0", "q4_k", "fp8", "nvfp4")}
    assert classes == {"bf16": "16", "q8_0": "w8", "q4_k": "q4", "fp8": "fp8", "nvfp4": "fp4"}
