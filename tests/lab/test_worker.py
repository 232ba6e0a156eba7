"""The real worker: what it calibrates predicts what it runs, and its records hold together."""

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from core.analytic.latency import operator_times
from core.analytic.operators import operators
from core.analytic.table import Kind
from core.errors import JobError, RequestError
from core.lab import calibration_file
from core.lab.calibration import Calibration
from core.lab.client import LabClient
from core.lab.compare import compare
from core.lab.host import HostLoad
from core.lab.job import JobState
from core.lab.limits import Limits
from core.lab.measured_rate import MeasuredRate
from core.lab.predict import predict
from core.lab.record import RunRecord, dumps, loads
from core.lab.request import RunRequest
from core.lab.worker import calibrate as calibrate_module
from core.lab.worker import threads, work
from core.lab.worker.calibrate import FORMATS_RUN, calibrate
from core.lab.worker.calibration_model import calibration_engine, calibration_spec
from core.lab.worker.calibration_turn import STORED, WholeStep
from core.lab.worker.ceilings import MemoryProbe
from core.lab.worker.effort import FULL, QUICK, Effort
from core.lab.worker.engines import EngineShelf, check_model
from core.lab.worker.loop import JobContext, Outbox, StopRequestedError
from core.lab.worker.outlook import Checks
from core.lab.worker.rehearse import Rehearsals
from core.lab.worker.run_job import Bench, run
from core.lab.worker.threads import candidates
from core.lab.worker.work import EngineWork
from core.units import GIB
from tests.lab.conftest import Visitor, wait_until
from tests.lab.examples import calibration, measured_rate

pytestmark = pytest.mark.torch

TINY = Effort("quick", 1, 40_960, (16, 512), 3, ((2, 16),), (4, 32), 1, 2, (64,), (8,), 128, 2, 2, 2)
SMALL = replace(calibration_spec(1), hidden_size=256, vocab_size=1024)
REQUEST = RunRequest(prompt="Hello", weights="bf16", max_tokens=6, raw=True)


@pytest.fixture(scope="module", autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, 2))
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bench() -> Bench:
    memory = MemoryProbe("cpu")
    reported: list[float | None] = []
    emptied: list[bool] = []
    formats = {"bf16": "bf16", "int8": "bf16"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate_module, "FORMATS_RUN", formats)
        patch.setattr(calibrate_module, "calibration_spec", lambda *_: SMALL)
        patch.setattr(memory, "empty_caches", lambda: emptied.append(True))  # it takes long, and is counted
        calibrated = calibrate("cpu", TINY, memory, lambda _, fraction: reported.append(fraction))
    assert reported[0] == 0.0
    assert reported[-1] == 1.0
    assert len(emptied) > 100, "every pass begins with cold caches"
    return Bench("cpu", Checks(calibrated, memory, Rehearsals("cpu", pairs=1)))


def test_what_is_only_stored_is_timed_once_and_in_full_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        calibrate_module, "calibration_engine", lambda _, weights, *__: SimpleNamespace(weights=weights)
    )
    quick, full = ([one.weights for one in calibrate_module._engines("cpu", how)] for how in (QUICK, FULL))
    assert full == [*quick, "fp8-weight-only"] == [*FORMATS_RUN, *STORED]
    turns = [one.weights for one in calibrate_module._turns(calibrate_module._engines("cpu", FULL), 3)]
    assert turns == full + 2 * [name for name in quick if name not in {"fp32", "int8-g32"}]


def context(stopped: bool = False) -> tuple[JobContext, io.BytesIO]:
    sink, stop = io.BytesIO(), threading.Event()
    if stopped:
        stop.set()
    return JobContext("cpu-1", Outbox(sink), stop), sink


def messages(sink: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def test_a_calibration_has_what_a_prediction_needs_and_survives_its_file(bench: Bench) -> None:
    calibrated = bench.checks.calibration
    assert Calibration.from_json(json.loads(json.dumps(calibrated.to_json()))) == calibrated
    machine = calibrated.machine()
    kinds: tuple[Kind, ...] = ("lookup", "norm", "rope", "kv_write", "attention", "elementwise", "sample")
    assert all(machine.knows(kind, "bf16") for kind in kinds)
    one_token = operators(SMALL, batch=1, new_tokens=1, context=8, weights="bf16", kv="bf16")
    # Of a small model on a busy host a fixed cost may be fitted as none; then its bytes take the time.
    assert (operator_times(one_token, machine) > 0).all()
    assert machine.rate("linear", "int8").flops_per_s[-1] > 0
    assert [row.working_set_bytes for row in calibrated.bandwidths] == sorted(
        row.working_set_bytes for row in calibrated.bandwidths
    )


def test_prompts_beside_every_format_of_the_cache_are_timed(bench: Bench) -> None:
    """What a program for many tokens takes does not follow from that for one."""
    rows = {
        (row.operator, row.format): row.rate.rows for row in bench.checks.calibration.rates if row.operator
    }
    for kv in ("fp16", "int8", "int4"):
        for operator in ("attention", "kv_write"):
            assert {1.0, 8.0, 64.0} <= set(rows[operator, kv])


def test_what_cannot_be_predicted_is_refused_before_anything_is_rehearsed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rehearsals, "of", lambda *_: pytest.fail("nobody waits for this"))
    job, _ = context()
    long = replace(REQUEST, prompt="x" * (SMALL.max_context + 1))
    with pytest.raises(RequestError, match="has a context of"):
        run(job, long, calibration_engine(SMALL, "bf16", "bf16", "cpu"), bench)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_where_memory_runs_out_every_model_is_dropped(error: Exception) -> None:
    worker = EngineWork("cpu", GIB)
    dropped: list[str] = []
    worker._shelf.clear = lambda: dropped.append("engines")  # type: ignore[method-assign]
    worker._rehearsals.clear = lambda: dropped.append("rehearsals")  # type: ignore[method-assign]

    def job() -> dict[str, Any]:
        raise error

    with pytest.raises(JobError):
        worker._within_memory(job)
    assert dropped == ["engines", "rehearsals"]


def test_a_run_streams_its_steps_and_leaves_a_record_that_holds_together(bench: Bench) -> None:
    engine = calibration_engine(SMALL, "bf16", "bf16", "cpu")
    job, sink = context()
    record = RunRecord.from_json(run(job, REQUEST, engine, bench))
    assert loads(dumps(record)) == record
    assert record.output_tokens == 6
    followed = record.load.followed
    assert followed is not None
    machine = bench.checks.calibration.at_pace(followed).machine(REQUEST.weights)
    assert record.load.rehearsal is not None
    assert record.prediction == predict(REQUEST, 5, engine.spec, machine, record.load.rehearsal)
    streamed = [message for message in messages(sink) if message["type"] == "step"]
    assert len(streamed) == 6
    phases = list(dict.fromkeys(m["phase"] for m in messages(sink) if m["type"] == "progress"))
    assert phases == ["rehearsing", "writing", "warming up", "measuring", "profiling"]
    assert len(record.measured.decode_repeats_s) == 30
    assert len(record.measured.prefill_repeats_s) > 5, "a short prefill is repeated often"
    comparison = compare(record)
    predicted = record.prediction.decode
    assert predicted is not None
    assert [row.name for row in comparison.decode] == list(predicted.operators_s), (
        "every operator meets its own"
    )


def test_a_run_without_a_cache_is_recorded_and_profiled_too(bench: Bench) -> None:
    engine = calibration_engine(SMALL, "bf16", "bf16", "cpu")
    engine.cache = "none"
    job, _ = context()
    record = RunRecord.from_json(run(job, replace(REQUEST, cache="none"), engine, bench))
    assert [step.new_tokens for step in record.later_steps] == [6, 7, 8, 9, 10]
    assert record.measured.operators_s["decode"]


def test_a_cancelled_run_ends_between_two_steps(bench: Bench) -> None:
    job, _ = context(stopped=True)
    with pytest.raises(StopRequestedError):
        run(job, REQUEST, calibration_engine(SMALL, "bf16", "bf16", "cpu"), bench)


@pytest.mark.parametrize("model", ["/etc", "../secrets", "shape:nothing", "shape:/etc", ""])
def test_a_page_never_opens_a_path(model: str) -> None:
    with pytest.raises(RequestError, match="The model must be smollm2-135m, or shape: and an id"):
        check_model(model)


def test_a_model_that_cannot_fit_is_refused_before_it_is_loaded() -> None:
    shelf = EngineShelf("cpu", GIB)
    with pytest.raises(RequestError, match=r"must fit in the 1\.00 GiB that a job may use here"):
        shelf.get(RunRequest(model="shape:llama-3.1-8b", weights="fp32"), 1, lambda _: None)
    assert shelf.has_room_for("smollm2-135m")
    assert not shelf.has_room_for("llama-2-70b")


def test_the_real_worker_starts_counts_runs_and_ends() -> None:
    own = replace(
        calibration(),
        fingerprint=calibration_file.fingerprint("cpu", ""),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    calibration_file.save(own)
    lab = LabClient(Limits())
    assert lab.status().calibration == own, "known before the worker is"
    wait_until(lambda: lab.status().state == "ready", "the worker to be ready", patience_s=90)
    assert lab.status().info.torch_version
    (worker,) = (child for child in psutil.Process().children() if "core.lab.worker" in child.cmdline())
    assert worker.nice() > psutil.Process().nice(), "a page that answers goes first"
    request = RunRequest(prompt="Hello", max_tokens=3)
    counted = lab.count_tokens(request)
    ada = Visitor(lab, "ada")
    snapshot = ada.wait_for_end(lab.submit_run(request, "ada"), patience_s=60)
    assert snapshot.state is JobState.DONE, snapshot.message
    record = RunRecord.from_json(snapshot.result)
    assert record.prediction.prompt_tokens == counted
    assert snapshot.text == record.text
    lab.close()


def test_a_worker_ends_with_its_standard_input() -> None:
    command = [sys.executable, "-m", "core.lab.worker", "--device", "cpu"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60, check=False)
    assert done.returncode == 0


def test_threads_worth_a_try_are_few_and_start_with_the_usual() -> None:
    assert candidates(2, 2) == [2, 1]
    assert candidates(1, 1) == [1]
    assert candidates(8, 16) == [8, 4, 7, 16]


def test_the_chosen_threads_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {1: 1.0, 2: 2.0}
    engine = calibration_engine(SMALL, "bf16", "bf16", "cpu")
    monkeypatch.setattr(threads, "physical_cores", lambda: 2)
    monkeypatch.setattr(threads, "usable_cores", lambda: 2)
    monkeypatch.setattr(threads, "LoadProbe", QuietProbe)
    monkeypatch.setattr(engine, "measure_steps", lambda *_, **__: [seconds[torch.get_num_threads()]])
    assert threads.choose_threads(engine) == torch.get_num_threads() == 1
    seconds[1] = 1.9
    assert threads.choose_threads(engine) == torch.get_num_threads() == 2, "not clearly better"


class QuietProbe:
    def stop(self) -> HostLoad:
        return HostLoad(0.0, 0.0, 1.0)


def whole_steps(step: WholeStep) -> tuple[MeasuredRate, float]:
    """The only operator costs 5 microseconds a call."""
    own = replace(measured_rate("norm", "bf16"), operator="mlp_norm")
    (rate,), step_fixed_s = calibrate_module._whole_steps((own,), [step])
    return rate, step_fixed_s


CALLS = (("mlp_norm", "bf16"),) * 400


def test_what_a_step_takes_besides_its_operators_is_its_fixed_cost() -> None:
    rate, step_fixed_s = whole_steps(WholeStep(0.0002, CALLS, 1e-6))
    assert step_fixed_s == pytest.approx(0.0006)
    assert rate.rate.fixed_s == pytest.approx(4e-6)


def test_a_clock_that_seems_to_save_time_is_noise() -> None:
    rate, step_fixed_s = whole_steps(WholeStep(-0.001, CALLS, -1e-6))
    assert step_fixed_s == 0.0
    assert rate.rate.fixed_s == 5e-6


def test_a_call_is_never_free() -> None:
    rate, _ = whole_steps(WholeStep(-0.001, CALLS, 1.0))
    assert rate.rate.fixed_s > 0


def test_a_noisy_calibration_is_replaced_when_the_host_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = replace(calibration(), noisy=("other programs used 40% of the processors",))
    worker = work.EngineWork("cpu", GIB)
    worker._calibration, worker._memory = noisy, MemoryProbe("cpu")
    monkeypatch.setattr(work, "calibrate", lambda *_: calibration())
    monkeypatch.setattr(work, "_is_quiet", lambda: False)
    assert worker.idle(lambda *_: None) is None, "not while the host is busy"
    monkeypatch.setattr(work, "_is_quiet", lambda: True)
    assert worker.idle(lambda *_: None) == calibration().to_json()
    assert worker.idle(lambda *_: None) is None, "a quiet calibration stays"


def test_a_calibration_that_is_no_better_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = replace(calibration(), noisy=("other programs used 40% of the processors",))
    worker = work.EngineWork("cpu", GIB)
    worker._calibration, worker._memory = noisy, MemoryProbe("cpu")
    monkeypatch.setattr(work, "calibrate", lambda *_: replace(noisy, duration_s=1.0))
    monkeypatch.setattr(work, "_is_quiet", lambda: True)
    assert worker.idle(lambda *_: None) is None
    assert worker._calibration is noisy


def test_a_bare_text_is_continued_past_an_end_token_and_an_answer_is_not(bench: Bench) -> None:
    engine = calibration_engine(SMALL, "bf16", "bf16", "cpu")
    engine.end_tokens = frozenset(range(engine.spec.vocab_size))
    written = {
        raw: RunRecord.from_json(run(context()[0], replace(REQUEST, raw=raw), engine, bench))
        for raw in (True, False)
    }
    assert (written[True].output_tokens, written[True].stop_reason) == (6, "length")
    assert (written[False].output_tokens, written[False].stop_reason) == (1, "end")
