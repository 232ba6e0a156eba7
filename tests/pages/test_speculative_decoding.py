"""The trial of page 17: its controls, its states, and what is said of the two texts."""

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.analytic.step_record import StepRecord
from core.lab.speculate_record import SpeculateRecord, Written
from core.lab.speculate_request import SpeculateRequest
from core.simulate.speculation import Answer, SimulatedRound, by_chance, simulate
from tests.lab import examples
from tests.pages.conftest import Open, settled, state, words
from tests.pages.fake_lab import FakeLab

pytestmark = pytest.mark.page

STEM = "speculative_decoding"
STEP_S = 0.01


def record_of(payload: dict[str, Any], **changes: object) -> SpeculateRecord:
    """A text whose guesses are right by chance; a step takes 10 ms, a check 12, a guess 1."""
    request = SpeculateRequest.from_json(payload)
    most = request.run.max_tokens
    guessed, plain = (
        simulate(Answer(12, most, guesses), by_chance(0.6, 1)) for guesses in (request.guesses, 0)
    )
    tokens = tuple(range(most))
    checks = sum(one.drafted_tokens > 0 for one in guessed)
    answer_s = (
        STEP_S * (len(guessed) - 1) + 0.002 * checks + 0.001 * sum(one.drafted_tokens for one in guessed)
    )
    record = SpeculateRecord(
        created_at="2026-11-29T12:01:00+00:00",
        host=examples.record().host,
        request=request,
        model_name="SmolLM2-135M",
        prompt_tokens=12,
        plain=Written(
            tokens, "The boat.", steps(plain), (STEP_S * (most - 1),) * 3, (STEP_S,) * 3 * (most - 1)
        ),
        guessed=Written(
            tokens,
            "The boat.",
            steps(guessed),
            (answer_s,) * 3,
            (STEP_S,),
            (0.012,) * 3 * checks,
            (0.001,) * 9,
        ),
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def steps(rounds: list[SimulatedRound]) -> tuple[StepRecord, ...]:
    return tuple(
        replace(
            examples.step(index, one.context_tokens, STEP_S),
            new_tokens=one.new_tokens,
            drafted_tokens=one.drafted_tokens,
            accepted_tokens=one.accepted_tokens,
        )
        for index, one in enumerate(rounds)
    )


def run(app: AppTest, lab: FakeLab, **changes: object) -> AppTest:
    """Press Run, and let it end with a record of what was asked for."""
    settled(app.button(key=f"{STEM}_run").click().run())
    job = list(lab.jobs)[-1]
    kind, payload = lab.experiments[job]
    assert kind == "speculate"
    lab.finish_experiment(job, record_of(payload, **changes).to_json())
    settled(app.run())
    return settled(app.run())


def test_the_page_asks_for_what_its_controls_say(open_app: Open, lab: FakeLab) -> None:
    app = open_app(STEM, set_guesses="3", set_trial_draft="the first 6 layers", set_trial_weights="int8")
    run(app, lab)
    (_, payload) = lab.experiments["cpu-0"]
    request = SpeculateRequest.from_json(payload)
    assert (request.draft, request.layers, request.guesses) == ("layers", 6, 3)
    assert (request.run.weights, request.run.kv, request.run.temperature) == ("int8", "bf16", 0)
    assert state(app) == "measured"


def test_equal_texts_steps_and_speed_stand_beside_simulator_and_formula(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(STEM), lab)
    text = words(app)
    assert "Both texts are the same 48 tokens" in text
    assert "steps of the simulator, count for count" in text
    for label in ("Tokens a step", "Speed-up", "guesses held"):
        assert label in text
    record = record_of(lab.experiments["cpu-0"][1])
    gain, _, _ = record.speed_up
    assert record.formula_speed_up == pytest.approx(gain, rel=0.15)
    assert f"{record.accepted} of {record.drafted} guesses held" in text


def test_another_number_of_guesses_is_another_trial(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(STEM), lab)
    settled(app.select_slider(key=f"{STEM}_guesses").set_value(2).run())
    settled(app.run())
    assert state(app) == "nothing"
    settled(app.selectbox(key=f"{STEM}_trial_choice").set_value("drawn by chance").run())
    assert app.query_params["set_trial_choice"] == "drawn by chance"
    run(app, lab)
    request = SpeculateRequest.from_json(list(lab.experiments.values())[-1][1])
    assert (request.guesses, request.run.temperature) == (2, 0.8)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "In fp32 both texts must be equal, and they part after 7 tokens"),
        ({"set_trial_weights": "int8"}, "In int8 several rows are computed by other kernels"),
        ({"set_trial_choice": "drawn by chance"}, "Each text is as likely as the other"),
    ],
)
def test_texts_that_part_are_told_apart_by_reason(
    open_app: Open, lab: FakeLab, params: dict[str, str], says: str
) -> None:
    app = open_app(STEM, **params)
    settled(app.button(key=f"{STEM}_run").click().run())
    record = record_of(lab.experiments["cpu-0"][1])
    other = replace(record.guessed, token_ids=(*range(7), *range(100, 141)))
    lab.finish_experiment("cpu-0", replace(record, guessed=other).to_json())
    settled(app.run())
    settled(app.run())
    assert says in words(app).replace("\\", "")


def test_a_noisy_host_is_said(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(STEM), lab, noisy=("other programs used 40% of the processors",))
    assert state(app) == "noisy"
    assert "other programs used 40%" in words(app).replace("\\", "")


def test_a_record_that_does_not_hold_together_is_a_sentence(open_app: Open, lab: FakeLab) -> None:
    app = open_app(STEM)
    settled(app.button(key=f"{STEM}_run").click().run())
    lab.finish_experiment("cpu-0", {"created_at": "yesterday"})
    settled(app.run())
    settled(app.run())
    assert "A record of speculation must have" in words(app)


def test_a_step_that_is_not_the_simulators_is_a_fault(open_app: Open, lab: FakeLab) -> None:
    app = open_app(STEM)
    settled(app.button(key=f"{STEM}_run").click().run())
    record = record_of(lab.experiments["cpu-0"][1])
    changed = (*record.guessed.steps[:-1], replace(record.guessed.steps[-1], context_tokens=999))
    lab.finish_experiment("cpu-0", replace(record, guessed=replace(record.guessed, steps=changed)).to_json())
    settled(app.run())
    settled(app.run())
    assert "the engine or the simulator has a fault" in words(app)


def test_what_the_model_wrote_can_be_read(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(STEM), lab)
    app.session_state[f"{STEM}_texts"] = True
    settled(app.run())
    text = words(app)
    assert "Without guesses" in text
    assert "The boat" in text
