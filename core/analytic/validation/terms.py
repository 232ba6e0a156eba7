"""The predictor as arrays: all runs at once, from the numbers that efficiencies come to.

It is ``latency.step_time`` on a data sheet's machine, written out in its sums so that a fit can call it
thousands of times; ``tests/analytic/validation`` holds the two together. What a data sheet's machine does
not have, published rows need: prompts in chunks, attention that is not fused, an eager framework whose
launches overlap with the work, and servers that take one request after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.efficiency import QUANTITIES
from core.analytic.setting import wide_peak
from core.analytic.validation.workload import PASS_FIELDS, PassWork, Workload
from core.units import GB

Array = NDArray[np.float64]

#: Operators that the fixed cost of a layer is spread over.
OPERATORS_PER_LAYER: Final = 12
_US: Final = 1e-6
_MS: Final = 1e-3
#: The parts of a pass that are fixed costs: of its operators, and of the pass as a whole.
FIXED: Final = ("layers", "pass")
#: How launches and work overlap in an eager framework: the larger of the two, smoothed.
OVERLAP: Final = 3.0
#: Prefills that a new request waits for at a server that is busy with others: its own, half of another.
QUEUED_PREFILLS: Final = 1.5
#: Chips without matrix units read rows one by one and pad nothing.
_PADDING_KINDS: Final = ("hbm", "gddr", "amd", "other")
#: Where a chip has no link of its own: PCIe 4.0 x16, one way.
_NO_LINK: Final = (31.5e9, 1e-6)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The runs as arrays: what their passes ask for, and what their chips and conditions are."""

    decode: Mapping[str, Array]
    prefill: Mapping[str, Array]
    bandwidth: Array
    peak: Array
    wide_peak: Array
    link: Array
    link_latency_s: Array
    pads: NDArray[np.bool_]
    eager: NDArray[np.bool_]
    serving: NDArray[np.bool_]
    answers_over_http: NDArray[np.bool_]
    batch: Array
    devices: Array
    input_tokens: Array
    output_tokens: Array
    weight_bytes: Array
    metric: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.batch)


def columns(loads: Sequence[Workload]) -> Columns:
    """Stack workloads."""

    def stack(values: list[float]) -> Array:
        return np.array(values, np.float64)

    def passes(works: list[PassWork]) -> dict[str, Array]:
        return {name: stack([getattr(work, name) for work in works]) for name in PASS_FIELDS}

    runs = [load.run for load in loads]
    links = [_link(load) for load in loads]
    return Columns(
        decode=passes([load.decode for load in loads]),
        prefill=passes([load.prefill for load in loads]),
        bandwidth=stack([run.chip.bandwidth_bytes_per_s for run in runs]),
        peak=stack([load.setting.peak_flops_per_s for load in loads]),
        wide_peak=stack([wide_peak(run.chip) for run in runs]),
        link=stack([bandwidth for bandwidth, _ in links]),
        link_latency_s=stack([latency for _, latency in links]),
        pads=np.array([run.chip.kind in _PADDING_KINDS for run in runs]),
        eager=np.array([run.engine.style == "eager" for run in runs]),
        serving=np.array([run.serving for run in runs]),
        answers_over_http=np.array([_over_http(load) for load in loads]),
        batch=stack([load.batch for load in loads]),
        devices=stack([float(run.devices) for run in runs]),
        input_tokens=stack([max(run.input_tokens, 1.0) for run in runs]),
        output_tokens=stack([max(run.output_tokens, 1.0) for run in runs]),
        weight_bytes=stack([load.weight_bytes for load in loads]),
        metric=np.array([run.metric for run in runs]),
    )


def _link(load: Workload) -> tuple[float, float]:
    link = load.run.chip.link
    if link is None or (load.setting.link_class == "pcie" and "pcie" not in link.id):
        return _NO_LINK
    return link.bandwidth_bytes_per_s, link.latency_s or 0.0


def _over_http(load: Workload) -> bool:
    """Whether a server stands between the clock and the engine."""
    engine, text = load.run.engine, load.run.engine_text.lower()
    return engine.style == "python" or engine.name in {"nim", "lmdeploy"} or "server" in text or "web" in text


# --- Time -----------------------------------------------------------------------------------------


def log_prediction(at: Columns, values: Mapping[str, Array]) -> Array:
    """The logarithm of each run's metric, from the quantities on their scales, one value a run."""
    now = {name: QUANTITIES[name].number(value) for name, value in values.items()}
    return np.asarray(np.log(metric(at, times_s(at, now))))


def times_s(at: Columns, now: Mapping[str, Array]) -> dict[str, Array]:
    """Seconds of each run's step and first pass, and of a request's first token and those after it.

    Args:
        at: the runs.
        now: the quantities in their units, one value a run.
    """
    step, first = pass_s(at, now, at.decode), pass_s(at, now, at.prefill)
    request = now["request_ms"] * _MS * at.answers_over_http
    one = first / at.batch
    busy = at.serving & (at.batch > 1)
    return {
        "step": step,
        "first": first,
        "ttft": np.where(busy, one * QUEUED_PREFILLS, first) + request,
        "tpot": step + np.where(busy, one * (at.batch - 1) / at.output_tokens, 0.0),
    }


def metric(at: Columns, times: Mapping[str, Array]) -> Array:
    """Each run's metric in its own unit, from the times of ``times_s``."""
    step, first, ttft, tpot = (times[name] for name in ("step", "first", "ttft", "tpot"))
    total = at.batch * at.output_tokens / (ttft + (at.output_tokens - 1) * tpot)
    choices: dict[str, Array] = {
        "decode_tok_s_per_user": 1 / step,
        "tpot_ms": tpot / _MS,
        "mbu": at.weight_bytes / at.bandwidth / step,
        "output_tok_s_total": total,
        "output_tok_s_per_gpu": total / at.devices,
        "requests_per_s": total / at.output_tokens,
        "prefill_tok_s": at.batch * at.input_tokens / first,
        "ttft_ms": ttft / _MS,
    }
    return np.asarray(np.select([at.metric == name for name in choices], list(choices.values())))


def pass_s(at: Columns, now: Mapping[str, Array], work: Mapping[str, Array]) -> Array:
    """Seconds of one pass: the longer of bytes and FLOPs by kind of operator, links, and fixed costs."""
    parts = parts_s(at, now, work)
    fixed = parts["layers"] + parts["pass"]
    busy = reduce(np.add, [seconds for name, seconds in parts.items() if name not in FIXED])
    overlapped = (busy**OVERLAP + fixed**OVERLAP) ** (1 / OVERLAP)
    return np.asarray(np.where(at.eager, overlapped, busy + fixed))


def parts_s(at: Columns, now: Mapping[str, Array], work: Mapping[str, Array]) -> dict[str, Array]:
    """The same pass by what takes its seconds; those of ``FIXED`` do not grow with bytes or FLOPs."""
    weights = now["weight_bandwidth"] * at.bandwidth
    tile = now["tile_tokens"] * at.pads
    cache = now["kv_bandwidth"] * at.bandwidth
    return {
        "linear": np.maximum(
            work["linear_bytes"] / weights,
            (work["linear_flops"] + tile * work["padding_flops"]) / (now["compute"] * at.peak),
        ),
        "head": np.maximum(
            work["head_bytes"] / weights,
            (work["head_flops"] + tile * work["head_padding_flops"]) / (now["compute"] * at.wide_peak),
        ),
        "attention": np.maximum(
            work["kv_bytes"] / cache,
            work["attention_flops"] / (now["attention_compute"] * now["compute"] * at.wide_peak),
        ),
        "scores": now["score_bytes"] * work["scores"] / cache,
        "other": work["other_bytes"] / weights,
        "sampling": work["logit_bytes"] / (now["sampling_gb_per_s"] * GB),
        "link": _link_s(at, now, work),
        "layers": work["operators"] / OPERATORS_PER_LAYER * now["layer_us"] * _US,
        "pass": work["passes"] * now["step_us"] * _US,
    }


def _link_s(at: Columns, now: Mapping[str, Array], work: Mapping[str, Array]) -> Array:
    rate = now["link_bandwidth"] * at.link
    ring = work["ring_steps"] * at.link_latency_s + work["ring_bytes"] / rate
    shot = work["exchanges"] * at.link_latency_s + work["shot_bytes"] / rate
    return work["exchanges"] * now["collective_us"] * _US + np.minimum(ring, shot)
