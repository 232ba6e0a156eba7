"""The timing protocol, applied to the run that a visitor has just seen.

Repeats of its mean decode step and of its prefill, then a profile by operator. What takes long is
repeated less; how often is in the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psutil

from core.analytic.step_record import PREFILL_TOKENS
from core.engine.engine import Engine
from core.engine.records import Generation
from core.lab.record_parts import Measured
from core.lab.timing import DECODE_STEPS, PREFILL_REPEATS, agrees

#: Reports how much is done, from 0 to 1, and leaves when the job was cancelled.
Progress = Callable[[str, float], None]

#: Seconds that one kind of repeat may take; slower models get fewer.
_BUDGET_S: Final = 10.0
#: Short prefills are repeated more often, for about so long: one hiccup is then not the median.
_PREFILLS_S: Final = 2.0
_MOST_PREFILLS: Final = 15
_CHUNK_STEPS: Final = 10
_MOST_WARM_UPS: Final = 5
_PROFILED_DECODES: Final = 10
_PROFILED_PREFILLS: Final = 2
#: The engine runs so many passes of its own before the first that counts.
_OWN_WARM_UPS: Final = 3


def measure(engine: Engine, generation: Generation, progress: Progress) -> Measured:
    """Repeat and profile a finished generation.

    Args:
        engine: that wrote it.
        generation: what it wrote.
        progress: called between the parts.
    """
    prompt, later = generation.prompt_tokens, len(generation.token_ids) - 1
    context = prompt + (1 + later) // 2
    step_s, read_s = generation.tpot_s or 0.0, generation.ttft_s or 0.0
    decodes = decode_repeats(engine, context, step_s, progress) if later else ()
    prefills = _prefills(engine, prompt, read_s, progress)
    progress("profiling", 0.0)
    profiles = {}
    if _affordable(read_s, _PROFILED_PREFILLS) and prompt <= PREFILL_TOKENS:
        profiles["prefill"] = engine.profile(
            "prefill", tokens=prompt, context=prompt, repeats=_PROFILED_PREFILLS
        )
    progress("profiling", 0.5)
    if later and _affordable(step_s, _PROFILED_DECODES):
        profiles["decode"] = _profile_later_step(engine, context)
    return Measured(
        ttft_s=read_s,
        tpot_s=generation.tpot_s,
        prefill_repeats_s=prefills,
        decode_repeats_s=decodes,
        operators_s={
            phase: {name: tuple(times_s) for name, times_s in profile.items()}
            for phase, profile in profiles.items()
        },
        peak_memory_bytes=engine.peak_memory_bytes(),
        resident_bytes=psutil.Process().memory_info().rss,
    )


def decode_repeats(engine: Engine, context: int, step_s: float, progress: Progress) -> tuple[float, ...]:
    """Steps at the run's mean context: warmed up until three agree, then thirty where time allows."""
    if not _affordable(step_s, PREFILL_REPEATS):
        return ()
    progress("warming up", 0.0)
    for attempt in range(_MOST_WARM_UPS):
        if agrees(engine.measure_steps(context, steps=PREFILL_REPEATS)):
            break
        progress("warming up", (1 + attempt) / _MOST_WARM_UPS)
    times_s: list[float] = []
    wanted = DECODE_STEPS if _affordable(step_s, DECODE_STEPS) else PREFILL_REPEATS
    while len(times_s) < wanted:
        progress("measuring", len(times_s) / wanted)
        times_s += engine.measure_steps(context, steps=min(_CHUNK_STEPS, wanted - len(times_s)))
    return tuple(times_s)


def _prefills(engine: Engine, prompt: int, read_s: float, progress: Progress) -> tuple[float, ...]:
    if prompt > PREFILL_TOKENS or not _affordable(read_s, PREFILL_REPEATS):
        return ()
    progress("measuring", 1.0)
    repeats = min(max(PREFILL_REPEATS, round(_PREFILLS_S / read_s)), _MOST_PREFILLS)
    return tuple(engine.measure_prefill(prompt, repeats=repeats))


def _profile_later_step(engine: Engine, context: int) -> dict[str, list[float]]:
    """One later step; without a cache that is a pass over the whole sequence."""
    if engine.cache == "none":
        return engine.profile("prefill", tokens=context, context=context, repeats=_PROFILED_PREFILLS)
    return engine.profile("decode", tokens=1, context=context, repeats=_PROFILED_DECODES)


def _affordable(seconds: float, repeats: int) -> bool:
    return seconds * (_OWN_WARM_UPS + repeats) <= _BUDGET_S
