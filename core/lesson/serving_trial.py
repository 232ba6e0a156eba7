"""The trials of the pages on serving: what the lab is asked for, and what is said of what came out."""

from __future__ import annotations

from typing import Final

from core.errors import RequestError
from core.lab.experiment import Experiment
from core.lab.serve_record import ServeRecord, Service
from core.lab.serve_request import ServeRequest
from core.lesson.amount import LessonCase
from core.lesson.lesson import Lesson
from core.lesson.measures import Checked
from core.lesson.quantities.served_trace import WAYS, paging_request, policy_request
from core.simulate.seats import SeatPlan, seat_plan
from core.simulate.waste import Slots, all_slots

KIND: Final = "serve-trace"


def policies_of(case: LessonCase) -> tuple[str, ...]:
    """The policies of a trial: static and continuous, and the page's where it is another.

    >>> from core.lesson.catalogue_case import catalogue_case
    >>> policies_of(catalogue_case({"policy": "continuous, chunked"}))
    ('static', 'continuous', 'continuous, chunked')
    """
    return tuple(dict.fromkeys(("static", "continuous", case.word("policy"))))


def request_of(lesson: Lesson, case: LessonCase) -> ServeRequest:
    """What a page's trial serves, with the values of its controls.

    Raises:
        RequestError: the lesson serves no trace.
    """
    if lesson.id == "batching":
        return policy_request(case, *policies_of(case))
    if lesson.id == "paged_attention":
        return paging_request(case)
    raise RequestError(f"The lesson must serve a trace; {lesson.id} does not. Choose another.")


def experiment_of(lesson: Lesson, case: LessonCase) -> Experiment:
    """The same as a job of the lab."""
    return Experiment(KIND, request_of(lesson, case).to_json(), f"the trace of page {lesson.number}")


def name_of(record: ServeRecord, service: Service) -> str:
    """A way of serving in words: its policy where there are several, else the layout of its cache."""
    way = service.way
    if len({other.cache for other in record.request.ways}) > 1:
        return "in blocks" if way.cache == "paged" else "in one piece"
    return next(name for name, known in WAYS.items() if known == way)


def simulated_steps(record: ServeRecord, service: Service) -> int:
    """Steps that the simulator counts for the same trace."""
    return len(record.request.simulated(service.way))


def equal_steps(record: ServeRecord) -> Checked:
    """Whether each step is the simulator's, count for count and block for block."""
    wrong = [
        f"{name_of(record, service)}: {said}"
        for service in record.services
        if (said := record.difference(service))
    ]
    if wrong:
        return Checked(False, f"no. {'; '.join(wrong)}.")
    steps = sum(len(service.steps) for service in record.services)
    return Checked(True, f"yes, in all {steps} steps: requests, tokens, blocks and their places.")


def equal_outputs(record: ServeRecord) -> Checked:
    """Whether every request has the same tokens in every way."""
    if record.equal_outputs:
        tokens = record.services[0].new_tokens
        return Checked(True, f"yes, the same {tokens} tokens each time, in {record.request.weights}.")
    many = len(record.unequal_requests)
    return Checked(False, f"no, {many} of {record.request.trace.requests} answers differ.")


def seats_of(record: ServeRecord, service: Service) -> SeatPlan:
    """Who sat where, as it was served."""
    return seat_plan(service.steps, record.request.places)


def slots_of(record: ServeRecord, service: Service) -> Slots:
    """The held slots, summed over the steps that were served."""
    page_tokens = record.request.batching(service.way).page_tokens
    return all_slots(service.steps, record.request.arrivals(), page_tokens)
