"""The queue's arithmetic: order, places, waits."""

from core.lab.job_queue import JobQueue
from core.lab.ticket import Ticket


def ticket(name: str, kind: str = "run") -> Ticket:
    return Ticket(name, name, kind, {}, submitted_at=0.0, seen_at=0.0)


def test_first_come_first_served() -> None:
    queue = JobQueue()
    jobs = [ticket(name) for name in "abc"]
    for job in jobs:
        queue.add(job)
    assert queue.start_next(1.0) is jobs[0]
    assert queue.start_next(1.0) is None, "one job at a time"
    assert [queue.position(job) for job in jobs] == [0, 1, 2]
    assert queue.remove(jobs[1])
    assert not queue.remove(jobs[1])
    assert queue.position(jobs[2]) == 1


def test_the_wait_is_what_the_jobs_ahead_usually_take() -> None:
    queue = JobQueue()
    jobs = [ticket("a"), ticket("b"), ticket("c", "calibrate-full"), ticket("d")]
    for job in jobs:
        queue.add(job)
    queue.start_next(100.0)
    assert queue.wait_s(jobs[1], 100.0) is None, "no run has finished yet"
    queue.learn("run", 10.0)
    queue.learn("calibrate-full", 50.0)
    assert queue.wait_s(jobs[1], 104.0) == 6.0
    assert queue.wait_s(jobs[3], 104.0) == 6.0 + 10.0 + 50.0
    assert queue.wait_s(None, 104.0) == 6.0 + 10.0 + 50.0 + 10.0
    assert queue.wait_s(jobs[1], 130.0) == 0.0, "a job that takes longer than usual is about to end"
    assert queue.wait_s(jobs[0], 104.0) is None, "it runs"


def test_the_newest_duration_counts_half() -> None:
    queue = JobQueue()
    queue.learn("run", 10.0)
    queue.learn("run", 20.0)
    queue.add(ticket("a"))
    assert queue.wait_s(None, 0.0) == 15.0
