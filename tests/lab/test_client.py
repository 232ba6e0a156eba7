"""Two visitors and one worker: queue, limits, cancels, and workers that die."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import JobError, RequestError
from core.lab import lane
from core.lab.client import LabClient
from core.lab.job import JobState
from core.lab.limits import Limits
from core.lab.request import RunRequest
from core.lab.ticket import Ticket
from tests.lab.conftest import FAKE_WORKER, Visitor, fake_command, wait_until
from tests.lab.examples import calibration


def test_a_job_runs_and_streams_its_steps(ready_lab: LabClient) -> None:
    ada = Visitor(ready_lab, "ada")
    snapshot = ada.wait_for_end(ada.run("steps 3 0.01"))
    assert snapshot.state is JobState.DONE
    assert snapshot.text == "word0 word1 word2 "
    assert [step.kind for step in snapshot.steps] == ["prefill", "decode", "decode"]
    assert snapshot.result == {"words": 3}


def test_a_job_may_be_submitted_before_the_worker_is_ready(lab: LabClient) -> None:
    ada = Visitor(lab, "ada")
    assert ada.wait_for_end(ada.run("steps 1 0")).state is JobState.DONE


def test_the_lab_opens_without_waiting_for_its_worker(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_WARM_UP_S", "2")
    lab = LabClient(limits, fake_command)
    assert lab.status().state == "starting"
    wait_until(lambda: lab.status().state == "warming", "the warm-up to be reported")
    assert (lab.status().phase, lab.status().fraction) == ("loading", 0.5)
    lab.close()


def test_places_in_the_queue_follow_the_order_of_arrival(ready_lab: LabClient) -> None:
    visitors = [Visitor(ready_lab, name) for name in ("ada", "bob", "cyd")]
    jobs = [visitor.run("steps 4 0.05") for visitor in visitors]
    assert [ready_lab.snapshot(job).position for job in jobs] == [0, 1, 2]
    assert ready_lab.snapshot(jobs[1]).estimated_wait_s is None  # no such job has finished yet
    visitors[0].wait_for_end(jobs[0])
    again = visitors[0].run("steps 1 0")
    assert ready_lab.snapshot(again).position == 2, "nobody takes two turns while another waits"
    assert 0 < (ready_lab.snapshot(jobs[2]).estimated_wait_s or 0) < 2
    assert visitors[2].wait_for_end(jobs[2]).state is JobState.DONE
    assert ready_lab.snapshot(jobs[1]).state is JobState.DONE
    assert visitors[0].wait_for_end(again).state is JobState.DONE


def test_an_owner_has_one_job_at_a_time(ready_lab: LabClient) -> None:
    ada = Visitor(ready_lab, "ada")
    ada.run("steps 5 0.05")
    with pytest.raises(JobError, match="one job at a time, and yours is running"):
        ada.run("steps 1 0")


def test_a_full_queue_is_said(ready_lab: LabClient) -> None:
    for name in ("ada", "bob", "cyd", "dan"):
        Visitor(ready_lab, name).run("steps 9 0.1")
    with pytest.raises(JobError, match="Up to 3 jobs may wait, and the queue is full"):
        Visitor(ready_lab, "eve").run("steps 1 0")


def test_a_request_outside_its_limits_never_reaches_the_queue(ready_lab: LabClient) -> None:
    with pytest.raises(RequestError, match="The prompt is empty"):
        Visitor(ready_lab, "ada").run(" ")
    assert ready_lab.status().queue_length == 0


def test_an_experiment_is_a_job_like_a_run(ready_lab: LabClient) -> None:
    ada = Visitor(ready_lab, "ada")
    job = ready_lab.submit_experiment("quality", {"groups": [32, 128]}, "ada")
    with pytest.raises(JobError, match="one job at a time"):
        ada.run("steps 1 0")
    assert ada.wait_for_end(job).result == {"echo": {"groups": [32, 128]}}


@pytest.mark.parametrize("payload", [[], {"tokens": float("nan")}, {"tokens": object()}])
def test_a_request_that_json_cannot_say_never_reaches_a_worker(ready_lab: LabClient, payload: Any) -> None:
    worker = ready_lab.status().worker_pid
    with pytest.raises(RequestError, match="must be an object of finite numbers"):
        ready_lab.submit_experiment("quality", payload, "ada")
    assert (ready_lab.status().queue_length, ready_lab.status().worker_pid) == (0, worker)


def test_an_unknown_experiment_never_reaches_the_queue(ready_lab: LabClient) -> None:
    with pytest.raises(JobError, match="speculate, quality, split, sweep; got 'run'"):
        ready_lab.submit_experiment("run", {}, "ada")
    assert ready_lab.status().queue_length == 0


def test_a_device_that_is_not_there_is_said(ready_lab: LabClient) -> None:
    with pytest.raises(JobError, match="must be one of cpu on this machine; got 'cuda'"):
        ready_lab.submit_run(RunRequest(device="cuda"), "ada")


def test_a_waiting_job_is_cancelled_at_once(ready_lab: LabClient) -> None:
    ada, bob = Visitor(ready_lab, "ada"), Visitor(ready_lab, "bob")
    ada.run("steps 5 0.05")
    job = bob.run("steps 1 0")
    ready_lab.cancel(job)
    assert ready_lab.snapshot(job).state is JobState.CANCELLED
    assert ready_lab.snapshot(job).message == "You cancelled this job."


def test_a_calibration_may_take_longer_than_a_job(limits: Limits) -> None:
    ticket = Ticket("cpu-1", "ada", "calibrate-full", {}, submitted_at=0.0, seen_at=0.0)
    assert lane._longest_s(ticket, limits) == limits.calibration_s > limits.job_s
    assert lane._longest_s(replace(ticket, kind="run"), limits) == limits.job_s


def test_a_running_job_stops_between_two_steps_and_keeps_its_worker(ready_lab: LabClient) -> None:
    ada = Visitor(ready_lab, "ada")
    pid = ready_lab.status().worker_pid
    job = ada.run("steps 100 0.02")
    ada.wait_for(job, JobState.RUNNING)
    ready_lab.cancel(job)
    snapshot = ada.wait_for_end(job)
    assert (snapshot.state, snapshot.message) == (JobState.CANCELLED, "You cancelled this job.")
    assert ready_lab.status().worker_pid == pid


def test_a_job_deaf_to_cancels_is_killed_and_the_next_one_runs(ready_lab: LabClient) -> None:
    ada, bob = Visitor(ready_lab, "ada"), Visitor(ready_lab, "bob")
    pid = ready_lab.status().worker_pid
    job = ada.run("sleep 60")
    wait_until(lambda: ready_lab.snapshot(job).phase == "measuring", "the job to be deep in its work")
    next_job = bob.run("steps 1 0")
    ready_lab.cancel(job)
    assert ada.wait_for_end(job).state is JobState.CANCELLED
    assert bob.wait_for_end(next_job).state is JobState.DONE
    assert ready_lab.status().worker_pid != pid


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ("sleep 60", "A job may take up to 3.00 s, and this one took longer, so it was stopped."),
        ("eat 400", "A job may use up to 300 MiB of memory, and this one used more"),
        ("die 3", "needs its worker process to live, but it ended with status 3. A new one is starting"),
        ("garbage", "it sent something unreadable: a line is not JSON"),
        ("endless", "it sent something unreadable: a line is too long or was cut short"),
        ("wrong step", "it sent something unreadable: a step must have exactly the fields"),
    ],
)
def test_a_job_that_takes_its_worker_down_is_explained_and_the_next_one_runs(
    ready_lab: LabClient, prompt: str, sentence: str
) -> None:
    ada, bob = Visitor(ready_lab, "ada"), Visitor(ready_lab, "bob")
    job, next_job = ada.run(prompt), bob.run("steps 1 0")
    snapshot = ada.wait_for_end(job)
    assert snapshot.state is JobState.FAILED
    assert sentence in snapshot.message
    assert bob.wait_for_end(next_job).state is JobState.DONE


def test_a_worker_killed_in_the_middle_is_explained_and_the_next_job_runs(ready_lab: LabClient) -> None:
    ada, bob = Visitor(ready_lab, "ada"), Visitor(ready_lab, "bob")
    job, next_job = ada.run("steps 100 0.02"), bob.run("steps 2 0")
    wait_until(lambda: len(ready_lab.snapshot(job).steps) > 2, "some steps")
    os.kill(ready_lab.status().worker_pid or 0, signal.SIGKILL)
    snapshot = ada.wait_for_end(job)
    assert snapshot.state is JobState.FAILED
    assert "the system killed it, most often because memory ran out" in snapshot.message
    assert snapshot.text.startswith("word0 word1 "), "what was written so far is not lost"
    assert bob.wait_for_end(next_job).state is JobState.DONE


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ("fault", "The job stopped at a fault in the engine (ValueError), not at something you did."),
        ("refuse", "The prompt must be shorter. Shorten it."),
        ("memory", "must fit in this machine's memory, and it ran out"),
        ("nan", "a fault in the engine (ProtocolError)"),
    ],
)
def test_a_job_that_fails_by_itself_keeps_its_worker(
    ready_lab: LabClient, prompt: str, sentence: str
) -> None:
    ada = Visitor(ready_lab, "ada")
    pid = ready_lab.status().worker_pid
    snapshot = ada.wait_for_end(ada.run(prompt))
    assert snapshot.state is JobState.FAILED
    assert sentence in snapshot.message
    assert ready_lab.status().worker_pid == pid


def test_a_prompt_never_reaches_a_log(limits: Limits, capfd: pytest.CaptureFixture[str]) -> None:
    lab = LabClient(limits, fake_command)
    ada = Visitor(lab, "ada")
    ada.wait_for_end(ada.run("fault secret"))
    lab.count_tokens(RunRequest(prompt="uncountable secret"))
    ada.wait_for_end(ada.run("steps 1 0 secret"))
    lab.close()
    output = "".join(capfd.readouterr())
    assert "ValueError" in output, "the host's log says where a fault was"
    assert "secret" not in output


def test_a_job_is_cancelled_when_its_owner_is_gone(limits: Limits) -> None:
    lab = LabClient(replace(limits, owner_grace_s=0.5), fake_command)
    ada, bob = Visitor(lab, "ada"), Visitor(lab, "bob")
    job = ada.run("steps 200 0.05")
    ada.wait_for(job, JobState.RUNNING)
    next_job = bob.run("steps 1 0")
    assert bob.wait_for_end(next_job).state is JobState.DONE
    snapshot = lab.snapshot(job)
    assert snapshot.state is JobState.CANCELLED
    assert "its page is open, and that was not seen for 500 ms" in snapshot.message
    lab.close()


def test_a_seen_owner_keeps_a_job_that_waits_long(limits: Limits) -> None:
    lab = LabClient(replace(limits, owner_grace_s=0.5), fake_command)
    ada = Visitor(lab, "ada")
    assert ada.wait_for_end(ada.run("steps 20 0.05")).state is JobState.DONE
    lab.close()


def test_two_visitors_at_once_get_their_own_results(ready_lab: LabClient) -> None:
    texts: dict[str, str] = {}

    def visit(name: str, count: int) -> None:
        visitor = Visitor(ready_lab, name)
        texts[name] = visitor.wait_for_end(visitor.run(f"steps {count} 0.01")).text

    threads = [threading.Thread(target=visit, args=pair) for pair in (("ada", 2), ("bob", 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {"ada": "word0 word1 ", "bob": "word0 word1 word2 "}


def test_finished_jobs_are_forgotten_after_a_while(limits: Limits) -> None:
    lab = LabClient(replace(limits, results_kept=2), fake_command)
    ada = Visitor(lab, "ada")
    jobs = []
    for _ in range(3):
        jobs.append(ada.run("steps 1 0"))
        ada.wait_for_end(jobs[-1])
    wait_until(lambda: len(lab._tickets) == 2, "the oldest to be forgotten")
    with pytest.raises(JobError, match="Finished jobs are kept for a while"):
        lab.snapshot(jobs[0])
    assert lab.snapshot(jobs[2]).state is JobState.DONE
    lab.close()


def test_tokens_are_counted_beside_a_running_job(ready_lab: LabClient) -> None:
    ada = Visitor(ready_lab, "ada")
    ada.run("steps 50 0.05")
    assert ready_lab.count_tokens(RunRequest(prompt="one two three")) == 3
    assert ready_lab.count_tokens(RunRequest(prompt="uncountable secret")) is None


def test_tokens_are_unknown_while_no_worker_is_ready(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_WARM_UP_S", "5")
    lab = LabClient(limits, fake_command)
    assert lab.count_tokens(RunRequest(prompt="one two")) is None
    lab.close()


def test_a_better_calibration_of_an_idle_worker_is_taken_over(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_IDLE", "calibrates")
    monkeypatch.setenv("FAKE_IDLE_S", "0.1")
    monkeypatch.setenv("FAKE_CALIBRATION", json.dumps(calibration().to_json()))
    lab = LabClient(limits, fake_command)
    wait_until(lambda: lab.status().calibration == calibration(), "the calibration to arrive")
    assert lab.status().state == "ready"
    lab.close()


def test_a_worker_that_cannot_start_is_said(limits: Limits) -> None:
    lab = LabClient(limits, lambda _: [sys.executable, "-c", "raise SystemExit(7)"])
    ada = Visitor(lab, "ada")
    snapshot = ada.wait_for_end(ada.run("steps 1 0"))
    assert snapshot.state is JobState.FAILED
    assert "Measurements need a worker process" in snapshot.message
    assert "it ended with status 7" in snapshot.message
    wait_until(lambda: lab.status().state == "failed", "the lab to say that it failed")
    with pytest.raises(JobError, match="it ended with status 7"):
        ada.run("steps 1 0")
    lab.close()


def test_a_package_that_is_missing_is_named(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "torch")
    lab = LabClient(limits, fake_command)
    wait_until(lambda: lab.status().state == "failed", "the lab to say that it failed")
    with pytest.raises(JobError, match="the package torch is not installed"):
        Visitor(lab, "ada").run("steps 1 0")
    lab.close()


def test_a_program_that_is_missing_is_said(limits: Limits) -> None:
    lab = LabClient(limits, lambda _: ["/nowhere/python"])
    wait_until(lambda: lab.status().state == "failed", "the lab to say that it failed")
    assert "No such file" in lab.status().message
    lab.close()


def test_closing_ends_the_worker_and_every_job(ready_lab: LabClient) -> None:
    ada = Visitor(ready_lab, "ada")
    pid = ready_lab.status().worker_pid or 0
    job = ada.run("steps 100 0.02")
    ready_lab.close()
    assert not psutil.pid_exists(pid)
    assert ready_lab.snapshot(job).state is JobState.CANCELLED
    with pytest.raises(JobError, match="The lab must be open"):
        ada.run("steps 1 0")


def test_no_worker_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    script = f"""
import sys, time
sys.path.insert(0, {str(FAKE_WORKER.parents[2])!r})
from core.lab import lane
from core.lab.client import LabClient
from core.lab.request import RunRequest
from core.lab.ticket import Ticket
lab = LabClient(command=lambda device: [sys.executable, {str(FAKE_WORKER)!r}])
lab.submit_run(RunRequest(prompt="sleep 60"), "ada")
while lab.status().state != "busy":
    time.sleep(0.01)
print(lab.status().worker_pid, flush=True)
time.sleep(60)
"""
    server = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout is not None
        worker = psutil.Process(int(server.stdout.readline()))
        server.kill()
    wait_until(lambda: not worker.is_running(), "the worker to end")


def test_the_server_half_loads_no_torch() -> None:
    code = """
import sys
import core.lab.client, core.lab.predict, core.lab.record, core.lab.compare
print([m for m in sys.modules if m == "torch" or m.startswith(("core.engine", "core.lab.worker."))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
