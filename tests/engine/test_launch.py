"""Processes that share a model: they start, meet and end together, whatever happens to one of them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import psutil
import pytest

from core.__main__ import INTERRUPTED
from core.analytic.parallel import ParallelPlan
from core.engine.parallel import launch as launch_module
from core.engine.parallel.launch import launch
from core.engine.parallel.rank import Job
from core.errors import CheckpointError, JobError

pytestmark = pytest.mark.torch

JOB = Job("shape:tiny-moe", "fp32", "fp32", "cpu", ParallelPlan(tp=2), (1, 2, 3), 5, frozenset(), 1)


def ranks_left() -> list[str]:
    return [child.name for child in multiprocessing.active_children() if child.name.startswith("rank")]


def test_a_mistake_of_one_is_the_mistake_of_all() -> None:
    with pytest.raises(CheckpointError, match="The model must be"):
        launch(replace(JOB, model="no such model"))
    assert not ranks_left()


def test_a_killed_process_ends_the_others_in_a_sentence() -> None:
    def kill() -> None:
        while len(ranks_left()) < 2:
            time.sleep(0.01)
        next(child for child in multiprocessing.active_children() if child.name == "rank 1").kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(JobError, match=r"rank 1 ended early \(killed by SIGKILL\), and the others"):
        launch(JOB)
    killer.join()
    assert not ranks_left()


def test_the_time_limit_ends_all() -> None:
    with pytest.raises(JobError, match=r"The 2 processes must be done within 0 s; they were not"):
        launch(JOB, limit_s=0.2)
    assert not ranks_left()


def test_a_caller_may_stop_them() -> None:
    with pytest.raises(JobError, match="The run was stopped"):
        launch(JOB, should_stop=lambda: len(ranks_left()) == 2)
    assert not ranks_left()


def test_an_interrupt_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        assert len(ranks_left()) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(launch_module, "_listen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(JOB)
    assert not ranks_left()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Signals cannot be held back here.")
@pytest.mark.parametrize("wait_s", [0.0, 0.4])
def test_an_interrupt_of_all_is_quiet_even_while_they_load_torch(wait_s: float) -> None:
    """As a terminal sends it: to the command and to each of its processes, at once."""
    command = [sys.executable, "-m", "core", "split", "hi", "--tp", "2", "--model", "shape:tiny-moe"]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    whole = psutil.Process(run.pid)
    try:
        while not (ranks := started(whole)):
            assert run.poll() is None, "it was done before it had begun"
            time.sleep(0.005)
        time.sleep(wait_s)
        ranks = started(whole) or ranks
        os.killpg(run.pid, signal.SIGINT)
        out, said = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == INTERRUPTED
    assert "Traceback" not in said
    assert (out, said.splitlines()[-1]) == ("", "Stopped.")
    assert not any(rank.is_running() for rank in ranks)


def started(parent: psutil.Process) -> list[psutil.Process]:
    """Its ranks, as soon as they are programs of their own."""
    return [child for child in parent.children() if any("spawn_main" in word for word in arguments_of(child))]


def arguments_of(process: psutil.Process) -> list[str]:
    try:
        words: list[str] = process.cmdline()
    except psutil.Error:  # it has just ended
        return []
    return words


def test_the_reason_is_said_rather_than_the_silence_that_follows_it() -> None:
    mistake = CheckpointError("The file is cut short.")
    with pytest.raises(CheckpointError, match="cut short"):
        launch_module._require_well([], {0: "RuntimeError: connection closed", 1: mistake})
    with pytest.raises(JobError, match=r"rank 0 failed \(RuntimeError: connection closed\)"):
        launch_module._require_well([], {0: "RuntimeError: connection closed"})
