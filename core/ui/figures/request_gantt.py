"""Requests by time: a row for each, in which it waits, reads its prompt, writes, or loses its pages."""

from __future__ import annotations

from typing import Final

from core.simulate.request_lanes import RequestLanes, Span
from core.ui.figures.requests import hatch, letter
from core.ui.figures.time_axis import StepAxis, draw_axis
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale

_WIDTH: Final = 560
_LEFT, _RIGHT = 40, 546
_TOP: Final = 14
_ROW, _GAP = 22, 6
_MOST_ROWS: Final = 16
_DOING: Final = {"reads": "reads its prompt", "writes": "writes", "waits": "waits"}


@redrawable
def request_gantt(lanes: RequestLanes, axis: StepAxis, title: str, source: str, chosen: int = -1) -> Picture:
    """Draw a row for each request; a prompt that is read is a high bar, writing a low one, waiting hatched.

    Args:
        lanes: the requests.
        axis: where the steps lie.
        title: how they are served, for the title.
        source: what the steps are: "simulated", or where they were served.
        chosen: the step that other pictures show, from 0 on; below 0 for none.
    """
    rows = min(lanes.requests, _MOST_ROWS)
    bottom = _TOP + rows * (_ROW + _GAP)
    hidden = lanes.requests - rows
    drawing = Drawing(_WIDTH, bottom + 46 + (20 if hidden else 0))
    x = axis.scale(_LEFT, _RIGHT)
    if 0 <= chosen < lanes.steps:
        left, right = x(axis.edges[chosen]), x(axis.edges[chosen + 1])
        drawing.rectangle(left, _TOP - 8, max(right - left, 2), bottom - _TOP + 8, "band fill-muted")
    for request in range(rows):
        y = _TOP + request * (_ROW + _GAP)
        drawing.text(_LEFT - 8, y + 17, letter(request), "fill-ink strong", anchor="end")
    for span in lanes.spans:
        if span.request < rows:
            _span(drawing, x, axis, span)
    for request, step in lanes.lost:
        if request < rows:
            _lost(drawing, x(axis.edges[step]), _TOP + request * (_ROW + _GAP), request, step)
    draw_axis(drawing, axis, x, bottom)
    if hidden:
        drawing.text(_LEFT, bottom + 58, f"and {hidden} more, see the numbers below", "fill-muted")
    return Picture(
        title=f"{title}: {lanes.steps:,} steps",
        drawing=drawing,
        alt=_alt(lanes, axis, title, source),
        columns=("request", "does", "first step", "last step", f"from, {axis.unit}", f"to, {axis.unit}"),
        rows=[_cells(span, axis) for span in lanes.spans],
        legend=_legend(lanes),
    )


def _span(drawing: Drawing, x: Scale, axis: StepAxis, span: Span) -> None:
    y = _TOP + span.request * (_ROW + _GAP)
    left, right = x(axis.edges[span.first]), x(axis.edges[span.last + 1])
    width = max(right - left - 0.6, 0.6)
    steps = (
        f"step {span.first + 1}" if span.first == span.last else f"steps {span.first + 1} to {span.last + 1}"
    )
    hover = f"{letter(span.request)} {_DOING[span.doing]} in {steps}"
    if span.doing == "waits":
        hatch(drawing, left, y + 6, width, _ROW - 12)
        drawing.rectangle(left, y, width, _ROW, "clear", hover=hover)
    elif span.doing == "reads":
        drawing.rectangle(left, y, width, _ROW, "fill-prefill", hover=hover, round=2)
    else:
        drawing.rectangle(left, y + 5, width, _ROW - 10, "fill-decode", hover=hover, round=2)


def _lost(drawing: Drawing, x: float, y: float, request: int, step: int) -> None:
    """A mark that points down to where the pages were lost."""
    hover = f"{letter(request)} loses its pages before step {step + 1} and starts again"
    drawing.path([(x - 6, y - 7), (x + 6, y - 7), (x, y + 4), (x - 6, y - 7)], "fill-ink", hover=hover)
    drawing.path([(x, y - 2), (x, y + _ROW)], "solid line-ink", hover=hover)


def _cells(span: Span, axis: StepAxis) -> tuple[str, str, int, int, float, float]:
    times = axis.edges[span.first], axis.edges[span.last + 1]
    return (letter(span.request), _DOING[span.doing], span.first + 1, span.last + 1, *times)


def _legend(lanes: RequestLanes) -> tuple[Label, ...]:
    lost = Label("fill-ink", "an arrow: it loses its pages and starts again", f"{len(lanes.lost):,} ×")
    return (
        Label("fill-prefill", "high: reads its prompt (prefill)"),
        Label("fill-decode", "low: writes (decode)"),
        Label("clear thin line-muted", "hatched: waits"),
        *((lost,) if lanes.lost else ()),
    )


def _alt(lanes: RequestLanes, axis: StepAxis, title: str, source: str) -> str:
    waits = sum(s.last - s.first + 1 for s in lanes.spans if s.doing == "waits")
    took = "" if axis.unit == "steps" else f", {axis.edges[-1]:.3g} {axis.unit}"
    lost = f" {len(lanes.lost)} times a request loses its pages." if lanes.lost else ""
    return (
        f"{title}, {source}: {lanes.requests} requests take {lanes.steps:,} steps{took}. Together they wait "
        f"{waits:,} steps.{lost}"
    )
