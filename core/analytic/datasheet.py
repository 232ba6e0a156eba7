"""A machine made of a data sheet: its peaks, times what software is known to reach of them.

The shares and fixed costs are priors: they were fitted to published measurements of many engines
(``core.analytic.validation``) and stand in ``assets/priors.csv``, one row an effect, with their spread and
how many measurements inform them. They describe a Python server (vLLM) on a GPU and a local runtime
(llama.cpp) elsewhere, as of today; another engine differs, and the app's own measurement beats them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, get_args

import numpy as np

from core.analytic.efficiency import QUANTITIES, centre_of, effects_of
from core.analytic.machine import Machine, Rate
from core.analytic.setting import FormatClass, Setting, format_class, wide_peak
from core.analytic.table import Kind
from core.catalog.accelerator import Accelerator
from core.catalog.assets import read_csv
from core.catalog.formats import STORAGE_FORMATS, NumberFormat
from core.units import GB

#: Operators of one layer, over which the fixed cost of a layer is spread evenly.
OPERATORS_PER_LAYER: Final = 12
_MICROSECOND: Final = 1e-6
#: Rows of a matrix product at which the padded rate is tabulated.
_ROWS: Final = tuple(float(2**power) for power in range(15))
#: The engine that a chip's numbers are given for, by its class; a Python server elsewhere.
_LOCAL_KINDS: Final = ("apple", "lpddr", "cpu")
#: Chips with matrix units pad the rows of a product to a tile.
_PADDING_KINDS: Final = ("hbm", "gddr", "amd", "other")
#: The year of the software that numbers are given for, and query heads that usually share a KV head.
_TODAY: Final = 2026.9
_USUAL_GROUP: Final = 4.0
#: Memory that a context, libraries and graphs take; a processor has none of its own.
#: https://github.com/ai-dynamo/aiconfigurator, 2026-11-29; published reserves run from 0.5 to 8 GB.
_FRAMEWORK_BYTES: Final = 3.5 * GB


@dataclass(frozen=True, slots=True)
class Prior:
    """One fitted effect, on the scale of its quantity, where effects add.

    Attributes:
        value: what it adds. spread: its standard error over sources; None where no measurement informs it.
        runs: measurements that inform it. source, date: where they are, and when it was fitted.
    """

    value: float
    spread: float | None
    runs: int
    source: str
    date: str


@cache
def priors() -> Mapping[str, Prior]:
    """Every fitted effect by name ("compute|chip:hbm"); what is not there is at its centre."""
    return MappingProxyType(
        {
            row["effect"]: Prior(
                value=float(row["value"]),
                spread=float(row["spread"]) if row["spread"] else None,
                runs=int(row["runs"]),
                source=row["source"],
                date=row["date"],
            )
            for row in read_csv("priors")
        }
    )


def reached(quantity: str, setting: Setting) -> float:
    """A quantity in its unit: the sum of its effects, taken back from their scale.

    >>> from core.catalog.accelerators import accelerator
    >>> at = setting_of(accelerator("h100-sxm-80gb"), "16")
    >>> 0.7 < reached("weight_bandwidth", at) < 0.95
    True
    """
    known = priors()
    total = sum(
        weight * (known[effect].value if effect in known else centre_of(effect))
        for effect, weight in effects_of(quantity, setting).items()
    )
    return float(QUANTITIES[quantity].number(total))


def setting_of(accelerator: Accelerator, format: FormatClass) -> Setting:
    """The setting that a chip's numbers are given for: a Python server, or a local runtime."""
    local = accelerator.kind in _LOCAL_KINDS
    style, engine = ("local", "llama.cpp") if local else ("python", "vllm")
    return Setting(accelerator, style, engine, format, _USUAL_GROUP, _TODAY)


def machine_from(accelerator: Accelerator) -> Machine:
    """Make a machine of a data sheet and the priors of its class.

    A linear operator on M rows reaches ``compute * peak * M / (M + tile)``; weights are read at
    ``weight_bandwidth`` of the peak bandwidth, the cache at ``kv_bandwidth``; each operator costs one
    twelfth of ``layer_us``. A format that the chip cannot multiply has no rate, and asking for it is an
    error, never another format's number. Ignored: waiting for other requests, prompts in chunks.

    >>> from core.catalog.accelerators import accelerator
    >>> machine = machine_from(accelerator("h100-sxm-80gb"))
    >>> 0.5 < machine.rate("attention", "bf16").bytes_per_s / machine.bandwidth_bytes_per_s < 0.95
    True
    """
    usual = setting_of(accelerator, "16")
    return Machine(
        id=accelerator.id,
        name=accelerator.name,
        origin="data sheet",
        capacity_bytes=accelerator.capacity_bytes,
        bandwidth_bytes_per_s=accelerator.bandwidth_bytes_per_s,
        peak_flops_per_s=accelerator.peak_flops_per_s,
        rates=_rates(accelerator, usual),
        step_fixed_s=reached("step_us", usual) * _MICROSECOND,
        link=accelerator.link,
        link_share=reached("link_bandwidth", usual),
        collective_fixed_s=reached("collective_us", usual) * _MICROSECOND,
        overhead_bytes=0.0 if accelerator.kind == "cpu" else _FRAMEWORK_BYTES,
        notes=_notes(accelerator),
        kind=accelerator.kind,
        announced=accelerator.announced,
    )


def _notes(chip: Accelerator) -> tuple[str, ...]:
    local = chip.kind in _LOCAL_KINDS
    notes = [
        "Predicted from the data sheet with efficiencies fitted to published measurements, for "
        f"{'a local runtime' if local else 'a Python server'}; an engine of your own may be a few tens of "
        "percent off."
    ]
    if chip.announced:
        notes.append(f"{chip.name} is announced: its figures are its vendor's, and nobody has measured them.")
    if chip.kind == "other":
        notes.append(
            f"No published measurement of a chip like {chip.name} informs its efficiencies; they are guesses."
        )
    return tuple(notes)


# --- Rates ----------------------------------------------------------------------------------------


def _rates(chip: Accelerator, usual: Setting) -> dict[tuple[Kind, str], Rate]:
    fixed_s = reached("layer_us", usual) * _MICROSECOND / OPERATORS_PER_LAYER
    bandwidth = chip.bandwidth_bytes_per_s
    streaming = Rate(
        fixed_s=fixed_s,
        bytes_per_s=reached("weight_bandwidth", usual) * bandwidth,
        rows=(1.0,),
        flops_per_s=(reached("compute", usual) * wide_peak(chip),),
    )
    sampling = Rate(
        fixed_s=fixed_s,
        bytes_per_s=min(reached("sampling_gb_per_s", usual) * GB, streaming.bytes_per_s),
        rows=(1.0,),
        flops_per_s=streaming.flops_per_s,
    )
    rates: dict[tuple[Kind, str], Rate] = {
        (kind, "*"): streaming for kind in get_args(Kind) if kind not in {"linear", "attention", "sample"}
    }
    rates["sample", "*"] = sampling
    classes: dict[FormatClass, Rate] = {}
    for record in STORAGE_FORMATS.values():
        peak = chip.peak_flops_per_s.get(record.compute)
        if peak is None:
            continue
        rates["linear", record.id] = _linear(record, peak, chip, classes)
        if "kv" in record.uses:
            rates["attention", record.id] = _attention(fixed_s, min(peak, wide_peak(chip)), usual)
    return rates


def _linear(record: NumberFormat, peak: float, chip: Accelerator, known: dict[FormatClass, Rate]) -> Rate:
    """The rate of matrix products with weights in a format; formats of one class differ in their peak."""
    kind = format_class(record)
    if kind not in known:
        known[kind] = _share_of_one(setting_of(chip, kind))
    share = known[kind]
    return Rate(
        share.fixed_s,
        share.bytes_per_s,
        share.rows,
        tuple(np.asarray(share.flops_per_s) * peak),
    )


def _share_of_one(at: Setting) -> Rate:
    """What products of a class of formats reach, of a peak of one FLOP a second."""
    share = reached("compute", at)
    tile = reached("tile_tokens", at) if at.chip.kind in _PADDING_KINDS else 0.0
    return Rate(
        fixed_s=reached("layer_us", at) * _MICROSECOND / OPERATORS_PER_LAYER,
        bytes_per_s=reached("weight_bandwidth", at) * at.chip.bandwidth_bytes_per_s,
        rows=_ROWS,
        flops_per_s=tuple(share * rows / (rows + tile) for rows in _ROWS),
    )


def _attention(fixed_s: float, peak: float, usual: Setting) -> Rate:
    return Rate(
        fixed_s=fixed_s,
        bytes_per_s=reached("kv_bandwidth", usual) * usual.chip.bandwidth_bytes_per_s,
        rows=(1.0,),
        flops_per_s=(reached("attention_compute", usual) * reached("compute", usual) * peak,),
    )
