"""The pictures of page 17: every guess has its sign, break-even is a line, and nothing leaves its frame."""

import re

import pytest

from core.lesson.quantities.guess_rounds import Length, Rounds
from core.simulate.speculation import Answer, by_chance, given, simulate
from core.ui.figures.drafted_rounds import drafted_rounds, timed_drafted_rounds
from core.ui.figures.mark_scale import Marks
from core.ui.figures.speed_by_length import speed_by_length
from tests.ui.drawn import drawn_inside

MARKS = Marks(low=0.3, high=10, unit="×", said=2.0, true=0.875, now=0.875)


def some_rounds(guesses: int, acceptance: float) -> Rounds:
    made = tuple(simulate(Answer(1, 200, guesses), by_chance(acceptance, 1))[1:9])
    return Rounds(made, guesses, sum(1 + one.accepted_tokens for one in made), 8 * 2.25)


@pytest.mark.parametrize("acceptance", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("guesses", [1, 5, 16])
def test_every_guess_has_its_sign(guesses: int, acceptance: float) -> None:
    rounds = some_rounds(guesses, acceptance)
    markup = drawn_inside(drafted_rounds(rounds))
    kept = sum(one.accepted_tokens for one in rounds.rounds)
    wrong = sum(one.accepted_tokens < guesses for one in rounds.rounds)
    assert markup.count("✓") == kept
    assert markup.count("✕") == wrong
    assert markup.count(">+<") == 8
    assert markup.count("nobody looks at it") == 8 * guesses - kept - wrong
    assert [
        int(text) for text in re.findall(r'text-anchor="end" class="t fill-ink strong">(\d+)<', markup)
    ] == [1 + one.accepted_tokens for one in rounds.rounds]


def test_the_times_come_with_the_answer_only() -> None:
    rounds = some_rounds(5, 0.5)
    assert "steps" not in drafted_rounds(rounds).markup()
    timed = timed_drafted_rounds(rounds)
    markup = drawn_inside(timed)
    assert "18.0 steps" in markup
    assert f"without guesses takes {rounds.tokens}." in timed.alt


def test_a_round_without_guesses_has_the_models_own_token_alone() -> None:
    made = tuple(simulate(Answer(1, 9, 4), given([0, 3], [0, 1]))[1:3])
    markup = drawn_inside(drafted_rounds(Rounds(made, 4, 3, 2.0)))
    assert (markup.count("✓"), markup.count("✕"), markup.count(">+<")) == (1, 1, 2)


def curve(rate: float) -> list[Length]:
    return [Length(k, 1 + k * rate, 1 + k * (rate - 0.25), 1 + k * (rate - 0.3)) for k in range(17)]


@pytest.mark.parametrize("rate", [0.3, 0.25, 0.31, 1.25])
@pytest.mark.parametrize("now", [1, 5, 16])
def test_every_curve_is_drawn_inside_its_frame(rate: float, now: int) -> None:
    lengths = curve(rate)
    best = max(range(17), key=lambda k: lengths[k].here)
    picture = speed_by_length(lengths, now, best, MARKS)
    markup = drawn_inside(picture)
    assert "break-even" in markup
    assert "You said 2 ×." in picture.alt
    assert ("No number of guesses is faster" in picture.alt) == (best == 0)
    assert ("so slower" in picture.alt) == (lengths[now].here <= 1)
    assert markup.count("tokens a round") == 17
