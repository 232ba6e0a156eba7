"""The same requests with each policy: steps, seats that give a token, waits, and the largest step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.ui.figures.mark_scale import HEIGHT, Marks, draw_marks
from core.ui.picture import Picture, redrawable
from core.ui.svg import Drawing, Scale

_WIDTH: Final = 560
_LEFT, _RIGHT = 6, 470
_TOP: Final = 8
_ROW, _BAR = 64, 18


@dataclass(frozen=True, slots=True)
class PolicySteps:
    """What a policy comes to.

    Attributes:
        name: of the policy. steps: in all. used_share: of seats times steps, what gives a token.
        first_token_steps: until a request's first token, the mean. largest_step: tokens of one step at most.
        chosen: it is the page's.
    """

    name: str
    steps: int
    used_share: float
    first_token_steps: float
    largest_step: int
    chosen: bool


@redrawable
def policy_steps(policies: Sequence[PolicySteps], marks: Marks) -> Picture:
    """Draw a bar of steps for each policy, with its other numbers beside.

    Args:
        policies: in order.
        marks: of the prediction.
    """
    drawing = Drawing(_WIDTH, _TOP + len(policies) * _ROW + 14 + HEIGHT)
    x = Scale(0, max(policy.steps for policy in policies), _LEFT, _RIGHT)
    for row, policy in enumerate(policies):
        y = _TOP + row * _ROW
        name = f"{policy.name}, shown above" if policy.chosen else policy.name
        drawing.text(_LEFT, y + 14, name, "fill-ink strong")
        hover = f"{policy.name}: {policy.steps:,} steps"
        drawing.rectangle(_LEFT, y + 20, x(policy.steps) - _LEFT, _BAR, "fill-decode", hover=hover)
        drawing.text(x(policy.steps) + 7, y + 34, f"{policy.steps:,} steps", "fill-ink")
        drawing.text(_LEFT, y + 54, _words(policy), "fill-muted")
    draw_marks(drawing, _TOP + len(policies) * _ROW + 14, "steps with continuous batching", marks)
    return Picture(
        title="The same requests with each policy",
        drawing=drawing,
        alt=" ".join(f"{p.name.capitalize()}: {p.steps:,} steps, {_words(p)}." for p in policies)
        + marks.sentence,
        columns=(
            "policy",
            "steps",
            "share of seats used",
            "steps to the first token",
            "largest step, tokens",
        ),
        rows=[(p.name, p.steps, p.used_share, p.first_token_steps, p.largest_step) for p in policies],
    )


def _words(policy: PolicySteps) -> str:
    return (
        f"{100 * policy.used_share:.0f} % used, first token after {policy.first_token_steps:.1f}, "
        f"largest step {policy.largest_step:,} tokens"
    )
