"""How the lab stands on one device: its worker, its queue, its calibration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from core.errors import RecordError
from core.lab.calibration import Calibration
from core.lab.protocol import ProtocolError

#: starting: the process loads; warming: it loads the model and calibrates; ready: nothing runs;
#: busy: a job runs; restarting: the worker ended and starts again; failed: it cannot start.
WorkerState = Literal["starting", "warming", "ready", "busy", "restarting", "failed", "closed"]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker says of itself once it is ready.

    Attributes:
        devices: the devices torch can use here, "cpu" first.
        device_name, driver: of the device this worker serves; empty where there is no such thing.
        torch_version: of the worker's torch. threads: it computes with so many.
        models: ids that can be run. model_message: how to get a model that is missing, else empty.
        calibration: the newest of this device, None where there is none yet.
        calibration_message: why a stored calibration was not used, else empty.
    """

    devices: tuple[str, ...] = ()
    device_name: str = ""
    driver: str = ""
    torch_version: str = ""
    threads: int = 0
    models: tuple[str, ...] = ()
    model_message: str = ""
    calibration: Calibration | None = None
    calibration_message: str = ""


@dataclass(frozen=True, slots=True)
class LabStatus:
    """One picture of a device's lane.

    Attributes:
        device: "cpu" or "cuda". state: see WorkerState. message: why it failed, else empty.
        phase, fraction: what it does while it is warming up.
        queue_length: jobs that wait. worker_pid: of the process now, None while there is none.
        info: what the last worker that was ready said of itself.
    """

    device: str
    state: WorkerState
    message: str = ""
    phase: str = ""
    fraction: float | None = None
    queue_length: int = 0
    worker_pid: int | None = None
    info: WorkerInfo = field(default_factory=WorkerInfo)

    @property
    def calibration(self) -> Calibration | None:
        """The newest calibration of the device, None where there is none yet."""
        return self.info.calibration

    @property
    def models(self) -> tuple[str, ...]:
        """Ids of the models that can be run."""
        return self.info.models


def info_from_json(data: dict[str, Any]) -> WorkerInfo:
    """Read what a ready worker sent.

    Raises:
        ProtocolError: a field is missing or of another type.
    """
    try:
        calibration = data["calibration"]
        return WorkerInfo(
            devices=_names(data["devices"]),
            device_name=str(data["device_name"]),
            driver=str(data["driver"]),
            torch_version=str(data["torch_version"]),
            threads=int(data["threads"]),
            models=_names(data["models"]),
            model_message=str(data["model_message"]),
            calibration=None if calibration is None else Calibration.from_json(calibration),
            calibration_message=str(data["calibration_message"]),
        )
    except (KeyError, TypeError, ValueError, RecordError) as error:
        raise ProtocolError("a worker described itself in another form") from error


def with_calibration(info: WorkerInfo, calibration: Calibration) -> WorkerInfo:
    """The same worker with a newer calibration."""
    return replace(info, calibration=calibration, calibration_message="", threads=calibration.threads)


def _names(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of names is needed")
    return tuple(values)
