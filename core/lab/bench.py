"""Calibrate, predict, measure, compare over a sweep of settings, without a browser.

It drives the same worker as the lab page, so that its figures are those a visitor would see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from core.catalog.formats import FORMATS
from core.errors import JobError
from core.lab.calibration import Calibration
from core.lab.cell_errors import percent_errors
from core.lab.client import LabClient
from core.lab.experiment import SWEEP
from core.lab.job import JobSnapshot, JobState
from core.lab.limits import Limits
from core.lab.record import RunRecord
from core.lab.request import DEVICES, RunRequest
from core.lab.sweep_cell import METRICS, SweptCell
from core.lab.sweep_parts import gathered
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import SweepRequest

OWNER: Final = "bench"
#: fp16 is not calibrated. On a CPU fp8 is storage, whose runs would take longest and compare its unpacking.
_LEFT_OUT: Final = {"cpu": {"fp16", "fp8-weight-only"}, "cuda": {"fp16"}}
_POLL_S: Final = 0.2
#: Nobody else waits for a headless run, so it may take longer than a visitor's.
LIMITS: Final = Limits(job_s=900.0, owner_grace_s=60.0)
#: What the held-out protocol runs: cells that no calibration saw, on shapes that none has.
HELD_OUT: Final = SweepRequest(
    models=("smollm2-135m", "shape:qwen2.5-0.5b", "shape:qwen3-0.6b"),
    weights=("bf16", "int8", "int8-dynamic", "int4"),
    kv=("bf16", "int8"),
    caches=("contiguous", "paged"),
    batches=(1, 2, 4),
    prompts=(16, 32, 64),
    new_tokens=16,
    most=63,
    tries=2,
)

Say = Callable[[str], None]


def quick_sweep(device: str) -> SweepRequest:
    """Every weight format that has a calibrated rate, one request at a short context."""
    return SweepRequest(weights=formats(device), device=_device(device))


def full_sweep(device: str) -> SweepRequest:
    """Formats, caches, batches and contexts: a seeded choice of 48 of their combinations."""
    return SweepRequest(
        weights=formats(device),
        kv=("bf16", "int8"),
        caches=("contiguous", "paged"),
        batches=(1, 4),
        prompts=(64, 512, 2048),
        most=48,
        tries=2,
        device=_device(device),
    )


def formats(device: str) -> tuple[str, ...]:
    """Weight formats that a calibration of a device gives a rate."""
    return tuple(
        record.id
        for record in FORMATS.values()
        if "weights" in record.uses and record.id not in _LEFT_OUT[device]
    )


def _device(name: str) -> Any:  # noqa: ANN401 - one of the literals
    return next(device for device in DEVICES if device == name)


def run_sweep(
    lab: LabClient, request: SweepRequest, say: Say, done: SweepRecord | None = None
) -> Iterator[SweepRecord]:
    """Run a sweep, job after job; what there is after each of them, the last one finished.

    A job that fails or is interrupted gives what it had streamed before the trouble is raised.

    Args:
        lab: whose worker runs it.
        request: the sweep.
        say: told of each cell.
        done: what was done of it before.

    Raises:
        JobError: a job failed, with its own sentence.
    """
    record = done
    while record is None or not record.is_finished:
        payload = {"request": request.to_json(), "record": record.to_json() if record else None}
        job = lab.submit_experiment(SWEEP, payload, OWNER, request.device)
        try:
            record = SweepRecord.from_json(finish(lab, job, _tell_cells(say)).result)
        except (JobError, KeyboardInterrupt):
            if kept := gathered(lab.snapshot(job).parts):
                yield kept
            raise
        yield record


def _tell_cells(say: Say) -> Callable[[JobSnapshot], None]:
    told = 0

    def tell(snapshot: JobSnapshot) -> None:
        nonlocal told
        for part in snapshot.parts[told:]:
            if (cell := part.get("cell")) is None:
                continue
            problem = f": {cell['problem']}" if cell["problem"] else ""
            say(" ".join(str(value) for value in cell["cell"].values()) + problem)
        told = len(snapshot.parts)

    return tell


def run_until_quiet(lab: LabClient, request: RunRequest, owner: str, tries: int) -> RunRecord:
    """Do a run, again while it says that it was noisy, ``tries`` times at most; the last one stands.

    Raises:
        JobError: a run failed, with its own sentence.
    """
    for _ in range(tries):
        record = RunRecord.from_json(finish(lab, lab.submit_run(request, owner)).result)
        if not record.noisy:
            break
    return record


def calibrate(lab: LabClient, device: str, say: Say) -> Calibration:
    """Calibrate in full, about four minutes.

    Raises:
        JobError: it failed.
    """
    say("calibrating in full, about four minutes")
    return Calibration.from_json(finish(lab, lab.submit_full_calibration(OWNER, device)).result)


def calibrate_quickly(lab: LabClient, device: str, say: Say) -> Calibration:
    """Calibrate in up to a minute.

    Raises:
        JobError: it failed.
    """
    say("calibrating quickly, up to a minute")
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


def finish(lab: LabClient, job: str, look: Callable[[JobSnapshot], None] = lambda _: None) -> JobSnapshot:
    """Wait for a job to be done.

    Args:
        lab: that has the job.
        job: its id.
        look: shown the job again and again, and at its end.

    Raises:
        JobError: it failed or was cancelled; its own sentence.
    """
    while not (snapshot := lab.snapshot(job)).state.is_final:
        look(snapshot)
        lab.touch(job)
        time.sleep(_POLL_S)
    look(snapshot)
    if snapshot.state is not JobState.DONE or snapshot.result is None:
        raise JobError(snapshot.message)
    return snapshot


def row_json(swept: SweptCell) -> dict[str, Any]:
    """One row of the command's answer; figures are null where the cell could not be run."""
    cell = swept.cell
    names = {"ttft": "ttft_s", "tpot": "tpot_s", "end_to_end": "end_to_end_s"}
    predicted = {metric: swept.predicted(metric) for metric in METRICS}
    measured = {metric: swept.measured(metric) for metric in METRICS}
    errors = {metric: swept.error(metric) for metric in METRICS}
    return {
        "scenario": {
            "model": cell.model,
            "weights": cell.weights,
            "kv": cell.kv,
            "cache": cell.cache,
            "batch": cell.batch,
            "prompt_tokens": cell.prompt_tokens,
            "output_tokens": cell.new_tokens,
        },
        "predicted": {names[metric]: each and each.value_s for metric, each in predicted.items()},
        "measured": {names[metric]: each and each.median_s for metric, each in measured.items()},
        "ratio": {metric: None if error is None else 1 / (1 + error) for metric, error in errors.items()},
        "range": {names[metric]: each and [each.low_s, each.high_s] for metric, each in predicted.items()},
        "outside": list(swept.forecast.outside) if swept.forecast else [],
        "noisy": list(swept.noisy),
        "unsteady": swept.unsteady,
        "problem": swept.problem,
    }


def summary(cells: tuple[SweptCell, ...]) -> dict[str, Any]:
    """Median and 90th percentile of the absolute error, in percent of the measured value."""
    percent = {metric: percent_errors(metric, cells) for metric in METRICS}
    return {
        metric: {
            "median_abs_pct_error": float(np.median(errors)) if errors else None,
            "p90_abs_pct_error": float(np.percentile(errors, 90)) if errors else None,
        }
        for metric, errors in percent.items()
    }
