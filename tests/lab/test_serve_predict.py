"""Steps of a trace predicted before it is served: one a simulated step, and never what a step cannot be."""

from dataclasses import replace

import pytest

from core.analytic.machine import Machine
from core.catalog.models import model
from core.lab.predict import predict
from core.lab.request import RunRequest
from core.lab.serve_predict import predict_steps, request_times
from core.lab.serve_request import ServeRequest, Way
from core.simulate.trace import Trace
from tests.lab import examples

SHAPE = model("smollm2-135m")
ALONE = Way(places=1)


def machine(weights: str = "int4") -> Machine:
    return examples.calibration().machine(weights)


def request(**changes: object) -> ServeRequest:
    return replace(ServeRequest(weights="int4", kv="bf16"), **changes)  # type: ignore[arg-type]


def test_one_request_alone_is_predicted_as_a_run_is() -> None:
    asked = request(trace=Trace(requests=1, prompt_tokens=20, answer_tokens=6, spread="fixed"))
    steps_s = predict_steps(asked, asked.ways[0], SHAPE, machine())
    run = predict(RunRequest(max_tokens=6, cache="paged"), 20, SHAPE, machine())
    assert steps_s == pytest.approx(run.step_s)
    (times,) = request_times(asked.simulated(asked.ways[0]), steps_s, asked.arrivals())
    assert (times.ttft_s, times.tpot_s) == pytest.approx((run.ttft_s, run.tpot_s))


def test_together_takes_less_time_than_one_by_one_and_each_waits_for_its_step() -> None:
    asked = request(ways=(Way(), ALONE))
    together, alone = (predict_steps(asked, way, SHAPE, machine()) for way in asked.ways)
    assert len(together) == len(asked.simulated(asked.ways[0]))
    assert sum(together) < sum(alone)
    for way, steps_s in ((Way(), together), (ALONE, alone)):
        times = request_times(asked.simulated(way), steps_s, asked.arrivals())
        assert all(0 <= t.arrival_s < t.first_s <= t.last_s for t in times)
        assert max(t.last_s for t in times) == pytest.approx(sum(steps_s))


def test_nothing_is_predicted_with_guesses() -> None:
    assert predict_steps(request(guesses=4), Way(), SHAPE, machine()) == ()
