"""Seats by time: who sits where in each step, what it does there, and where nobody sits."""

from __future__ import annotations

from typing import Final

from core.simulate.seats import SeatPlan, Sitting
from core.ui.figures.requests import hatch, letter, style
from core.ui.figures.time_axis import counted, draw_axis
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale

_WIDTH: Final = 560
_LEFT, _RIGHT = 62, 552
_TOP: Final = 12
_ROW, _GAP = 30, 6
_MOST_SEATS: Final = 12
#: A letter needs so much room on a phone, where letters are largest.
_LETTER: Final = 17
_DOING: Final = {"reads": "reads its prompt", "writes": "writes", "waits": "waits for its turn"}


@redrawable
def seat_plan(plan: SeatPlan, policy: str, source: str) -> Picture:
    """Draw a row for each seat and a column for each step; idle seats are hatched.

    Args:
        plan: who sits where.
        policy: in words, for the title.
        source: what the steps are: "simulated", or where they were served.
    """
    rows = min(plan.seats, _MOST_SEATS)
    bottom = _TOP + rows * (_ROW + _GAP)
    drawing = Drawing(_WIDTH, bottom + 44)
    axis = counted(plan.steps)
    x = axis.scale(_LEFT, _RIGHT)
    for seat in range(rows):
        y = _TOP + seat * (_ROW + _GAP)
        drawing.text(_LEFT - 8, y + 20, f"seat {seat + 1}", "fill-ink", anchor="end")
        for first, last in _idle(plan, seat):
            left, right = x(first), x(last + 1)
            hatch(drawing, left, y, right - left, _ROW)
            hover = f"seat {seat + 1}: idle in {_steps(first, last)}"
            drawing.rectangle(left, y, right - left, _ROW, "clear", hover=hover)
        for sitting in plan.sittings:
            if sitting.seat == seat:
                _sitting(drawing, x, y, sitting)
        for stay in _stays(plan, seat):
            _name(drawing, x, y, stay)
    draw_axis(drawing, axis, x, bottom)
    return Picture(
        title=f"{policy}: {plan.steps:,} steps, {100 * plan.used_share:.0f} % of the seats used",
        drawing=drawing,
        alt=_alt(plan, policy, source),
        columns=("seat", "request", "first step", "last step", "does"),
        rows=[
            (s.seat + 1, letter(s.request), s.first + 1, s.last + 1, _DOING[s.doing]) for s in plan.sittings
        ],
        legend=(
            Label("fill-request-0", "a request, by its letter, writes a token a step"),
            Label("band fill-request-0", "fainter: it reads its prompt, whose end gives its first token"),
            Label(
                "clear thin line-muted",
                "hatched: the seat is idle",
                f"{_idle_steps(plan):,} of {plan.seats * plan.steps:,}",
            ),
        ),
    )


def _sitting(drawing: Drawing, x: Scale, y: float, sitting: Sitting) -> None:
    left, right = x(sitting.first), x(sitting.last + 1)
    name = letter(sitting.request)
    hover = f"{name} {_DOING[sitting.doing]} in {_steps(sitting.first, sitting.last)}"
    width = max(right - left - 1, 0.8)
    if sitting.doing == "waits":
        hatch(drawing, left, y, width, _ROW)
        drawing.rectangle(left, y, width, _ROW, "clear", hover=hover)
        return
    reads = sitting.doing == "reads"
    fill = style(sitting.request)
    drawing.rectangle(left, y, width, _ROW, f"band {fill}" if reads else fill, hover=hover, round=2)
    if reads:
        line = fill.replace("fill", "line")
        frame = [(left, y), (left + width, y), (left + width, y + _ROW), (left, y + _ROW), (left, y)]
        drawing.path(frame, f"thin {line}")


def _stays(plan: SeatPlan, seat: int) -> list[list[Sitting]]:
    """The sittings of one seat, those of one request that follow one another together."""
    stays: list[list[Sitting]] = []
    for sitting in plan.sittings:
        if sitting.seat != seat:
            continue
        last = stays[-1][-1] if stays else None
        if last and (last.request, last.last + 1) == (sitting.request, sitting.first):
            stays[-1].append(sitting)
        else:
            stays.append([sitting])
    return stays


def _name(drawing: Drawing, x: Scale, y: float, stay: list[Sitting]) -> None:
    """A letter on each sitting that has room for it; where none has, one on a ground of its own for all."""
    name = letter(stay[0].request)
    room = _LETTER * len(name)
    wide = [s for s in stay if x(s.last + 1) - x(s.first) - 1 >= room and s.doing != "waits"]
    for sitting in wide:
        ink = "fill-ink strong" if sitting.doing == "reads" else "fill-page strong"
        drawing.text((x(sitting.first) + x(sitting.last + 1)) / 2, y + 20, name, ink, anchor="middle")
    left, right = x(stay[0].first), x(stay[-1].last + 1)
    if not wide and right - left - 1 >= room:
        middle = (left + right) / 2
        drawing.rectangle(middle - room / 2, y + 5, room, 20, "fill-page", round=3)
        drawing.text(middle, y + 20, name, "fill-ink strong", anchor="middle")


def _idle(plan: SeatPlan, seat: int) -> list[tuple[int, int]]:
    """The stretches of steps in which nobody sits there, both ends included."""
    taken = sorted((s.first, s.last) for s in plan.sittings if s.seat == seat)
    free, start = [], 0
    for first, last in taken:
        if first > start:
            free.append((start, first - 1))
        start = max(start, last + 1)
    return [*free, (start, plan.steps - 1)] if start < plan.steps else free


def _idle_steps(plan: SeatPlan) -> int:
    return plan.seats * plan.steps - plan.busy


def _steps(first: int, last: int) -> str:
    return f"step {first + 1}" if first == last else f"steps {first + 1} to {last + 1}"


def _alt(plan: SeatPlan, policy: str, source: str) -> str:
    requests = len({sitting.request for sitting in plan.sittings})
    return (
        f"{policy}, {source}: {requests} requests on {plan.seats} seats take {plan.steps:,} steps. "
        f"Of all seats in all steps {100 * plan.used_share:.0f} % are used; {_idle_steps(plan):,} are idle."
    )
