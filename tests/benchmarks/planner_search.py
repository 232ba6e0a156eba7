"""How long the planner's search takes for 100,000 candidates, ranking and front included."""

from __future__ import annotations

import time
from statistics import median

from core.analytic.search.candidates import search
from core.analytic.search.ranking import front, ranked
from core.analytic.search.request import Wanted
from core.catalog.models import model
from tests.benchmarks.figure import Figure, machine_in_words, report

REPEATS = 5
CANDIDATES = 100_000
MODELS = ("llama-3.1-8b", "llama-3.3-70b", "deepseek-v3")


def measure() -> list[Figure]:
    """One figure a model: the median of some searches, scaled to 100,000 candidates."""
    return [_figure(name) for name in MODELS]


def _figure(name: str) -> Figure:
    shape, wanted = model(name), Wanted(ttft_s=2.0, tpot_s=0.05, requests_per_s=20.0)
    size, times = 0, []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        found = search(shape, wanted)
        ranked(found), front(found)
        times.append(time.perf_counter() - start)
        size = found.size
    times = times[1:]
    spread = f"{min(times):.2f} to {max(times):.2f} s"
    return Figure(
        name=f"planner search, 100,000 candidates, {name}",
        value=median(times) * CANDIDATES / size,
        unit="s",
        target="below 2 s",
        conditions=f"{size:,} candidates searched, ranked and their front drawn, median of {REPEATS} "
        f"after a first ({spread}), scaled to {CANDIDATES:,}; {machine_in_words()}",
    )


if __name__ == "__main__":
    report(measure)
