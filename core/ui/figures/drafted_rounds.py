"""Rounds of guessing, one a row: which guesses hold, where the first wrong one is, and what they take."""

from __future__ import annotations

from typing import Final

from core.lesson.quantities.guess_rounds import Rounds
from core.simulate.speculation import SimulatedRound
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing
from core.units import significant

_WIDTH: Final = 560
_TOP: Final = 34
_ROW: Final = 30
_LEFT: Final = 74
_RIGHT: Final = 456
_MOST_CELL: Final = 60
_HEIGHT: Final = 22
_TIMES: Final = 92


@redrawable
def drafted_rounds(rounds: Rounds) -> Picture:
    """Draw what each round guessed and kept.

    Args:
        rounds: some of them, by chance.
    """
    return _picture(rounds, _rows(rounds, 0), "")


@redrawable
def timed_drafted_rounds(rounds: Rounds) -> Picture:
    """Draw the same, and below it the time of all rounds beside that of writing without guesses."""
    drawing = _rows(rounds, _TIMES)
    _times(drawing, rounds)
    said = (
        f" They take {significant(rounds.steps)} steps; writing as many tokens without guesses takes "
        f"{rounds.tokens}."
    )
    return _picture(rounds, drawing, said)


def _rows(rounds: Rounds, below: float) -> Drawing:
    drawing = Drawing(_WIDTH, _TOP + _ROW * len(rounds.rounds) + 8 + below)
    drawing.text(4, 16, "round", "fill-muted")
    drawing.text(_LEFT, 16, "guesses, and the check's own token", "fill-muted")
    drawing.text(_WIDTH - 4, 16, "tokens", "fill-muted", anchor="end")
    cell = min((_RIGHT - _LEFT) / (rounds.guesses + 1), _MOST_CELL)
    for row, one in enumerate(rounds.rounds):
        y = _TOP + row * _ROW
        drawing.text(12, y + 16, f"{row + 1}", "fill-ink")
        _cells(drawing, one, y, cell)
        drawing.text(_WIDTH - 12, y + 16, f"{1 + one.accepted_tokens}", "fill-ink strong", anchor="end")
    return drawing


def _cells(drawing: Drawing, one: SimulatedRound, y: float, cell: float) -> None:
    """The guesses in order; the model's own token stands where the first wrong guess was, or behind all."""
    kept, width = one.accepted_tokens, cell - 3
    for index in range(one.drafted_tokens):
        x = _LEFT + index * cell
        if index < kept:
            hover = f"guess {index + 1}: right, so it holds"
            drawing.rectangle(x, y, width, _HEIGHT, "fill-decode", round=3, hover=hover)
            _sign(drawing, x + width / 2, y, "✓", "fill-page strong")
        elif index == kept:
            hover = f"guess {index + 1}: wrong, so the round ends"
            drawing.rectangle(x, y, width, _HEIGHT, "outline line-ink", round=3, hover=hover)
            _sign(drawing, x + width / 2, y, "✕", "fill-ink strong")
        else:
            hover = f"guess {index + 1}: thrown away, nobody looks at it"
            drawing.rectangle(x, y, width, _HEIGHT, "fill-grid", round=3, hover=hover)
    x = _LEFT + one.drafted_tokens * cell + 4
    hover = "the model's own token" + (
        f", in the place of guess {kept + 1}" if kept < len(one.decided) else ""
    )
    drawing.rectangle(x, y, width, _HEIGHT, "fill-ink", round=3, hover=hover)
    _sign(drawing, x + width / 2, y, "+", "fill-page strong")


def _sign(drawing: Drawing, x: float, y: float, sign: str, style: str) -> None:
    drawing.text(x, y + 16, sign, style, anchor="middle")


def _times(drawing: Drawing, rounds: Rounds) -> None:
    """Two bars on one scale: the rounds, and the same tokens one step each."""
    top = drawing.height - _TIMES
    longest = max(rounds.steps, float(rounds.tokens))
    for row, (words, steps, style) in enumerate(
        (
            ("with guesses", rounds.steps, "fill-decode"),
            ("without", float(rounds.tokens), "fill-muted"),
        )
    ):
        y = top + 12 + row * 40
        written = f"{significant(steps)} steps"
        drawing.text(4, y + 12, f"{rounds.tokens} tokens {words}: {written}", "fill-ink")
        drawing.rectangle(4, y + 18, (_WIDTH - 8) * steps / longest, 10, style, hover=f"{words}: {written}")


def _picture(rounds: Rounds, drawing: Drawing, said: str) -> Picture:
    number = len(rounds.rounds)
    return Picture(
        title="What becomes of the guesses",
        drawing=drawing,
        alt=f"{number} rounds of {rounds.guesses} guesses each wrote {rounds.tokens} tokens: "
        f"{', '.join(str(1 + one.accepted_tokens) for one in rounds.rounds)}.{said}",
        columns=("round", "guesses", "guesses that hold", "thrown away", "tokens written"),
        rows=[
            (
                row + 1,
                one.drafted_tokens,
                one.accepted_tokens,
                one.drafted_tokens - one.accepted_tokens,
                1 + one.accepted_tokens,
            )
            for row, one in enumerate(rounds.rounds)
        ],
        legend=(
            Label("fill-decode", "✓ holds"),
            Label("outline line-ink", "✕ the first wrong one"),
            Label("fill-grid", "thrown away"),
            Label("fill-ink", "+ the model's own token"),
        ),
    )
