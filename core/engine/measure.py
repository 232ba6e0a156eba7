"""Timing of an engine: decode steps, prefills, and one pass operator by operator.

A step is timed as it runs in a generation, from the plan until its token is on the host. A cache need
not be filled with a real text for that: attention reads the slots whatever is in them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

import torch

from core.analytic.step_record import StepKind
from core.engine.batch import Batch, Sequence
from core.engine.clock import synchronise
from core.engine.runner import native_part
from core.engine.sampling import Sampler, Sampling
from core.engine.step import StepLabel
from core.engine.transformer import Operator, Pass
from core.errors import RequestError

if TYPE_CHECKING:
    from core.engine.engine import Engine

#: Steps before the first that counts: they choose primitives and fill caches.
WARM_UP_STEPS: Final = 3


def decode_steps(engine: Engine, context: int, steps: int) -> list[float]:
    """Wall seconds of ``steps`` decode steps, each at a context of ``context`` tokens.

    Without a cache, each of them computes the whole sequence.
    """
    new_tokens = context if engine.cache == "none" else 1
    return _timed_steps(engine, "decode", new_tokens, context, steps)


def prefills(engine: Engine, tokens: int, repeats: int) -> list[float]:
    """Wall seconds of reading a prompt of ``tokens`` tokens in one step, ``repeats`` times."""
    return _timed_steps(engine, "prefill", tokens, tokens, repeats)


def _timed_steps(engine: Engine, kind: StepKind, new_tokens: int, context: int, steps: int) -> list[float]:
    _check_context(engine, new_tokens, context)
    pool = engine.reserve(context)
    sampler = Sampler(Sampling(), engine.device)
    times_s = []
    for index in range(WARM_UP_STEPS + steps):
        sequence = Sequence(_any_tokens(engine, context), num_cached=context - new_tokens)
        _, record = engine.stepper.step([(sequence, new_tokens)], pool, sampler, StepLabel(index, kind))
        times_s.append(record.host_s)
    return times_s[WARM_UP_STEPS:]


def profile(
    engine: Engine, phase: Literal["prefill", "decode"], *, tokens: int, context: int, repeats: int
) -> dict[str, list[float]]:
    """Seconds by operator name, summed over the layers, one entry for each repeated pass.

    Every operator waits for the device before the next one starts, so the sum is more than a step takes
    where launches otherwise overlap with work (a GPU), and a little more on a CPU.

    Args:
        engine: what to measure.
        phase: "prefill" puts ``tokens`` through the model, "decode" one.
        tokens: new tokens of a prefill.
        context: tokens that attention sees, the new ones included.
        repeats: passes that count; a few more run before them.
    """
    new_tokens = tokens if phase == "prefill" else 1
    _check_context(engine, new_tokens, context)
    pool = engine.reserve(context)
    sampler = Sampler(Sampling(), engine.device)
    times_s: dict[str, list[float]] = {}
    for index in range(WARM_UP_STEPS + repeats):
        sequence = Sequence(_any_tokens(engine, context), num_cached=context - new_tokens)
        batch = Batch.build([(sequence, new_tokens)], engine.device)
        sums = _clocked_pass(engine, Pass(batch, pool), sampler)
        if index >= WARM_UP_STEPS:
            for name, seconds in sums.items():
                times_s.setdefault(name, []).append(seconds)
    return times_s


@torch.inference_mode()
def _clocked_pass(engine: Engine, values: Pass, sampler: Sampler) -> dict[str, float]:
    def sample(values: Pass) -> None:
        sampler.choose(values.logits).tolist()

    first, *rest = engine.model.operators()
    step = native_part(engine.runner, values)
    timed = clocked([first], values, engine.device)
    timed += clocked(rest, values, engine.device) if step is None else step.timed(values)
    timed += clocked([("sample", sample)], values, engine.device)
    sums: dict[str, float] = {}
    for name, seconds in timed:
        sums[name] = sums.get(name, 0.0) + seconds
    return sums


def clocked(operators: Iterable[Operator], values: Pass, device: torch.device) -> list[tuple[str, float]]:
    """Run operators one by one; the wall seconds of each, until the device has done it."""
    times_s = []
    synchronise(device)
    before = time.perf_counter()
    for name, operator in operators:
        operator(values)
        synchronise(device)
        now = time.perf_counter()
        times_s.append((name, now - before))
        before = now
    return times_s


def _any_tokens(engine: Engine, count: int) -> list[int]:
    """Some valid ids; which ones does not matter for the time."""
    return [(7 * index + 11) % min(engine.spec.vocab_size, 256) for index in range(count)]


def _check_context(engine: Engine, new_tokens: int, context: int) -> None:
    if not 1 <= new_tokens <= context <= engine.max_context:
        raise RequestError(
            f"A measurement needs 1 to {engine.max_context:,} tokens of context and no more new tokens than "
            f"that; got {new_tokens:,} new tokens at {context:,}. Choose fewer."
        )
