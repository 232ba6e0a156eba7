"""The numbers of page 17 against the process that they describe, and against the operators of both passes."""

import doctest

import numpy as np
import pytest

from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.lesson import guessing_trial
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.quantities.guess_rounds import MOST_GUESSES, fastest, lengths, rounds, verify_costs
from tests.lesson.diagnosed import is_diagnosed

LESSON = lessons()["speculative_decoding"]


def case(**values: str | int) -> LessonCase:
    return catalogue_case({**LESSON.base, **values})


def value(name: str, now: LessonCase) -> float:
    return LESSON.quantities[name](now).value


def test_five_guesses_of_which_half_are_right_at_a_quarter_of_a_step_are_slower() -> None:
    now = case()
    assert value("tokens_a_round", now) == 1 + 0.5 + 0.25 + 0.125 + 0.0625 + 0.03125
    assert value("cost_of_a_round", now) == 2.25
    assert value("speed_up", now) == pytest.approx(0.875)
    assert value("speed_up_here", now) == pytest.approx(0.875, rel=0.005)
    assert value("break_even", now) == pytest.approx(57.1, abs=0.05)


def test_a_round_of_five_at_seventy_percent() -> None:
    assert value("tokens_a_round", case(acceptance=70)) == pytest.approx(2.94, abs=0.005)


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_the_check_costs_what_the_operators_of_its_pass_take(batch: int) -> None:
    now = case(batch=batch)
    costs = verify_costs(now)
    context = now.scenario.input_tokens + now.scenario.output_tokens
    one, six = (
        float(
            step_time(
                operators(
                    now.model,
                    batch=batch,
                    new_tokens=rows,
                    context=context + rows - 1,
                    weights="bf16",
                    kv="bf16",
                ),
                now.machine,
            )
        )
        for rows in (1, 6)
    )
    assert len(costs) == 1 + MOST_GUESSES
    assert costs[0] == 1
    assert costs[5] == pytest.approx(six / one)
    assert all(np.diff(costs) >= 0)


def test_many_users_eat_the_gain() -> None:
    gains = [
        value("speed_up_here", case(acceptance=80, draft_cost=10, batch=batch)) for batch in (1, 32, 256)
    ]
    assert gains[0] > gains[1] > 2 > gains[2]
    assert value("speed_up", case(acceptance=80, draft_cost=10, batch=256)) == pytest.approx(
        gains[0], rel=0.01
    )


def test_the_fastest_length_is_the_top_of_the_curve() -> None:
    for now in (
        case(),
        case(acceptance=90, draft_cost=2),
        case(acceptance=0),
        case(acceptance=80, batch=256),
    ):
        curve = lengths(now)
        assert [one.guesses for one in curve] == list(range(1 + MOST_GUESSES))
        assert curve[0].here == curve[0].free == curve[0].tokens == 1
        assert curve[fastest(now)].here == max(one.here for one in curve)
    assert fastest(case(acceptance=0)) == 0


def test_the_rounds_are_about_as_good_as_the_average() -> None:
    for acceptance in (0, 50, 70, 100):
        now = case(acceptance=acceptance)
        some = rounds(now)
        assert some == rounds(now)
        mean = some.tokens / len(some.rounds)
        assert mean == pytest.approx(value("tokens_a_round", now), rel=0.15)
        each = value("verify_cost", now) + 5 * 0.25
        assert some.steps == pytest.approx(len(some.rounds) * each)


def test_a_kept_guess_and_a_new_draw_make_the_models_own_chance() -> None:
    now = case()
    assert value("written_share", now) == pytest.approx(value("model_says", now))
    assert value("kept_share", now) == pytest.approx(100 * 5 / 7)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_length_is_one_that_a_learner_can_find(seed: int) -> None:
    instance = draw(LESSON, LESSON.exercises[1], seed)
    assert 1 <= instance.answer.value < MOST_GUESSES
    assert instance.check(f"{instance.answer.value:.0f}").correct
    assert not instance.check(f"{instance.answer.value + 1:.0f}").correct


@pytest.mark.parametrize(
    ("exercise", "name", "says"),
    [
        (0, "tokens_by_share", "Behind the first wrong one"),
        (0, "tokens_without_own", "forgets the token that the check itself brings"),
        (0, "tokens_of_one_less", "one power too few"),
        (1, "longest_that_pays", "The fastest length comes earlier"),
        (1, "best_if_free", "if guesses cost nothing"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: int, name: str, says: str) -> None:
    is_diagnosed(LESSON, exercise, name, says)


def test_every_choice_of_the_trial_is_a_request_that_the_lab_accepts() -> None:
    options = {control.name: control.options for control in LESSON.beside}
    assert set(options["trial_draft"]) == set(guessing_trial.DRAFTS)
    assert set(options["trial_choice"]) == set(guessing_trial.CHOICES)
    for draft in options["trial_draft"]:
        for choice in options["trial_choice"]:
            for weights in options["trial_weights"]:
                values: dict[str, int | str] = {
                    "trial_draft": draft,
                    "trial_choice": choice,
                    "trial_weights": weights,
                    "guesses": 5,
                }
                request = guessing_trial.request_of(values)
                request.validate()
                assert request.is_exact == (weights == "fp32" and choice == "the likeliest")


def test_examples_hold() -> None:
    assert doctest.testmod(guessing_trial) == (0, 1)
