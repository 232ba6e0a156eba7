"""Calibrate, predict, measure, compare over a grid of formats and contexts, without a browser.

It drives the same worker as the lab page, so that its figures are those a visitor would see.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.catalog.formats import FORMATS
from core.errors import JobError
from core.lab.calibration import Calibration
from core.lab.client import LabClient
from core.lab.compare import Comparison, compare
from core.lab.job import JobSnapshot, JobState
from core.lab.limits import Limits
from core.lab.record import RunRecord
from core.lab.request import RunRequest

OWNER: Final = "bench"
#: Contexts of the grid, in prompt tokens.
CONTEXTS: Final = (64, 512, 2048)
QUICK_CONTEXTS: Final = (64,)
#: A word that is one token of the embedded model, and of most others.
_WORD: Final = " the"
_NEW_TOKENS: Final = 32
#: fp16 is not calibrated. On a CPU fp8 is storage, whose runs would take longest and compare its unpacking.
_LEFT_OUT: Final = {"cpu": {"fp16", "fp8-weight-only"}, "cuda": {"fp16"}}
_POLL_S: Final = 0.2
#: Nobody else waits for a headless run, so it may take longer than a visitor's.
LIMITS: Final = Limits(job_s=900.0, owner_grace_s=60.0)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One run of the grid and its comparison."""

    record: RunRecord
    comparison: Comparison


def grid(contexts: tuple[int, ...], device: str) -> Iterator[tuple[RunRequest, int]]:
    """Every weight format that has a calibrated rate, at each context."""
    for record in FORMATS.values():
        if "weights" in record.uses and record.id not in _LEFT_OUT[device]:
            for context in contexts:
                request = RunRequest(
                    weights=record.id,
                    device="cuda" if device == "cuda" else "cpu",
                    max_tokens=_NEW_TOKENS,
                    raw=True,
                )
                yield replace(request, prompt=(_WORD * context).strip()), context


def run_grid(lab: LabClient, contexts: tuple[int, ...], device: str, say: Say, tries: int = 1) -> list[Row]:
    """Run the grid; a run that fails ends it.

    Args:
        lab: whose worker runs it.
        contexts: in prompt tokens.
        device: of the worker.
        say: told of each run.
        tries: of each run, see ``run_until_quiet``.

    Raises:
        JobError: a run failed, with its own sentence.
    """
    rows = []
    for request, context in grid(contexts, device):
        say(f"{request.weights} at a context of {context:,}")
        record = run_until_quiet(lab, request, OWNER, tries)
        rows.append(Row(record, compare(record)))
    return rows


def run_until_quiet(lab: LabClient, request: RunRequest, owner: str, tries: int) -> RunRecord:
    """Do a run, again while it says that it was disturbed, ``tries`` times at most; the last one stands.

    Raises:
        JobError: a run failed, with its own sentence.
    """
    for _ in range(tries):
        record = RunRecord.from_json(finish(lab, lab.submit_run(request, owner)).result)
        if not record.noisy:
            break
    return record


def calibrate(lab: LabClient, device: str, say: Say) -> Calibration:
    """Calibrate in full, about two minutes.

    Raises:
        JobError: it failed.
    """
    say("calibrating in full, about two minutes")
    return Calibration.from_json(finish(lab, lab.submit_full_calibration(OWNER, device)).result)


def calibrate_quickly(lab: LabClient, device: str, say: Say) -> Calibration:
    """Calibrate in about twenty seconds.

    Raises:
        JobError: it failed.
    """
    say("calibrating quickly, about twenty seconds")
    return Calibration.from_json(finish(lab, lab.submit_quick_calibration(OWNER, device)).result)


def wait_until_ready(lab: LabClient, device: str) -> None:
    """Wait for the device's worker.

    Raises:
        JobError: it cannot start, or this machine has no such device.
    """
    while True:
        status = lab.status()
        if status.state == "failed":
            raise JobError(f"Measurements need a worker process, and it could not start ({status.message}).")
        if status.info.devices and device not in status.info.devices:
            raise JobError(
                f"The device must be one of {', '.join(status.info.devices)} on this machine; got {device!r}."
            )
        if lab.status(device).device == device and lab.status(device).state == "ready":
            return
        time.sleep(_POLL_S)


def finish(lab: LabClient, job: str) -> JobSnapshot:
    """Wait for a job to be done.

    Raises:
        JobError: it failed or was cancelled; its own sentence.
    """
    while not (snapshot := lab.snapshot(job)).state.is_final:
        lab.touch(job)
        time.sleep(_POLL_S)
    if snapshot.state is not JobState.DONE or snapshot.result is None:
        raise JobError(snapshot.message)
    return snapshot


def row_json(row: Row) -> dict[str, Any]:
    """One row of the command's answer."""
    record, comparison = row.record, row.comparison
    tpot = comparison.tpot
    return {
        "scenario": {
            "model": record.request.model,
            "weights": record.request.weights,
            "kv": record.request.kv,
            "cache": record.request.cache,
            "device": record.request.device,
            "prompt_tokens": record.prediction.prompt_tokens,
            "output_tokens": record.output_tokens,
        },
        "predicted": {"ttft_s": comparison.ttft.predicted_s, "tpot_s": tpot.predicted_s if tpot else None},
        "measured": {"ttft_s": comparison.ttft.measured_s, "tpot_s": tpot.measured_s if tpot else None},
        "ratio": {"ttft": comparison.ttft.ratio, "tpot": tpot.ratio if tpot else None},
        "noisy": list(record.noisy),
    }


def summary(rows: list[Row]) -> dict[str, Any]:
    """Median and 90th percentile of the absolute error, in percent of the measured value."""
    ttft = [_error(row.comparison.ttft.ratio) for row in rows]
    tpot = [_error(row.comparison.tpot.ratio) for row in rows if row.comparison.tpot]
    return {
        name: {
            "median_abs_pct_error": statistics.median(errors) if errors else None,
            "p90_abs_pct_error": float(np.percentile(errors, 90)) if errors else None,
        }
        for name, errors in (("ttft", ttft), ("tpot", tpot))
    }


def _error(ratio: float) -> float:
    """Percent by which the prediction is off the measurement: ``|predicted / measured - 1|``."""
    return abs(1.0 / ratio - 1.0) * 100.0
