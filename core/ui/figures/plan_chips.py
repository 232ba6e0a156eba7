"""The chips of a plan as tanks: what lies on each, how long it works, what it sends, and what it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.lesson.quantities.chip_plan import ChipsOfStage
from core.ui.palette import COLOURS
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing, Scale
from core.ui.table import Blank, Cell
from core.units import format_count, format_gib, format_seconds, significant

_WIDTH: Final = 560
_LEFT: Final = 6
_RIGHT: Final = 554
_TOP: Final = 28
#: Of a stage: its first line of words, its tanks, its second line, and the way to the next stage.
_HEAD, _TANK, _FOOT, _GAP = 22, 84, 26, 26
_STAGE: Final = _HEAD + _TANK + _FOOT + _GAP
_MOST_CHIPS: Final = 8
_MOST_STAGES: Final = 3
_WIDEST: Final = 150
_SPACE: Final = 10
_PARTS: Final = ("weights", "kv", "activations", "overhead")


@dataclass(frozen=True, slots=True)
class PlanShape:
    """How many chips share what (``ParallelPlan``), and what one of them holds; None where unknown."""

    tp: int
    pp: int
    ep: int
    dp: int
    capacity_bytes: float | None

    @property
    def name(self) -> str:
        """The degrees and the chips."""
        chips = self.tp * self.pp * self.dp
        counted = format_count(chips, "chip")
        return f"TP {self.tp} × PP {self.pp} × EP {self.ep} × DP {self.dp}: {counted}"


@redrawable
def plan_chips(stages: Sequence[ChipsOfStage], shape: PlanShape, chip: str) -> Picture:
    """Draw the chips of one replica, a row a stage.

    Args:
        stages: of the pipeline; empty where no share of a chip is defined.
        shape: the plan.
        chip: its name.
    """
    shown = _shown(stages)
    drawing = Drawing(_WIDTH, _TOP + max(len(shown) * _STAGE - _GAP, 60))
    drawing.text(_LEFT, 14, _header(shape, len(shown)), "fill-muted")
    if not stages:
        drawing.text(_LEFT, 46, "No chip's share is defined by this plan.", "fill-ink strong")
        drawing.text(_LEFT, 70, "What speaks against it stands below.", "fill-ink")
    for row, index in enumerate(shown):
        _stage(drawing, stages[index], index, _TOP + row * _STAGE, shape)
        if row:
            at = _TOP + row * _STAGE - _GAP + 2
            drawing.path([(_LEFT + 30, at), (_LEFT + 30, at + _GAP - 4)], "solid line-communication")
    return Picture(
        title=f"{shape.name} of {chip}",
        drawing=drawing,
        alt=_alt(stages, shape),
        columns=("stage", "what", "on each chip", "unit"),
        rows=[row for index, stage in enumerate(stages) for row in _rows(stage, index)]
        or [("none", "the plan does not divide", Blank.DOES_NOT_APPLY, "")],
        legend=_legend(stages, shape),
    )


def _shown(stages: Sequence[ChipsOfStage]) -> list[int]:
    """The first stages and the last."""
    if len(stages) <= _MOST_STAGES:
        return list(range(len(stages)))
    return [*range(_MOST_STAGES - 1), len(stages) - 1]


def _header(shape: PlanShape, stages: int) -> str:
    said = []
    if shape.tp > _MOST_CHIPS:
        said.append(f"{_MOST_CHIPS} of {shape.tp} chips a stage")
    if 0 < stages < shape.pp:
        said.append(f"{stages} of {shape.pp} stages")
    if shape.dp > 1:
        said.append(f"1 of {shape.dp} replicas")
    return ", ".join(said)


def _stage(drawing: Drawing, stage: ChipsOfStage, index: int, top: float, shape: PlanShape) -> None:
    first = "" if shape.pp == 1 else f"stage {index + 1}: "
    each = "" if shape.tp == 1 else " each"
    drawing.text(_LEFT, top + 14, f"{first}{_layers(stage)}", "fill-ink strong")
    drawing.text(_RIGHT, top + 14, f"{format_gib(stage.total_bytes)}{each}", "fill-ink", anchor="end")
    shown = min(shape.tp, _MOST_CHIPS)
    width = min((_RIGHT - _LEFT - _SPACE * (shown - 1)) / shown, _WIDEST)
    middle = top + _HEAD + _TANK / 2
    if shown > 1:
        end = _LEFT + shown * (width + _SPACE) - _SPACE
        drawing.path([(_LEFT, middle), (end, middle)], "solid line-communication")
    for place in range(shown):
        number = index * shape.tp + place + 1
        _tank(drawing, stage, (_LEFT + place * (width + _SPACE), top + _HEAD, width), shape, number)
    drawing.text(_LEFT, top + _HEAD + _TANK + 19, _works(stage), "fill-muted")


def _tank(
    drawing: Drawing, stage: ChipsOfStage, place: tuple[float, float, float], shape: PlanShape, number: int
) -> None:
    """One chip: its memory filled from below, the edge marked where it overflows."""
    x, top, width = place
    most = max(stage.total_bytes, shape.capacity_bytes or 0.0)
    height = Scale(0, most, 0, _TANK)
    drawing.rectangle(x, top, width, _TANK, "fill-page")
    below = top + _TANK
    for part in _PARTS:
        size = _part(stage, part)
        below -= height(size)
        hover = f"chip {number}: {COLOURS[part].meaning} {format_gib(size)}"
        drawing.rectangle(x, below, width, height(size), f"fill-{part}", hover=hover)
    frame = [(x, top), (x + width, top), (x + width, top + _TANK), (x, top + _TANK), (x, top)]
    drawing.path(frame, "thin line-ink", hover=f"chip {number}: {_holds(stage)}")
    if shape.capacity_bytes is not None and stage.total_bytes > shape.capacity_bytes:
        edge = top + _TANK - height(shape.capacity_bytes)
        drawing.path([(x - 3, edge), (x + width + 3, edge)], "solid line-ink", hover="all that a chip holds")


def _part(stage: ChipsOfStage, part: str) -> float:
    named = {
        "weights": stage.weights_bytes,
        "kv": stage.kv_bytes,
        "activations": stage.activation_bytes,
        "overhead": stage.overhead_bytes,
    }
    return named[part]


def _layers(stage: ChipsOfStage) -> str:
    if stage.first_layer == stage.last_layer:
        return f"layer {stage.first_layer}"
    return f"layers {stage.first_layer} to {stage.last_layer}"


def _holds(stage: ChipsOfStage) -> str:
    """What of the model lies on one chip."""
    heads = [] if stage.query_heads is None else [format_count(stage.query_heads, "query head")]
    experts = [] if stage.experts is None else [f"{format_count(stage.experts, 'expert')} a layer"]
    return ", ".join([_layers(stage), *heads, *experts])


def _works(stage: ChipsOfStage) -> str:
    if stage.decode_s is None or stage.idle_share is None:
        return "not timed"
    sent = f"sends {_size(stage.sent_bytes)}" if stage.sent_bytes else "sends nothing"
    return f"works {format_seconds(stage.decode_s)}, idle {_percent(stage.idle_share)}, {sent}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _size(num_bytes: float | None) -> str:
    value = num_bytes or 0.0
    return f"{significant(value / 1e6)} MB" if value >= 1e6 else f"{significant(value / 1e3)} kB"


def _legend(stages: Sequence[ChipsOfStage], shape: PlanShape) -> tuple[Label, ...]:
    if not stages:
        return ()
    full = max(stages, key=lambda stage: stage.total_bytes)
    links = (Label("fill-communication", "links"),) if shape.tp * shape.pp > 1 else ()
    capacity = "unknown" if shape.capacity_bytes is None else format_gib(shape.capacity_bytes)
    return (
        *(Label(f"fill-{part}", COLOURS[part].meaning, format_gib(_part(full, part))) for part in _PARTS),
        Label("thin line-ink", "a chip holds", capacity),
        *links,
    )


def _alt(stages: Sequence[ChipsOfStage], shape: PlanShape) -> str:
    if not stages:
        return f"{shape.name}. The model cannot be divided so."
    full = max(stages, key=lambda stage: stage.total_bytes)
    fits = ""
    if shape.capacity_bytes is not None:
        word = "of the" if full.total_bytes <= shape.capacity_bytes else "which is more than the"
        fits = f" {word} {format_gib(shape.capacity_bytes)} that it has"
    works = "It is not timed." if full.decode_s is None else f"In a decode step it {_works(full)}."
    return (
        f"{shape.name}. The fullest chip holds {format_gib(full.total_bytes)}{fits}: {_holds(full)}. {works}"
    )


def _rows(stage: ChipsOfStage, index: int) -> list[tuple[Cell, ...]]:
    """The numbers of a stage, one a line: a pipeline may have more stages than a table has room for."""
    timed: list[tuple[str, float | None, str]] = [
        ("works in a decode step", stage.decode_s, "s"),
        ("idle in a decode step", stage.idle_share, "share"),
        ("sends in a decode step", stage.sent_bytes, "B"),
        ("works in a prefill", stage.prefill_s, "s"),
        ("idle in a prefill", stage.prefill_idle_share, "share"),
    ]
    named: list[tuple[str, Cell, str]] = [
        ("holds", _holds(stage), ""),
        *((COLOURS[part].meaning, _part(stage, part), "B") for part in _PARTS),
        ("all memory", stage.total_bytes, "B"),
        *((name, Blank.DOES_NOT_APPLY if value is None else value, unit) for name, value, unit in timed),
    ]
    return [(f"stage {index + 1}", *row) for row in named]
