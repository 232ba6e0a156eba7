"""Calibrate one device: ceilings, operators in every weight format, fixed costs, threads, exchanges.

Everything is timed on a model of no shape in the catalogue (``calibration_model``), so that a
prediction never saw the run it predicts.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import torch

from core.catalog.formats import FORMATS
from core.catalog.model import ModelSpec
from core.engine.engine import Engine
from core.errors import FormatError, UserError
from core.lab.calibration import Calibration
from core.lab.calibration_file import fingerprint
from core.lab.fit import Sample, at_pace, fit_rates, merged, scaled, settled
from core.lab.host import LoadProbe
from core.lab.local_link import LocalLink
from core.lab.measured_rate import MeasuredRate
from core.lab.pace import Pace
from core.lab.reach import Reach, largest_matrix
from core.lab.timing import spread
from core.lab.worker.calibration_model import calibration_engine, calibration_spec
from core.lab.worker.calibration_turn import SELDOM, STORED, Measuring, WholeStep
from core.lab.worker.ceilings import MemoryProbe, peak_flops_per_s
from core.lab.worker.effort import Effort
from core.lab.worker.exchanges import MESSAGE_BYTES, local_link, not_measured
from core.lab.worker.loop import Report
from core.lab.worker.machine_info import device_memory_bytes, device_name
from core.lab.worker.threads import choose_threads

PHASE: Final = "calibrating"
#: Weight formats in which an engine can run, each with the usual format of the cache.
FORMATS_RUN: Final = dict.fromkeys(("fp32", "bf16", "int8-dynamic", "int8", "int8-g32", "int4"), "bf16")
#: The most of the fixed costs that may be put down to the clock.
_MOST_CLOCK: Final = 0.9
#: A calibration whose samples scatter by more than this is noisy.
_MOST_SPREAD: Final = 0.25


def calibrate(device: str, effort: Effort, memory: MemoryProbe, report: Report) -> Calibration:
    """Measure this device and return what it reaches; the caller keeps it."""
    started_s, load = time.perf_counter(), LoadProbe()
    report(PHASE, 0.0)
    threads = _threads(device, effort)
    steadiness = memory.steadiness()
    bandwidths = memory.by_size()
    peaks = peak_flops_per_s(device, effort.matrix_size, effort.matrix_repeats)
    engines = _engines(device, effort)
    samples: list[Sample] = []
    steps: list[WholeStep] = []
    reads: list[float] = []
    turns = _turns(engines, effort.rounds)
    for index, engine in enumerate(_in_time(turns, len(engines), started_s + effort.rounds_s)):

        def progress(part: float, index: int = index) -> None:
            report(PHASE, (1 + index + part) / (2 + len(turns)))

        progress(0.0)
        again = index >= len(engines)
        turn = Measuring(engine, effort, memory, steadiness, again).turn(progress)
        samples += settled(turn.samples)
        steps.append(turn.step)
        reads += turn.reads
    report(PHASE, 1.0)
    loaded = load.stop()  # before processes of this calibration look like others'
    link, remarks = _link(device, effort, report)
    kernels = {engine.weights: engine.kernels["gate_up"] for engine in engines}
    usual = Pace(statistics.median(reads), statistics.median(sample.pace.call_s for sample in samples))
    samples = [at_pace(sample, usual) for sample in samples]
    rates, step_fixed_s = _whole_steps(fit_rates(merged(samples), kernels), steps)
    peaks |= _peaks_of_products(samples, peaks)
    return Calibration(
        fingerprint=fingerprint(device, device_name(device)),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        depth=effort.depth,
        duration_s=time.perf_counter() - started_s,
        threads=threads,
        capacity_bytes=float(device_memory_bytes(device)),
        bandwidths=bandwidths,
        pace=usual,
        peak_flops_per_s=peaks,
        rates=rates,
        step_fixed_s=step_fixed_s,
        reach=_reach(effort),
        noisy=tuple(loaded.reasons() + _scatter(rates)),
        link=link,
        remarks=remarks,
    )


def _link(device: str, effort: Effort, report: Report) -> tuple[LocalLink | None, tuple[str, ...]]:
    """What processes of this machine exchange, and a sentence where that could not be measured."""
    if device != "cpu" or not effort.exchange_rounds:
        return None, ()

    def should_stop() -> bool:
        report(PHASE, 1.0)  # which leaves a calibration that was cancelled
        return False

    try:
        found = local_link(MESSAGE_BYTES, effort.exchange_rounds, effort.exchange_repeats, should_stop)
    except (UserError, OSError, RuntimeError) as problem:  # no processes, or no port to meet at
        return None, (not_measured(problem),)
    return found, ()


def _engines(device: str, effort: Effort) -> list[Engine]:
    """One engine for each format that has a kernel here; asking for another is an error."""
    engines = []
    run = FORMATS_RUN | (STORED if effort.depth == "full" else {})
    for weights, kv in run.items():
        with contextlib.suppress(FormatError):
            engines.append(calibration_engine(_spec(effort), weights, kv, device))
    return engines


def _spec(effort: Effort) -> ModelSpec:
    return calibration_spec(effort.pairs, effort.vocabulary)


def _turns(engines: list[Engine], rounds: int) -> list[Engine]:
    """Who is measured, in order: everybody in the first round, in later ones who is asked for often."""
    often = [engine for engine in engines if engine.weights not in {*STORED, *SELDOM}]
    return engines + often * (rounds - 1)


def _in_time(turns: Sequence[Engine], least: int, end_s: float) -> Iterator[Engine]:
    """So many turns, and those after them that begin before an end: a slow host has fewer rounds."""
    for index, engine in enumerate(turns):
        if index >= least and time.perf_counter() > end_s:
            return
        yield engine


def _threads(device: str, effort: Effort) -> int:
    """A full calibration chooses the number of threads; a quick one keeps what is set."""
    if effort.depth == "quick" or device != "cpu":
        return torch.get_num_threads()
    return choose_threads(calibration_engine(_spec(effort), "bf16", "bf16", device))


def _peaks_of_products(samples: list[Sample], known: dict[str, float]) -> dict[str, float]:
    """The best rate of the layers' own products, for formats whose plain product is not timed."""
    peaks: dict[str, float] = {}
    for sample in samples:
        compute = FORMATS[sample.format].compute
        if sample.kind == "linear" and compute not in known:
            peaks[compute] = max(peaks.get(compute, 0.0), sample.flops / sample.seconds)
    return peaks


def _reach(effort: Effort) -> Reach:
    return Reach(
        batch=max(batch for batch, _ in effort.batches),
        context_tokens=max(*effort.decode_contexts, *effort.long_tokens),
        prefill_tokens=max(*effort.prefill_tokens, *effort.long_tokens),
        matrix_elements=largest_matrix(_spec(effort)),
    )


def _whole_steps(
    rates: tuple[MeasuredRate, ...], steps: list[WholeStep]
) -> tuple[tuple[MeasuredRate, ...], float]:
    """Take the clock out of the rates, and return what a step costs besides its operators.

    Where each operator is waited for, threads fall asleep between two of them, and on a GPU no launch
    overlaps with work. So fixed costs shrink by the part that the clock has in them.
    """
    own_s = {(row.operator, row.format): row.rate.fixed_s for row in rates if row.operator and not row.beside}
    parts = [
        len(step.calls) * step.clock_s / max(sum(own_s[call] for call in step.calls), 1e-9) for step in steps
    ]
    part = min(max(spread(parts).median_s, 0.0), _MOST_CLOCK)
    return scaled(rates, 1 - part), max(spread([step.fixed_s for step in steps]).median_s, 0.0)


def _scatter(rates: tuple[MeasuredRate, ...]) -> list[str]:
    worst = max((rate.spread for rate in rates if rate.kind == "linear"), default=0.0)
    return [f"its samples scattered by {worst:.0%}"] if worst > _MOST_SPREAD else []
