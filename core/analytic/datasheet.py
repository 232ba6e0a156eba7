"""A machine made of a data sheet: its peaks, times what software is known to reach of them.

The shares and fixed costs are priors: they were fitted to published measurements of many engines
and stand in ``assets/priors.csv``, one row each, with their spread. They describe a Python server
(vLLM, SGLang) on a GPU and a local runtime on a CPU; another engine differs, and the app's own
measurement beats them where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, get_args

from core.analytic.machine import Machine, Rate
from core.analytic.table import Kind
from core.catalog.accelerator import Accelerator
from core.catalog.assets import read_csv
from core.catalog.formats import FORMATS, NumberFormat
from core.units import GB

#: Operators of one layer, over which the fixed cost of a layer is spread evenly.
_OPERATORS_PER_LAYER: Final = 12
_MICROSECOND: Final = 1e-6
#: Rows of a matrix product at which the padded rate is tabulated.
_ROWS: Final = tuple(float(2**power) for power in range(15))


@dataclass(frozen=True, slots=True)
class Prior:
    """One fitted number: its value, its standard error where it has one, and where it comes from."""

    value: float
    spread: float | None
    unit: str
    source: str
    note: str


@cache
def priors(kind: str) -> Mapping[str, Prior]:
    """The priors of a class of chips ("hbm", "gddr", "amd", "cpu"), with those that all share.

    A row of the class itself replaces the shared one.
    """
    return {
        row["prior"]: Prior(
            value=float(row["value"]),
            spread=float(row["spread"]) if row["spread"] else None,
            unit=row["unit"],
            source=row["source"],
            note=row["note"],
        )
        for row in read_csv("priors")
        if row["kind"] in {kind, "any"}
    }


def machine_from(accelerator: Accelerator) -> Machine:
    """Make a machine of a data sheet and the priors of its class.

    A linear operator on M rows reaches ``compute * peak * M / (M + tile)``; weights are read at
    ``bandwidth_16bit`` or ``bandwidth_4bit`` of the peak bandwidth, the cache at ``bandwidth_kv``;
    each of a layer's operators costs one twelfth of ``layer_overhead``. A format that the chip cannot
    multiply has no rate, and asking for it is an error, never another format's number. Ignored: the
    cost of each further sequence of a step, and the dearer launches of a prefill.

    >>> from core.catalog.accelerators import accelerator
    >>> machine_from(accelerator("h100-sxm-80gb")).rate("attention", "bf16").bytes_per_s
    2680000000000.0
    """
    value = {name: prior.value for name, prior in priors(accelerator.kind).items()}
    fixed_s = value["layer_overhead"] * _MICROSECOND / _OPERATORS_PER_LAYER
    streaming = Rate(
        fixed_s=fixed_s,
        bytes_per_s=value["bandwidth_16bit"] * accelerator.bandwidth_bytes_per_s,
        rows=(1.0,),
        flops_per_s=(max(accelerator.peak_flops_per_s.values()),),
    )
    rates: dict[tuple[Kind, str], Rate] = {
        (kind, "*"): streaming for kind in get_args(Kind) if kind not in {"linear", "attention"}
    }
    for record in FORMATS.values():
        peak = accelerator.peak_flops_per_s.get(record.compute)
        if peak is None:
            continue
        rates["linear", record.id] = _linear(record, peak, fixed_s, accelerator, value)
        if "kv" in record.uses:
            rates["attention", record.id] = _attention(peak, fixed_s, accelerator, value)
    return Machine(
        id=accelerator.id,
        name=accelerator.name,
        origin="data sheet",
        capacity_bytes=accelerator.capacity_bytes,
        bandwidth_bytes_per_s=accelerator.bandwidth_bytes_per_s,
        peak_flops_per_s=accelerator.peak_flops_per_s,
        rates=rates,
        step_fixed_s=value["step_overhead"] * _MICROSECOND,
        link=accelerator.link,
        overhead_bytes=value["framework_memory"] * GB,
        notes=(_NOTE,),
    )


_NOTE: Final = (
    "Predicted from the data sheet with efficiencies fitted to published measurements; a serving "
    "engine of your own may be a few tens of percent off."
)


def _linear(
    record: NumberFormat, peak: float, fixed_s: float, chip: Accelerator, value: Mapping[str, float]
) -> Rate:
    coarse = record.payload_bits == 4
    share = value["compute_4bit" if coarse else "compute"]
    tile = value["tile_tokens"]
    return Rate(
        fixed_s=fixed_s,
        bytes_per_s=value["bandwidth_4bit" if coarse else "bandwidth_16bit"] * chip.bandwidth_bytes_per_s,
        rows=_ROWS,
        flops_per_s=tuple(share * peak * rows / (rows + tile) for rows in _ROWS),
    )


def _attention(peak: float, fixed_s: float, chip: Accelerator, value: Mapping[str, float]) -> Rate:
    return Rate(
        fixed_s=fixed_s,
        bytes_per_s=value["bandwidth_kv"] * chip.bandwidth_bytes_per_s,
        rows=(1.0,),
        flops_per_s=(value["attention_compute"] * value["compute"] * peak,),
    )
