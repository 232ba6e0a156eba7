"""The prediction for a load: the planner's times, put together as a request of a busy server sees them."""

import json
from dataclasses import replace

import pytest

from core.analytic.datasheet import machine_from
from core.analytic.plan import plan
from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerator
from core.catalog.models import model
from core.catalog.scenario import Scenario
from core.errors import FormatError, ScenarioError
from core.lab import calibration_file
from core.lab.checked_json import Reader
from core.lab.endpoint.prediction import Deployment, EndpointPrediction, predict
from core.lab.endpoint.request import EndpointRequest
from tests.lab.examples import calibration

LOAD = EndpointRequest(levels=(1, 8), requests=8, prompt_tokens=1000, output_tokens=100)
LLAMA = Deployment("llama-3.1-8b", "h100-sxm-80gb")


def test_it_is_the_planners_prompt_and_step_as_a_busy_server_shows_them() -> None:
    found = predict(LOAD, LLAMA, model(LLAMA.model))
    machine = machine_from(accelerator(LLAMA.accelerator))
    one = Scenario(LLAMA.model, LLAMA.accelerator, input_tokens=1000, output_tokens=100)
    alone = plan(one, model(LLAMA.model), machine)
    full = plan(replace(one, batch=8), model(LLAMA.model), machine)
    assert alone.ttft_s
    assert full.tpot_s
    first, last = found.levels
    assert first.ttft_s == pytest.approx(alone.ttft_s)
    assert first.tpot_s == pytest.approx(alone.tpot_s)
    assert last.ttft_s == pytest.approx(1.5 * alone.ttft_s)
    assert last.tpot_s
    assert last.tpot_s == pytest.approx(full.tpot_s + 7 * alone.ttft_s / 100)
    assert last.requests_per_s == pytest.approx(8 / (last.ttft_s + 99 * last.tpot_s))
    assert last.output_tokens_per_s == pytest.approx(100 * last.requests_per_s)
    assert last.tpot_range_s
    assert last.tpot_range_s[0] < last.tpot_s < last.tpot_range_s[1]
    assert not found.violations
    assert "network" in found.notes[0]


def test_replicas_share_the_requests() -> None:
    alone = predict(LOAD, LLAMA, model(LLAMA.model))
    two = predict(replace(LOAD, levels=(16,), requests=16), replace(LLAMA, count=2), model(LLAMA.model))
    assert two.levels[0].ttft_s == pytest.approx(alone.levels[1].ttft_s)
    assert two.levels[0].output_tokens_per_s == pytest.approx(2 * alone.levels[1].output_tokens_per_s)


def test_an_answer_of_one_token_has_no_tpot() -> None:
    found = predict(replace(LOAD, output_tokens=1), LLAMA, model(LLAMA.model))
    assert [level.tpot_s for level in found.levels] == [None, None]
    assert [level.tpot_range_s for level in found.levels] == [None, None]


def test_what_does_not_fit_is_said_and_still_timed() -> None:
    large = replace(LLAMA, model="llama-3.3-70b")
    assert "must fit" in predict(LOAD, large, model(large.model)).violations[0]


def test_what_cannot_be_timed_is_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="must be one that can be timed"):
        predict(LOAD, replace(LLAMA, count=3, tp=3), model(LLAMA.model))
    with pytest.raises(FormatError):
        predict(LOAD, replace(LLAMA, weights="fp99"), model(LLAMA.model))


def test_this_computer_needs_a_calibration_and_a_server_that_is_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, spec = Deployment("smollm2-135m", THIS_COMPUTER, weights="int4"), model("smollm2-135m")
    with pytest.raises(ScenarioError, match="needs its calibration"):
        predict(LOAD, here, spec)
    with pytest.raises(ScenarioError, match=r"must have an address like .* other\.test has another"):
        predict(replace(LOAD, url="http://other.test"), here, spec)
    with pytest.raises(ScenarioError, match="count and tp must be 1; got 2 and 1"):
        predict(LOAD, replace(here, count=2), spec)
    stored = calibration_file.Stored(calibration(), "")
    monkeypatch.setattr(calibration_file, "load", lambda fingerprint: stored)
    found = predict(LOAD, here, spec)
    assert found.levels[0].ttft_s > 0
    assert found.levels[0].ttft_range_s is None
    assert "own engine" in found.notes[1]


def test_a_prediction_comes_back_as_it_was() -> None:
    found = predict(LOAD, LLAMA, model(LLAMA.model))
    data = json.loads(json.dumps(found.to_json()))
    assert EndpointPrediction.from_reader(Reader(data, "A prediction")) == found
