"""What the real worker does: warm up, run, calibrate, count tokens."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import psutil
import torch

from core.catalog.models import runnable_ids
from core.engine.engine import Engine
from core.engine.files.text import TextCodec
from core.errors import CheckpointError, FormatError, JobError
from core.lab import calibration_file
from core.lab.calibration import Calibration
from core.lab.experiment import SWEEP
from core.lab.host import LoadProbe, physical_cores
from core.lab.request import EMBEDDED_MODEL, SHAPE_PREFIX, RunRequest
from core.lab.worker import machine_info
from core.lab.worker.calibrate import calibrate
from core.lab.worker.ceilings import MemoryProbe
from core.lab.worker.effort import FULL, QUICK, Effort
from core.lab.worker.engines import EngineShelf, settle
from core.lab.worker.experiments import EXPERIMENTS, Experimenter
from core.lab.worker.loop import OUT_OF_MEMORY, JobContext, Report
from core.lab.worker.outlook import Checks
from core.lab.worker.rehearse import Rehearsals
from core.lab.worker.run_job import Bench, run
from core.lab.worker.sweep_job import Place, sweep

Job = Callable[[JobContext, dict[str, Any]], dict[str, Any]]
_LOOK_S = 1.0
#: A host that is never quiet enough is not tried for ever.
_IDLE_TRIES = 3


class EngineWork:
    """The work of one device; see ``core.lab.worker.loop.Work``."""

    def __init__(self, device: str, memory_bytes: int) -> None:
        self.device = device
        self._shelf = EngineShelf(device, memory_bytes)
        self._texts: dict[str, TextCodec] = {}
        self._calibration: Calibration | None = None
        self._memory: MemoryProbe | None = None
        self._rehearsals = Rehearsals(device)
        self._idle_tries = _IDLE_TRIES

    def warm_up(self, report: Report) -> dict[str, Any]:
        """Choose threads, load the default model, and calibrate a machine that is new."""
        report("loading", None)
        name = machine_info.device_name(self.device)
        stored = calibration_file.load(calibration_file.fingerprint(self.device, name))
        self._calibration = stored.calibration
        torch.set_num_threads(stored.calibration.threads if stored.calibration else physical_cores())
        self._memory = MemoryProbe(self.device)
        model_message = self._load_default()
        if self._calibration is None:
            self._calibrate(QUICK, report)
        return self._info(model_message, "" if stored.calibration else stored.reason)

    def jobs(self) -> Mapping[str, Job]:
        """Every kind of job."""
        return {
            "run": self._run,
            "calibrate-quick": lambda context, _: self._calibrate(QUICK, context.report).to_json(),
            "calibrate-full": lambda context, _: self._calibrate(FULL, context.report).to_json(),
            SWEEP: self._sweep,
            **{kind: partial(self._experiment, experimenter) for kind, experimenter in EXPERIMENTS.items()},
        }

    def count_tokens(self, request: dict[str, Any]) -> int | None:
        """Tokens of a prompt; None for a model whose tokenizer is not loaded."""
        asked = RunRequest.from_json(request)
        if asked.model.startswith(SHAPE_PREFIX):
            return len(asked.prompt.encode())
        text = self._texts.get(asked.model)
        if text is None:
            return None
        return len(text.encode(asked.prompt) if asked.raw else text.encode_chat(asked.prompt))

    def idle(self, report: Report) -> dict[str, Any] | None:
        """Replace a calibration that was made on a busy host, once the host is quiet."""
        noisy = self._calibration
        if noisy is None or not noisy.noisy or not self._idle_tries or not _is_quiet():
            return None
        self._idle_tries -= 1
        again = self._calibrate(QUICK, report, keep=lambda new: len(new.noisy) < len(noisy.noisy))
        return None if again is noisy else again.to_json()

    def _run(self, context: JobContext, payload: dict[str, Any]) -> dict[str, Any]:
        request = RunRequest.from_json(payload)
        bench = Bench(self.device, self._checks())
        context.report("loading", None)
        return self._within_memory(lambda: run(context, request, self._engine(request), bench))

    def _experiment(
        self, experimenter: Experimenter, context: JobContext, payload: dict[str, Any]
    ) -> dict[str, Any]:
        context.report("loading", None)
        return self._within_memory(lambda: experimenter(context, payload, self._shelf))

    def _sweep(self, context: JobContext, payload: dict[str, Any]) -> dict[str, Any]:
        context.report("loading", None)
        place = Place(self._shelf, self._checks())
        return self._within_memory(lambda: sweep(context, payload, place))

    def _checks(self) -> Checks:
        """This machine's calibration, and what is checked before a run.

        Raises:
            JobError: it has not been calibrated.
        """
        if self._calibration is None or self._memory is None:
            raise JobError("This machine must be calibrated before a run, and is not. Calibrate it.")
        return Checks(self._calibration, self._memory, self._rehearsals)

    def _within_memory(self, job: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Do a job; where memory runs out, drop the engines and say so.

        Raises:
            JobError: memory ran out.
        """
        try:
            return job()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            self._shelf.clear()
            self._rehearsals.clear()
            raise JobError(OUT_OF_MEMORY) from error

    def _engine(self, request: RunRequest) -> Engine:
        engine = self._shelf.get(request, torch.get_num_threads(), settle)
        self._texts[request.model] = engine.text
        return engine

    def _load_default(self) -> str:
        """Load what most visitors run; the reason where the embedded model is not there."""
        try:
            self._engine(RunRequest(device="cuda" if self.device == "cuda" else "cpu"))
        except CheckpointError as error:
            return str(error)
        except FormatError:
            return ""  # this device has no kernel for the default format; a visitor chooses another
        return ""

    def _calibrate(
        self, effort: Effort, report: Report, keep: Callable[[Calibration], bool] = lambda _: True
    ) -> Calibration:
        """Calibrate, and keep the result where ``keep`` agrees; the calibration that holds now."""
        if self._memory is None:
            raise RuntimeError("a worker calibrates after its warm-up has begun")
        self._rehearsals.clear()  # a calibration has models of its own
        new = calibrate(self.device, effort, self._memory, report).with_link_of(self._calibration)
        # The calibration models are gone; their memory goes back to the system.
        gc.collect()
        if hasattr(psutil, "heap_trim"):  # not with every C library
            psutil.heap_trim()
        if self._calibration is None or keep(new):
            not_kept = calibration_file.save(new)
            self._calibration = replace(new, remarks=(*new.remarks, not_kept)) if not_kept else new
        return self._calibration

    def _info(self, model_message: str, calibration_message: str) -> dict[str, Any]:
        embedded = [] if model_message else [EMBEDDED_MODEL]
        shapes = [f"{SHAPE_PREFIX}{name}" for name in runnable_ids() if self._shelf.has_room_for(name)]
        return {
            "devices": machine_info.devices(),
            "device_name": machine_info.device_name(self.device),
            "driver": machine_info.driver(self.device),
            "torch_version": machine_info.torch_version(),
            "threads": torch.get_num_threads(),
            "models": embedded + shapes,
            "model_message": model_message,
            "calibration": self._calibration.to_json() if self._calibration else None,
            "calibration_message": calibration_message,
        }


def _is_quiet() -> bool:
    """Look at the host for a moment while this process does nothing."""
    probe = LoadProbe()
    time.sleep(_LOOK_S)
    return not probe.stop().reasons()


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "alloc" in str(error)
