"""A sweep on the real engine, a tiny one: what is streamed, what is left, and where it goes on."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from core.engine.engine import Engine
from core.engine.quality.evaluate import Reference
from core.errors import CheckpointError, RequestError
from core.lab import sweep_forecast
from core.lab.calibration import Calibration
from core.lab.sweep_cell import METRICS, CellQuality, SweptCell
from core.lab.sweep_forecast import forecast
from core.lab.sweep_parts import gathered
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import Cell, SweepRequest
from core.lab.worker import ceilings, sweep_job, swept
from core.lab.worker.calibration_model import calibration_engine, calibration_spec
from core.lab.worker.ceilings import MemoryProbe
from core.lab.worker.loop import JobContext, StopRequestedError
from core.lab.worker.machine_info import host_record
from core.lab.worker.outlook import Checks
from core.lab.worker.rehearse import Rehearsals
from core.lab.worker.request_times import run_once
from core.lab.worker.steadiness import Steadiness
from core.lab.worker.sweep_job import Place, sweep
from tests.lab import sweep_example
from tests.lab.examples import calibration

pytestmark = pytest.mark.torch

SMALL = replace(calibration_spec(1), hidden_size=256, vocab_size=1024)
REQUEST = SweepRequest(weights=("bf16",), batches=(1, 2), prompts=(8, 16), new_tokens=3, repeats=2)


class Shelf:
    """Gives one small engine for every model, or the mistake that a real shelf would make."""

    def __init__(self, mistake: Exception | None = None) -> None:
        self.mistake, self.taken = mistake, 0

    def take(self, *_: object) -> Engine:
        self.taken += 1
        if self.mistake is not None:
            raise self.mistake
        return engine()


@cache
def engine() -> Engine:
    return calibration_engine(SMALL, "bf16", "bf16", "cpu")


class Outbox:
    """Keeps what a job says; stops the job after some parts."""

    def __init__(self, stop_after: int = 1000) -> None:
        self.stop, self._left = threading.Event(), stop_after
        self.parts: list[dict[str, Any]] = []

    def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "part":
            self.parts.append(message["part"])
            if len(self.parts) >= self._left:
                self.stop.set()


@pytest.fixture(autouse=True)
def _few_repeats_and_much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_forecast, "_ENOUGH_S", 0.0)
    monkeypatch.setattr(ceilings, "_MOST_ROUNDS", 1)  # the calibration is made up: its pace never comes
    monkeypatch.setattr(sweep_job, "BUDGET_S", 600.0)  # however slow this host is


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryProbe]:
    torch.set_num_threads(2)
    yield MemoryProbe("cpu")


def do(
    place: Place, payload: dict[str, Any], outbox: Outbox | None = None
) -> tuple[SweepRecord, list[dict[str, Any]]]:
    box = outbox or Outbox()
    context = JobContext("job", box, box.stop)  # type: ignore[arg-type]
    return SweepRecord.from_json(sweep(context, payload, place)), box.parts


def place(memory: MemoryProbe, shelf: Shelf | None = None, machine: Calibration | None = None) -> Place:
    checks = Checks(machine or calibration(), memory, Rehearsals("cpu", pairs=1))
    return Place(shelf or Shelf(), checks)  # type: ignore[arg-type]


def test_every_cell_is_predicted_run_and_streamed(memory: MemoryProbe) -> None:
    record, parts = do(place(memory), {"request": REQUEST.to_json()})
    assert record.is_finished
    assert [done.cell for done in record.cells] == list(REQUEST.cells())
    assert len(parts) == 1 + len(record.cells)
    assert gathered(parts) == record
    assert gathered([]) is None
    for cell in record.cells:
        assert cell.samples is not None
        assert len(cell.samples["tpot"]) >= REQUEST.repeats
        first, later, whole = (cell.measured(name) for name in METRICS)
        assert first and later and whole
        assert whole.median_s >= first.median_s
        assert cell.load is not None
        assert cell.load.followed is not None
        assert cell.load.rehearsal is not None
        now = calibration().at_pace(cell.load.followed)
        expected = forecast(cell.cell, SMALL, now, cell.load.rehearsal)
        assert cell.forecast == expected, "predicted after the checks that the record names"


def test_it_ends_when_its_time_is_over_and_goes_on_from_there(
    memory: MemoryProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as short:
        short.setattr(sweep_job, "BUDGET_S", -1.0)
        nothing, _ = do(place(memory), {"request": REQUEST.to_json(), "record": None})
    assert (len(nothing.cells), nothing.is_finished) == (0, False)
    part = replace(nothing, cells=do(place(memory), {"request": REQUEST.to_json()})[0].cells[:3])
    again, parts = do(place(memory), {"request": REQUEST.to_json(), "record": part.to_json()})
    assert again.cells[:3] == part.cells
    assert (len(again.cells), len(parts)) == (4, 2)


def test_another_calibration_joins_the_record(memory: MemoryProbe) -> None:
    first, _ = do(place(memory), {"request": replace(REQUEST, prompts=(8,), batches=(1,)).to_json()})
    later = replace(calibration(), measured_at="2026-11-29T13:00:00+00:00")
    open_again = replace(first, cells=())
    again, _ = do(
        place(memory, machine=later), {"request": first.request.to_json(), "record": open_again.to_json()}
    )
    assert [known.measured_at for known in again.calibrations] == [
        calibration().measured_at,
        later.measured_at,
    ]
    assert again.cells[0].calibration == later.id


def test_a_cancelled_sweep_has_streamed_what_was_done(memory: MemoryProbe) -> None:
    outbox = Outbox(stop_after=3)
    with pytest.raises(StopRequestedError):
        do(place(memory), {"request": REQUEST.to_json()}, outbox)
    kept = gathered(outbox.parts)
    assert kept is not None
    assert len(kept.cells) == 2


def test_a_cell_that_cannot_run_keeps_its_reason_and_the_others_go_on(memory: MemoryProbe) -> None:
    record, _ = do(place(memory, Shelf(CheckpointError("It is not here."))), {"request": REQUEST.to_json()})
    assert [done.problem for done in record.cells] == ["It is not here."] * 4


def test_a_cell_that_would_take_too_long_is_not_begun(memory: MemoryProbe) -> None:
    shelf = Shelf()
    long = replace(REQUEST, models=("shape:llama-3.1-8b",), prompts=(8192,), batches=(1,), new_tokens=128)
    record, _ = do(place(memory, shelf), {"request": long.to_json()})
    assert "A cell may take 45.0 s" in record.cells[0].problem
    assert shelf.taken == 0


def test_a_record_of_another_sweep_is_refused(memory: MemoryProbe) -> None:
    record, _ = do(place(memory), {"request": replace(REQUEST, prompts=(8,)).to_json()})
    with pytest.raises(RequestError, match="settings that it began with"):
        do(place(memory), {"request": REQUEST.to_json(), "record": record.to_json()})


def test_a_sweep_of_another_machine_is_not_gone_on_with(memory: MemoryProbe) -> None:
    """Its record names one machine: these cells would stand under that name."""
    record, _ = do(place(memory), {"request": replace(REQUEST, prompts=(8,), batches=(1,)).to_json()})
    elsewhere = replace(record, cells=(), host=replace(record.host, cpu="Another processor"))
    payload = {"request": record.request.to_json(), "record": elsewhere.to_json()}
    with pytest.raises(RequestError, match="machine that it began on, Another processor; this is"):
        do(place(memory), payload)


def test_judging_ends_with_its_time_too_and_goes_on_from_there(
    memory: MemoryProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job judges a pair or more, so that many pairs never take longer than a job may."""
    found = CellQuality(kl=0.0, agreement=1.0, perplexity=9.0, tokens=1)
    monkeypatch.setattr(Reference, "read", lambda *_: None)
    monkeypatch.setattr(sweep_job, "evaluate", lambda *_: found)
    monkeypatch.setattr(sweep_job, "windows", lambda *_: [[1, 2]])
    asked = replace(REQUEST, prompts=(8,), batches=(1,), kv=("bf16", "int8"), quality=True)
    whole = sweep_example.sweep(asked)
    cells = tuple(replace(swept, quality=None) for swept in whole.cells)
    left = replace(whole, host=host_record("cpu"), cells=cells)
    seconds = iter([0.0, 0.0, 1000.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    record = sweep_job.run_sweep(left, place(memory), JobContext("job", Outbox(), threading.Event()))  # type: ignore[arg-type]
    assert [swept.quality is None for swept in record.cells] == [False, True]
    assert not record.is_finished


def test_a_batch_is_answered_together_and_its_times_are_those_of_the_slowest(memory: MemoryProbe) -> None:
    cell = Cell("smollm2-135m", "bf16", "bf16", "contiguous", 3, 8, 4)
    times = run_once(cell, engine(), [[1 + n] * 8 for n in range(3)])
    assert len(times.decode_s) == 3, "three steps for three sequences of four tokens"
    assert times.end_to_end_s >= times.ttft_s + sum(times.decode_s)


def test_a_disturbed_cell_is_done_again_as_often_as_was_asked(memory: MemoryProbe) -> None:
    fast = replace(calibration(), pace=replace(calibration().pace, read_bytes_per_s=1e15))
    asked = replace(REQUEST, prompts=(8,), batches=(1,), tries=3)
    record, _ = do(place(memory, machine=fast), {"request": asked.to_json()})
    done: SweptCell = record.cells[0]
    assert done.tries == 3
    assert any("memory" in reason for reason in done.noisy)


def unsteady(memory: MemoryProbe, monkeypatch: pytest.MonkeyPatch) -> SweptCell:
    """A cell of two repeats, beside the second of which the cores are slower for a moment."""
    checks = iter([1.0, 1.0, 2.0, *[1.0] * 100])
    monkeypatch.setattr(memory, "steadiness", lambda _: Steadiness(lambda: next(checks), 1.0))
    asked = replace(REQUEST, prompts=(8,), batches=(1,))
    record, _ = do(place(memory), {"request": asked.to_json()})
    (done,) = record.cells
    return done


def test_a_run_beside_which_the_cores_changed_their_speed_is_made_again(
    memory: MemoryProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = unsteady(memory, monkeypatch)
    assert done.samples is not None
    assert (len(done.samples["tpot"]), done.unsteady) == (2, 2), "one ended slow, one began so"


def test_long_runs_are_not_made_again(memory: MemoryProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swept, "_AGAIN_S", 0.0)
    done = unsteady(memory, monkeypatch)
    assert done.samples is not None
    assert (len(done.samples["tpot"]), done.unsteady) == (2, 1), "both count, for there are no others"
