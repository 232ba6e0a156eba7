"""A data sheet's machine reaches a share of its peaks, and has no rate for what it cannot do."""

from typing import get_args

import numpy as np
import pytest

from core.analytic.datasheet import machine_from, priors
from core.analytic.table import Kind
from core.catalog.accelerators import accelerator, accelerators

KINDS = ["hbm", "gddr", "amd", "cpu"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_has_every_prior_with_a_source(kind: str) -> None:
    assert set(priors(kind)) == set(priors("hbm"))
    assert all(prior.source and prior.unit for prior in priors(kind).values())
    shares = [prior.value for prior in priors(kind).values() if prior.unit == "share"]
    assert all(0 < share < 1 for share in shares)


@pytest.mark.parametrize("id", list(accelerators()))
def test_no_rate_exceeds_its_peak(id: str) -> None:
    machine = machine_from(accelerator(id))
    most = max(machine.peak_flops_per_s.values())
    for rate in machine.rates.values():
        assert rate.bytes_per_s < machine.bandwidth_bytes_per_s
        assert max(rate.flops_per_s) <= most
        assert rate.fixed_s > 0


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
    rate = machine_from(accelerator("h100-sxm-80gb")).rate("linear", "bf16")
    one, many = rate.flops_at(np.array([1.0, 8192.0]))
    assert one < many / 5
    assert many == pytest.approx(0.56 * 989.4e12, rel=1e-3)
    processor = priors("cpu")
    assert processor["tile_tokens"].value == processor["framework_memory"].value == 0
