"""Decode on a GPU at batch 1, beside the bandwidth at which the GPU copies, by runner and by attention.

Run it with ``python -m tests.benchmarks.engine_cuda``. The model is a shape with random weights of 3 GB or
more in bf16, so that reading them is nearly all that a step does. Bytes are those of the step records:
weights and cache, read and written. The copy is measured right before and right after.
"""

from __future__ import annotations

import gc
import statistics
from typing import Final

import torch

from core.analytic.params import stored_bytes
from core.analytic.step_record import StepRecord
from core.catalog.models import model
from core.engine.attention import AttentionWay
from core.engine.engine import Engine
from core.engine.runners import RunnerMode
from core.engine.sampling import GREEDY
from core.lab.worker.ceilings import MemoryProbe
from core.units import format_gb
from tests.benchmarks.figure import Figure, machine_in_words, report

#: 16 GB and 3 GB of weights; the first that leaves room for everything else is taken.
MODELS: Final = ("llama-3.1-8b", "qwen2.5-1.5b")
ROOM: Final = 2.0
PROMPT_TOKENS: Final = 256
#: Steps that count, and those before them, which compile and capture.
STEPS: Final = 64
WARM_UP: Final = 16
RUNNERS: Final[tuple[RunnerMode, ...]] = ("graphs", "compiled", "eager")
#: Other ways of attending, held against our kernel under graphs, where the host does not count.
WAYS: Final[tuple[AttentionWay, ...]] = ("flex", "gather")
TARGETS: Final[dict[RunnerMode, str]] = {"graphs": "at least 0.8", "compiled": "-", "eager": "-"}


def measure() -> list[Figure]:
    """All figures, or why there are none."""
    if not torch.cuda.is_available():
        why = "This machine has no CUDA device, so nothing was measured."
        return [Figure("decode on a GPU / copy bandwidth, graphs", None, "x", TARGETS["graphs"], why)]
    step_s: dict[RunnerMode, float] = {}
    figures = []
    for runner in RUNNERS:
        figure, step_s[runner] = of_copy(runner)
        figures.append(figure)
    figures.append(
        Figure("eager / graphs, time of a step", step_s["eager"] / step_s["graphs"], "x", "-", words())
    )
    for way in WAYS:
        ratio = median_s(decode("graphs", way)) / step_s["graphs"]
        figures.append(Figure(f"{way} / our attention, time of a step", ratio, "x", "-", words()))
    return figures


def of_copy(runner: RunnerMode) -> tuple[Figure, float]:
    """The part of the copy bandwidth that decode reaches, and the median step in seconds."""
    before = copy_bytes_per_s()
    steps = decode(runner, "auto")
    copied = [before, copy_bytes_per_s()]
    rates = [moved_bytes(step) / step.host_s for step in steps]
    conditions = (
        f"{format_gb(moved_bytes(steps[-1]))} a step, copy {' and '.join(map(format_gb, copied))}/s before "
        f"and after, steps from {min(rates) / max(rates):.2f} to 1 of the fastest; {words()}"
    )
    value = statistics.median(rates) / statistics.fmean(copied)
    name = f"decode on a GPU / copy bandwidth, {runner}"
    return Figure(name, value, "x", TARGETS[runner], conditions), median_s(steps)


def decode(runner: RunnerMode, way: AttentionWay) -> list[StepRecord]:
    """Steps of one token each, as they run in a generation."""
    engine = Engine.load(
        f"shape:{chosen()}",
        weights="bf16",
        kv="bf16",
        device="cuda",
        cache="paged",
        runner=runner,
        attention=way,
    )
    prompt = [1 + index % 100 for index in range(PROMPT_TOKENS)]
    # Twice: whatever has to be compiled or captured for these contexts is there the second time.
    for _ in range(2):
        written = engine.generate(prompt, GREEDY, max_tokens=WARM_UP + STEPS, end_tokens=frozenset())
    del engine
    gc.collect()
    torch.cuda.empty_cache()
    return [step for step in written.steps if step.kind == "decode"][-STEPS:]


def chosen() -> str:
    """The model that fits this GPU."""
    room = torch.cuda.get_device_properties(0).total_memory / ROOM
    return next((name for name in MODELS if stored_bytes(model(name), "bf16") <= room), MODELS[-1])


def copy_bytes_per_s() -> float:
    """The best of some copies of a buffer that no cache holds; read and written bytes both count."""
    return MemoryProbe("cuda").by_size()[-1].copy_bytes_per_s


def moved_bytes(step: StepRecord) -> float:
    """Weights and cache, read and written."""
    return step.weight_bytes + step.kv_read_bytes + step.kv_write_bytes


def median_s(steps: list[StepRecord]) -> float:
    """Wall seconds of the middle step."""
    return statistics.median(step.host_s for step in steps)


def words() -> str:
    """The rest of the conditions."""
    return (
        f"{chosen()} in bf16, paged cache in bf16, contexts from {PROMPT_TOKENS + WARM_UP}, {STEPS} steps, "
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {machine_in_words()}"
    )


if __name__ == "__main__":
    report(measure)
