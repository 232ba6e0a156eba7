"""The experiment "split": one text by one process and by several that share the model."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from core.engine.parallel.launch import launch
from core.engine.parallel.rank import Job, Report
from core.engine.parallel.split import compare, make_job
from core.errors import JobError
from core.lab import calibration_file
from core.lab.host import LoadProbe
from core.lab.local_link import LocalLink
from core.lab.split_request import SplitRequest
from core.lab.split_trial import SplitTrial
from core.lab.worker.engines import EngineShelf, Wanted
from core.lab.worker.loop import JobContext
from core.lab.worker.machine_info import host_record

#: Seconds for the processes; a job may take a little more than that with all around it.
_LIMIT_S: Final = 90.0


def split(context: JobContext, payload: dict[str, Any], shelf: EngineShelf) -> dict[str, Any]:
    """Do the experiment and return its record as JSON.

    Raises:
        StopRequestedError: it was cancelled.
        RequestError, FormatError, CheckpointError: a sentence on what does not hold.
        JobError: a process died, or the time was over.
    """
    request = SplitRequest.from_json(payload)
    context.report("loading")
    engine = shelf.take(Wanted(request.model, request.weights, request.kv))
    job = make_job(
        engine,
        request.model,
        engine.encode(request.prompt, raw=True),
        request.plan,
        max_tokens=request.max_tokens,
        end_tokens=frozenset(),  # both texts have the length that was asked for
    )
    link = _link(job)  # known before the run that it predicts
    context.report("writing in one process")
    load = LoadProbe()
    record = compare(engine, job, partial(_several, context))
    return SplitTrial(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=host_record(job.device),
        request=request,
        model_name=engine.spec.name,
        split=record,
        noisy=tuple(load.stop().reasons()),
        link=link,
    ).to_json()


def _link(job: Job) -> LocalLink | None:
    """What processes of this machine exchange, where a full calibration timed it."""
    if job.device != "cpu":
        return None
    stored = calibration_file.load(calibration_file.fingerprint(job.device, ""))
    return stored.calibration.link if stored.calibration else None


def _several(context: JobContext, job: Job) -> list[Report]:
    context.report(f"writing in {job.ranks} processes")
    try:
        return launch(job, limit_s=_LIMIT_S, should_stop=context.should_stop)
    except JobError:
        context.check()  # the visitor wanted it to stop
        raise
