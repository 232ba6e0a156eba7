"""A worker without torch: the real loop, with jobs that behave well or badly on demand.

Started as a process by the tests. The prompt of a request says what the job does:
``"steps N SECONDS"``, ``"sleep SECONDS"`` (deaf to cancels), ``"eat MIB"``, ``"die STATUS"``,
``"garbage"``, ``"fault"``, ``"nan"``, ``"huge"``, ``"wrong step"``.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from core.analytic.step_record import StepRecord
from core.errors import RequestError
from core.lab.sweep_cell import SweptCell
from core.lab.sweep_parts import begun_part, cell_part
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import SweepRequest
from core.lab.worker import loop
from core.lab.worker.loop import JobContext, Report, StopRequestedError, serve
from tests.lab.sweep_example import sweep, swept

Job = Callable[[JobContext, dict[str, Any]], dict[str, Any]]


def info() -> dict[str, Any]:
    return {
        "devices": ["cpu"],
        "device_name": "",
        "driver": "",
        "torch_version": "0",
        "threads": 1,
        "models": ["smollm2-135m"],
        "model_message": "",
        "calibration": None,
        "calibration_message": "This machine was not calibrated yet.",
    }


def step(index: int) -> StepRecord:
    kind = "decode" if index else "prefill"
    return StepRecord(index, kind, 1, 1, 4 + index, 1000, 100, 10, 1, 0, 0.01, 0.011)  # type: ignore[arg-type]


def run(context: JobContext, payload: dict[str, Any]) -> dict[str, Any]:
    verb, *arguments = payload["prompt"].split()
    values = [float(argument) for argument in arguments if argument.replace(".", "").isdigit()]
    if verb == "steps":
        return write_steps(context, int(values[0]), values[1])
    if verb == "sleep":
        context.report("measuring", 0.0)
        time.sleep(values[0])
    elif verb == "eat":
        hoard = bytearray(os.urandom(1024) * 1024 * int(values[0]))
        time.sleep(30)
        return {"bytes": len(hoard)}
    elif verb == "die":
        os._exit(int(values[0]))
    return misbehave(context, verb, payload["prompt"])


def write_steps(context: JobContext, count: int, seconds: float) -> dict[str, Any]:
    for index in range(count):
        if context.should_stop():
            raise StopRequestedError
        context.report("measuring", index / count)
        time.sleep(seconds)
        context.step(f"word{index} ", step(index))
    return {"words": count}


def misbehave(context: JobContext, verb: str, prompt: str) -> dict[str, Any]:
    if verb == "garbage":
        os.write(PROTOCOL, b"this is not a message\n")
        time.sleep(30)
    elif verb == "endless":
        os.write(PROTOCOL, b"x" * 5_000_000)
        time.sleep(30)
    elif verb == "wrong":
        os.write(
            PROTOCOL, b'{"type":"step","id":"%s","text":"","step":{"index":"0"}}\n' % context.id.encode()
        )
        time.sleep(30)
    elif verb == "fault":
        raise ValueError(prompt)
    elif verb == "refuse":
        raise RequestError("The prompt must be shorter. Shorten it.")
    elif verb == "memory":
        raise MemoryError
    elif verb == "nan":
        return {"value": float("nan")}
    return {"done": verb}


def sweep_by_twos(context: JobContext, payload: dict[str, Any]) -> dict[str, Any]:
    """Two cells a job, each a tenth slower than predicted; a model of 1.1 B never runs."""
    request, done = SweepRequest.from_json(payload["request"]), payload["record"]
    record = SweepRecord.from_json(done) if done else replace(sweep(request), cells=())
    context.part(begun_part(record))
    for cell in record.left[:2]:
        context.report("sweeping", len(record.cells) / len(request.cells()))
        if cell.model == "shape:tinyllama-1.1b":
            found = SweptCell(cell, measured_at=record.created_at, problem="It does not fit this machine.")
        else:
            found = swept(cell, 1.1)
        record = record.with_cell(found)
        context.part(cell_part(found))
    return record.to_json()


class FakeWork:
    """Warm-up, jobs and counts that the tests know the outcome of."""

    def warm_up(self, report: Report) -> dict[str, Any]:
        report("loading", 0.5)
        if trouble := os.environ.get("FAKE_TROUBLE"):
            raise ImportError(name=trouble)
        if delay := os.environ.get("FAKE_WARM_UP_S"):
            time.sleep(float(delay))
        return info()

    def jobs(self) -> Mapping[str, Job]:
        return {"run": run, "quality": lambda context, payload: {"echo": payload}, "sweep": sweep_by_twos}

    def idle(self, report: Report) -> dict[str, Any] | None:
        if os.environ.get("FAKE_IDLE") != "calibrates":
            return None
        report("calibrating", 0.5)
        return json.loads(os.environ["FAKE_CALIBRATION"])  # type: ignore[no-any-return]

    def count_tokens(self, request: dict[str, Any]) -> int | None:
        if request["prompt"].startswith("uncountable"):
            raise RuntimeError(request["prompt"])
        return len(request["prompt"].split())


PROTOCOL = os.dup(1)
loop.IDLE_S = float(os.environ.get("FAKE_IDLE_S", "60"))

if __name__ == "__main__":
    serve(FakeWork, sys.stdin.buffer, os.fdopen(PROTOCOL, "wb"))
