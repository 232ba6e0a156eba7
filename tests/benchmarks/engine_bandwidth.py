"""How much of the memory's read bandwidth a decode step uses, for a model of some hundred million parameters.

Run it with ``python -m tests.benchmarks.engine_bandwidth``. The weights are seeded noise; the bandwidth is
read right before and right after each round, and the larger of the two counts. Every figure is the
median of its rounds.
"""

from __future__ import annotations

import statistics
from typing import Final

import torch

from core.engine.engine import Engine
from core.lab.worker.ceilings import MemoryProbe
from tests.benchmarks.figure import Figure, machine_in_words, report

THREADS: Final = 2
MODEL: Final = "qwen3-0.6b"
FORMATS: Final = {"bf16": "bf16", "int8": "bf16", "int8-dynamic": "bf16", "int4": "bf16"}
TARGETS: Final = {"bf16": "at least 0.8", "int8": "at least 0.8, or the next", "int8-dynamic": "at least 0.8"}
CONTEXT: Final = 256
STEPS: Final = 30
ROUNDS: Final = 5


def measure() -> list[Figure]:
    """Every format on its own: two such models do not fit a small machine."""
    torch.set_num_threads(THREADS)
    probe = MemoryProbe("cpu")
    return [bandwidth_used(weights, kv, probe) for weights, kv in FORMATS.items()]


def bandwidth_used(weights: str, kv: str, probe: MemoryProbe) -> Figure:
    """Bytes of weights and cache that a step moves, over its time and the read bandwidth beside it."""
    engine = Engine.load(f"shape:{MODEL}", weights=weights, kv=kv, threads=THREADS)
    streamed = sum(entry["weight_streamed_bytes"] for entry in engine.tensor_bytes().values())
    pool = engine.reserve(CONTEXT)
    cache = sum(pool.traffic_bytes([CONTEXT] * engine.spec.num_layers, 1))
    used, read = [], []
    for _ in range(ROUNDS):
        before = probe.read_bytes_per_s()
        step_s = statistics.median(engine.measure_steps(CONTEXT, steps=STEPS))
        read.append(max(before, probe.read_bytes_per_s()))
        used.append((streamed + cache) / step_s / read[-1])
    conditions = (
        f"{MODEL} ({streamed / 1e6:.0f} MB a step), context {CONTEXT}, {ROUNDS} rounds of {STEPS} steps, "
        f"by round {min(used):.2f} to {max(used):.2f}, "
        f"read {min(read) / 1e9:.1f} to {max(read) / 1e9:.1f} GB/s, "
        f"torch {torch.__version__}, {THREADS} threads, {machine_in_words()}"
    )
    name = f"decode, part of the read bandwidth, {weights}"
    return Figure(name, statistics.median(used), "", TARGETS.get(weights, "none"), conditions)


if __name__ == "__main__":
    report(measure)
