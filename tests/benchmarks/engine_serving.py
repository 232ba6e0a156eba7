"""Serving a trace with the embedded model: policies, and a paged cache beside a contiguous one.

Run it with ``python -m tests.benchmarks.engine_serving``. Lengths of prompts and answers are exponential
and seeded; those who are compared take turns, and ratios are of medians. What is counted in steps does
not depend on the machine.
"""

from __future__ import annotations

import random
import statistics
from typing import Final

import torch

from core.analytic.batching_policy import POLICIES
from core.engine.engine import CacheKind, Engine
from core.engine.files.models import EMBEDDED
from core.engine.records import Request, Service
from core.engine.scheduler import Serving
from tests.benchmarks.figure import Figure, machine_in_words, report

THREADS: Final = 2
#: Its products take about as long for eight rows as for one.
WEIGHTS: Final = "int8-dynamic"
ROUNDS: Final = 3
REQUESTS: Final = 32
PLACES: Final = 8
MEAN_PROMPT: Final = 48
MEAN_ANSWER: Final = 48
MOST: Final = 256
STEP_TOKENS: Final = 256
#: Sequences of the comparison of a step, and tokens of each before and after.
STEP_PROMPT: Final = 128
STEP_ANSWER: Final = 24


def trace() -> list[Request]:
    """Requests that all wait from the start, with exponential lengths."""
    draw = random.Random(0)  # noqa: S311 - a trace, not a secret
    lengths = [
        [1 + min(int(draw.expovariate(1 / mean)), MOST) for mean in (MEAN_PROMPT, MEAN_ANSWER)]
        for _ in range(REQUESTS)
    ]
    return [
        Request([1000 + (37 * i + 101 * j) % 20_000 for j in range(prompt)], answer, end_tokens=frozenset())
        for i, (prompt, answer) in enumerate(lengths)
    ]


def measure() -> list[Figure]:
    """Serve the trace in every way and compare."""
    torch.set_num_threads(THREADS)
    caches: tuple[CacheKind, ...] = ("contiguous", "paged")
    engines = {
        cache: Engine.load(EMBEDDED, weights=WEIGHTS, kv="bf16", cache=cache, threads=THREADS)
        for cache in caches
    }
    return [*by_policy(engines["paged"]), in_the_same_memory(engines), step_ratio(engines)]


def by_policy(engine: Engine) -> list[Figure]:
    """Continuous against static: time, and steps."""
    seconds: dict[str, list[float]] = {"static": [], "continuous": []}
    steps = {}
    for _ in range(ROUNDS):
        for name, times_s in seconds.items():
            service = engine.serve(
                trace(),
                Serving(POLICIES[name], PLACES, STEP_TOKENS, cache_tokens=2 * PLACES * MOST, share=False),
            )
            times_s.append(sum(step.host_s for step in service.steps))
            steps[name] = len(service.steps)
    gain = statistics.median(seconds["static"]) / statistics.median(seconds["continuous"])
    conditions = f"{REQUESTS} requests, {PLACES} places, {ROUNDS} rounds in turns, {words()}"
    return [
        Figure("continuous / static batching, tokens per second", gain, "x", "at least 2", conditions),
        Figure(
            "static / continuous batching, steps",
            steps["static"] / steps["continuous"],
            "x",
            "at least 2",
            conditions,
        ),
    ]


def in_the_same_memory(engines: dict[CacheKind, Engine]) -> Figure:
    """How many more sequences run at once, on average, when the same memory is paged."""
    longest = max(len(request.prompt_ids) + request.max_tokens for request in trace())

    def running(cache: CacheKind) -> float:
        serving = Serving(
            max_sequences=REQUESTS, step_tokens=STEP_TOKENS, cache_tokens=4 * longest, share=False
        )
        service = engines[cache].serve(trace(), serving)
        return statistics.fmean(step.num_sequences for step in service.steps)

    conditions = f"room for 4 of the longest request, {longest} tokens each; mean over steps; {words()}"
    return Figure(
        "sequences at once, paged / contiguous",
        running("paged") / running("contiguous"),
        "x",
        "at least 2",
        conditions,
    )


def step_ratio(engines: dict[CacheKind, Engine]) -> Figure:
    """Seconds of a decode step of several sequences, paged against contiguous."""
    requests = [
        Request(
            [1000 + (37 * i + 101 * j) % 20_000 for j in range(STEP_PROMPT)],
            STEP_ANSWER,
            end_tokens=frozenset(),
        )
        for i in range(PLACES)
    ]
    times_s: dict[CacheKind, list[float]] = {cache: [] for cache in engines}
    for index in range(1 + 2 * ROUNDS):  # the first round warms up
        for cache, engine in engines.items():
            service = engine.serve(requests, Serving(max_sequences=PLACES, share=False))
            if index:
                times_s[cache].append(statistics.median(decode_s(service)))
    value = statistics.median(times_s["paged"]) / statistics.median(times_s["contiguous"])
    rounds = sorted(a / b for a, b in zip(times_s["paged"], times_s["contiguous"], strict=True))
    spread = f"by round {rounds[0]:.2f} to {rounds[-1]:.2f}"
    conditions = f"{PLACES} sequences of {STEP_PROMPT} and more tokens, {spread}; {words()}"
    return Figure("decode step, paged / contiguous", value, "x", "at most 1.05", conditions)


def decode_s(service: Service) -> list[float]:
    """Seconds of the steps in which everybody writes."""
    return [step.host_s for step in service.steps if step.kind == "decode" and step.num_sequences == PLACES]


def words() -> str:
    """The rest of the conditions."""
    return f"{EMBEDDED} {WEIGHTS}, torch {torch.__version__}, {THREADS} threads, {machine_in_words()}"


if __name__ == "__main__":
    report(measure)
