"""Which tokens go through the model in each step: rows are steps, cells are tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing

_WIDTH: Final = 560
_NAMES: Final = 96  # width of the rows' names
_PROMPT: Final = 120  # width of the prompt's block, which stands for all its tokens
_CELL: Final = 26
_ROW: Final = 20
_TOP: Final = 26
_MOST_ROWS: Final = 9  # of steps from the first on; the last step follows after a gap
_GAP: Final = 22

Look = Literal["pass", "new", "kept", "again"]
_STYLES: Final[dict[Look, str]] = {
    "pass": "fill-activations",
    "new": "fill-activations",
    "kept": "band fill-kv",
    "again": "faint fill-activations",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One step: its number, the prompt's tokens, and how its old cells and its newest look."""

    step: int
    prompt_tokens: int
    old: Look
    new: Look


@redrawable
def token_triangle(prompt_tokens: int, steps: int) -> Picture:
    """Draw every token that goes through the model without a cache, all alike.

    Args:
        prompt_tokens: that are there at first.
        steps: that follow.
    """
    drawing = _rows(prompt_tokens, steps, "pass", "pass")
    return _picture(prompt_tokens, steps, drawing, "each step sends every token so far through the model")


@redrawable
def cached_triangle(prompt_tokens: int, steps: int) -> Picture:
    """Draw the same with a cache: one new token a step, the others are kept."""
    drawing = _rows(prompt_tokens, steps, "kept", "new")
    says = "each step sends one token through; the keys and values of all others are kept"
    return replace(
        _picture(prompt_tokens, steps, drawing, says),
        title="Tokens that go through the model, with a cache",
        look_at="Only the last cell of a row goes through the model. The pale ones went before; their keys "
        "and values are kept.",
        legend=(
            Label("fill-activations", "goes through the model"),
            Label("band fill-kv", "kept, only looked at"),
        ),
    )


@redrawable
def recomputed_triangle(prompt_tokens: int, steps: int) -> Picture:
    """Draw the same without one: what was done before is crossed."""
    drawing = _rows(prompt_tokens, steps, "again", "new")
    says = "each step sends every token through again; only the last of a row is new"
    return replace(
        _picture(prompt_tokens, steps, drawing, says),
        look_at="The crossed triangle is work that was done before. In the last row all cells but one are "
        "computed again.",
        legend=(
            Label("fill-activations", "goes through the model, new"),
            Label("faint fill-activations", "crossed: computed again, as before"),
        ),
    )


def _rows(prompt_tokens: int, steps: int, old: Look, new: Look) -> Drawing:
    shown = min(steps, _MOST_ROWS)
    last = steps > shown
    drawing = Drawing(_WIDTH, _TOP + _ROW * (shown + 1) + (_GAP + _ROW if last else 0) + 4)
    x = _NAMES
    drawing.text(x + _PROMPT / 2, 15, f"prompt: {prompt_tokens:,}", "fill-muted", anchor="middle")
    drawing.text(x + _PROMPT + 10, 15, "answer", "fill-muted")
    drawing.text(_NAMES - 10, _TOP + 14, "prefill", "fill-ink", anchor="end")
    _block(drawing, _TOP, "new" if new == "new" else "pass", prompt_tokens)
    for step in range(1, shown + 1):
        _step(drawing, _TOP + _ROW * step, Row(step, prompt_tokens, old, new), step)
    if last:
        y = _TOP + _ROW * (shown + 1)
        drawing.text(_NAMES - 10, y + 15, "…", "fill-muted", anchor="end")
        _step(drawing, y + _GAP, Row(steps, prompt_tokens, old, new), shown + 4)
    return drawing


def _step(drawing: Drawing, y: float, row: Row, cells: int) -> None:
    """One row; where it has more cells than fit, a gap stands for those left out."""
    drawing.text(_NAMES - 10, y + 14, f"step {row.step:,}", "fill-ink", anchor="end")
    _block(drawing, y, row.old, row.prompt_tokens)
    left_out = row.step > cells
    for cell in range(1, cells + 1):
        x = _NAMES + _PROMPT + 8 + (cell - 1) * _CELL
        if left_out and cell == cells - 1:
            drawing.text(x + _CELL / 2, y + 13, "…", "fill-ink", anchor="middle")
            continue
        newest = cell == cells
        hover = f"answer token {row.step if newest else cell:,}"
        _cell(drawing, x, y, row.new if newest else row.old, hover)


def _cell(drawing: Drawing, x: float, y: float, look: Look, hover: str) -> None:
    drawing.rectangle(x, y, _CELL - 3, _ROW - 4, _STYLES[look], hover=f"{hover}: {_WORDS[look]}", round=2)
    _outline(drawing, x, y, _CELL - 3, look)


def _block(drawing: Drawing, y: float, look: Look, prompt_tokens: int) -> None:
    hover = f"{prompt_tokens:,} prompt tokens: {_WORDS[look]}"
    drawing.rectangle(_NAMES, y, _PROMPT, _ROW - 4, _STYLES[look], hover=hover, round=2)
    _outline(drawing, _NAMES, y, _PROMPT, look)


def _outline(drawing: Drawing, x: float, y: float, width: float, look: Look) -> None:
    """Kept cells have a frame and repeated ones a stroke, so that colour is not alone."""
    bottom = y + _ROW - 4
    if look == "kept":
        frame = [(x, y), (x + width, y), (x + width, bottom), (x, bottom), (x, y)]
        drawing.path(frame, "thin line-kv")
    if look == "again":
        drawing.path([(x + 2, bottom - 1), (x + width - 2, y + 1)], "thin line-ink")


_WORDS: Final[dict[Look, str]] = {
    "pass": "goes through the model",
    "new": "goes through the model",
    "kept": "kept, only looked at",
    "again": "goes through the model again",
}


def _picture(prompt_tokens: int, steps: int, drawing: Drawing, says: str) -> Picture:
    chosen = sorted({1, 2, 3, steps // 2, steps} & set(range(1, steps + 1)))
    return Picture(
        title="Tokens that go through the model, without a cache",
        drawing=drawing,
        alt=f"After a prefill of {prompt_tokens:,} tokens, {says}; the last step is step {steps:,}.",
        columns=("step", "tokens through the model without a cache", "with a cache", "kept before it"),
        rows=[(step, prompt_tokens + step, 1, prompt_tokens + step - 1) for step in chosen],
        legend=(Label("fill-activations", "goes through the model"),),
    )
