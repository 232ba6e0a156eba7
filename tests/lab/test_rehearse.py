"""The rehearsal as it is made: with the calibration's model, in short, in the formats of the run."""

import io
import threading
from types import SimpleNamespace

import pytest

from core.catalog.model import ModelSpec
from core.engine.engine import Engine
from core.lab.pace import Pace
from core.lab.sweep_request import Cell
from core.lab.worker import rehearse
from core.lab.worker.calibration_model import calibration_engine
from core.lab.worker.loop import JobContext, Outbox, StopRequestedError
from core.lab.worker.rehearse import Rehearsals
from core.lab.worker.request_times import Times
from tests.lab.examples import calibration

pytestmark = pytest.mark.torch

CELL = Cell("smollm2-135m", "int8", "bf16", "contiguous", 2, 8, 4)
FASTER = calibration().pace.towards(Pace(1e15, 1e-9))


def context(cancelled: bool = False) -> JobContext:
    stop = threading.Event()
    if cancelled:
        stop.set()
    return JobContext("job", Outbox(io.BytesIO()), stop)


@pytest.fixture
def rehearsals() -> Rehearsals:
    return Rehearsals("cpu", pairs=1)


@pytest.mark.parametrize("cache", ["contiguous", "paged", "none"])
def test_it_is_held_against_what_the_calibration_predicts_of_it(rehearsals: Rehearsals, cache: str) -> None:
    cell = Cell("smollm2-135m", "int8", "int8", cache, 2, 8, 4)  # type: ignore[arg-type]
    found = rehearsals.of(cell, context())
    assert found is not None
    assert (found.cell.cache, found.cell.kv, found.cell.batch) == (cache, "int8", 2)
    slow, fast = (found.beside(machine) for machine in (calibration(), calibration().at_pace(FASTER)))
    assert fast.prefill > slow.prefill > 0
    assert fast.decode > slow.decode > 0


def test_the_model_is_built_once_for_a_format_of_weights(
    rehearsals: Rehearsals, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def counted(spec: ModelSpec, weights: str, kv: str, device: str) -> Engine:
        built.append(weights)
        return calibration_engine(spec, weights, kv, device)

    monkeypatch.setattr(rehearse, "calibration_engine", counted)
    for weights, kv in (("int8", "bf16"), ("int8", "int8"), ("int4", "bf16"), ("int4", "int8")):
        assert rehearsals.of(Cell("smollm2-135m", weights, kv, "contiguous", 1, 4, 2), context())
    rehearsals.clear()
    assert rehearsals.of(Cell("smollm2-135m", "int4", "bf16", "contiguous", 1, 4, 2), context())
    assert built == ["int8", "int4", "int4"]


def test_a_cancelled_job_is_left_before_the_next_pass_and_between_two_steps(
    rehearsals: Rehearsals, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StopRequestedError):
        rehearsals.of(CELL, context(cancelled=True))
    under_way, steps = context(), []

    def asked() -> bool:
        steps.append(1)
        if len(steps) == 2:
            under_way._stop.set()
        return under_way._stop.is_set()

    monkeypatch.setattr(under_way, "should_stop", asked)
    with pytest.raises(StopRequestedError):
        rehearsals.of(CELL, under_way)
    assert len(steps) == 2, "of a pass of six"


@pytest.mark.parametrize("cache", ["contiguous", "none"])
def test_a_slow_format_is_rehearsed_once(
    rehearsals: Rehearsals, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    """However long it takes, it is short: few tokens, and no second time after the longest."""
    made: list[Cell] = []

    def slow(cell: Cell, *_: object, **__: object) -> Times:
        made.append(cell)
        return Times(3.0, 1.0, 8.0, (1.0,))

    monkeypatch.setattr(rehearse, "run_once", slow)
    monkeypatch.setattr(rehearse, "time", SimpleNamespace(monotonic=iter((0.0, 2.5)).__next__))
    cell = Cell("smollm2-135m", "int8", "bf16", cache, 32, 8192, 128)  # type: ignore[arg-type]
    found = rehearsals.of(cell, context())
    assert found is not None and found.ttft_s == 3.0
    assert [(one.batch * one.prompt_tokens, one.new_tokens) for one in made] == [
        (256, 6) if cache == "contiguous" else (64, 2)
    ]


def test_a_gpu_that_nobody_shares_needs_none() -> None:
    assert Rehearsals("cuda").of(CELL, context()) is None
