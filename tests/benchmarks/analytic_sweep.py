"""The operator table as a sweep, beside GenZ: time per scenario, and counts where both count the same.

Run it with ``python -m tests.benchmarks.analytic_sweep``. Needs ``genz-llm`` for the comparison; without
it our own times are measured alone. Both describe Llama 3.1 8B on an H100 in bf16. GenZ counts
multiply-accumulates of matrix products and attention and writes binary megabytes; it leaves out norms,
the embedding lookup and elementwise operators, so their bytes are not compared. In a prefill it counts
attention's whole square, which no fused kernel computes, so decode steps are compared.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from core.analytic.datasheet import machine_from
from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.table import Operators
from core.catalog.accelerators import accelerator
from core.catalog.models import model
from core.units import FLOPS_PER_MAC, MIB
from tests.benchmarks.figure import Figure, machine_in_words, report

SCENARIOS: Final = 100_000
ROUNDS: Final = 5
PEER_CALLS: Final = 5
CONTEXT: Final = 4096
CONDITIONS: Final = f"Llama 3.1 8B, bf16, decode steps of H100; {machine_in_words()}"


def measure() -> list[Figure]:
    """Time both, alternating, and compare their counts."""
    peer = genz()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(sweep) / SCENARIOS)
        if peer is not None:
            theirs.append(seconds(lambda: [peer(1 + index) for index in range(PEER_CALLS)]) / PEER_CALLS)
    each = statistics.median(ours)
    ratio = statistics.median(theirs) / each if theirs else None
    peer_words = f"GenZ {statistics.median(theirs) * 1e3:.3g} ms" if theirs else "genz-llm is not installed"
    figures = [
        Figure(
            "a scenario of a sweep, table and time",
            each * 1e6,
            "us",
            "at most 100",
            f"{SCENARIOS:,} scenarios in one call, median of {ROUNDS}; {CONDITIONS}",
        ),
        Figure(
            "a scenario, GenZ / ours",
            ratio,
            "x",
            "at least 1,000",
            f"{peer_words} against {each * 1e6:.3g} us a scenario, medians of {ROUNDS} turns; {CONDITIONS}",
        ),
        Figure(
            "a scenario of a sweep on 8 chips",
            statistics.median([seconds(split_sweep) / SCENARIOS for _ in range(ROUNDS)]) * 1e6,
            "us",
            "at most 100",
            f"Llama 3.1 70B, tp 8, {SCENARIOS:,} scenarios in one call; {machine_in_words()}",
        ),
    ]
    return figures + (agreement() if peer is not None else [])


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sweep() -> object:
    """100,000 decode steps at different batches and contexts."""
    batch, context = grid()
    table = operators(
        model("llama-3.1-8b"), batch=batch, new_tokens=1, context=context, weights="bf16", kv="bf16"
    )
    return step_time(table, machine_from(accelerator("h100-sxm-80gb")))


def split_sweep() -> object:
    """The same on a chip of eight."""
    spec, plan = model("llama-3.1-70b"), ParallelPlan(tp=8)
    batch, context = grid()
    table = device_operators(
        spec,
        plan,
        stages(spec, plan)[0],
        batch=batch,
        new_tokens=1,
        context=context,
        weights="bf16",
        kv="bf16",
    )
    return step_time(table, machine_from(accelerator("h100-sxm-80gb")))


def grid() -> tuple[np.ndarray, np.ndarray]:
    """Batches and contexts of the sweep, one of each a scenario."""
    index = np.arange(SCENARIOS)
    return 1.0 + index % 250, 1.0 + (index // 250) * 100


# --- The peer -------------------------------------------------------------------------------------


def genz() -> Callable[[int], object] | None:
    """One decode step in GenZ at a batch; None where it is not installed."""
    if find_spec("GenZ") is None:
        return None
    warnings.simplefilter("ignore")
    peer: Any = import_module("GenZ")

    def run(batch: int) -> object:
        return peer.decode_moddeling(
            model="llama3_8b",
            batch_size=batch,
            Bb=1,
            input_tokens=CONTEXT,
            system_name="H100_GPU",
            bits="bf16",
        )

    return run


def agreement() -> list[Figure]:
    """Counts of both, as ratios, where their assumptions are the same."""
    peer: Any = import_module("GenZ")
    _, summary = peer.decode_moddeling(
        model="llama3_8b",
        batch_size=1,
        Bb=1,
        input_tokens=CONTEXT,
        system_name="H100_GPU",
        bits="bf16",
        model_profilling=True,
    )
    theirs: dict[str, float] = {str(name): float(value) for name, value in summary.iloc[0].items()}
    table = operators(
        model("llama-3.1-8b"), batch=1, new_tokens=1, context=CONTEXT, weights="bf16", kv="bf16"
    )
    pairs = {
        "FLOPs of a decode step": (
            float(table.total("flops")),
            FLOPS_PER_MAC * 1e6 * theirs["MACs (MFLOP)"],
            "matrix products and attention",
        ),
        "weights of a decode step": (
            matrix_bytes(table),
            MIB * theirs["Total Weights (MB)"],
            "matrices; GenZ leaves norms out",
        ),
        "cache read by a decode step": (
            float(table.total("kv_read_bytes")),
            MIB * theirs["KV Cache (MB)"],
            "all layers",
        ),
    }
    return [
        Figure(f"{name}, ours / GenZ", ours / other, "x", "1", f"{what}; {CONDITIONS}, context {CONTEXT:,}")
        for name, (ours, other, what) in pairs.items()
    ]


def matrix_bytes(table: Operators) -> float:
    """Weights that matrix products read."""
    rows = [row for row, kind in enumerate(table.kinds) if kind == "linear"]
    found: Any = table.weight_streamed_bytes[rows].sum()
    return float(found)


if __name__ == "__main__":
    report(measure)
