"""Block tables and the memory they speak of: which request's tokens lie in which block, and what is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.simulate.waste import PageUse, Slots
from core.ui.figures.requests import hatch, letter, style
from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing

_WIDTH: Final = 560
_LEFT, _RIGHT = 6, 554
_TABLE: Final = 26  # height of a row of the tables
_MOST_TABLES: Final = 6
_BOXES_AT: Final = 150
_BOX, _MOST_BOXES = 40, 9
_ROW, _GAP = 30, 5  # of the memory
_SLOTS_IN_ROW: Final = 64
#: Below these widths a block has no number, and a run of blocks no letter.
_NUMBERED: Final = 60.0
_LETTERED: Final = 20.0


@dataclass(frozen=True, slots=True)
class CacheMoment:
    """The cache in one step.

    Attributes:
        step: its number, from 1 on. page_tokens, num_pages: the cache's layout.
        uses: the held pages, each once. tables: the pages of each request that holds some.
        tokens: in these pages, by request.
    """

    step: int
    page_tokens: int
    num_pages: int
    uses: Sequence[PageUse]
    tables: Sequence[tuple[int, Sequence[int]]]
    tokens: dict[int, int]

    @property
    def slots(self) -> Slots:
        """All slots of the held pages."""
        return sum((use.slots for use in self.uses), Slots(0, 0, 0))


@redrawable
def page_tables(moment: CacheMoment, source: str) -> Picture:
    """Draw the tables above and the memory below, in the step in which it is fullest.

    Args:
        moment: the cache in that step.
        source: what it is drawn from: "simulated", or where it was served.
    """
    shown = list(moment.tables)[:_MOST_TABLES]
    memory_at = 24 + _TABLE * len(shown) + (18 if len(moment.tables) > len(shown) else 0) + 40
    rows = -(-moment.num_pages * moment.page_tokens // _SLOTS_IN_ROW)
    drawing = Drawing(_WIDTH, memory_at + rows * (_ROW + _GAP) + 4)
    drawing.text(_LEFT, 14, "block tables", "fill-ink strong")
    for row, (request, pages) in enumerate(shown):
        _table(drawing, 24 + _TABLE * row, moment, request, pages)
    if hidden := len(moment.tables) - len(shown):
        drawing.text(_BOXES_AT, memory_at - 34, f"and {hidden} more, see the numbers below", "fill-muted")
    drawing.text(
        _LEFT,
        memory_at - 8,
        f"memory: {moment.num_pages:,} blocks of {moment.page_tokens:,}",
        "fill-ink strong",
    )
    _memory(drawing, memory_at, moment)
    return Picture(
        title=f"The cache at its fullest: {len(moment.uses):,} of {moment.num_pages:,} blocks held",
        drawing=drawing,
        alt=_alt(moment, source),
        columns=(
            "request",
            "its block",
            "physical block",
            "filled",
            "filled later",
            "stays empty",
            "held by",
        ),
        rows=[
            (letter(u.request), u.place, u.page, u.slots.filled, u.slots.later, u.slots.never, u.holders)
            for u in moment.uses
        ],
        legend=_legend(moment),
    )


def _table(drawing: Drawing, y: float, moment: CacheMoment, request: int, pages: Sequence[int]) -> None:
    drawing.rectangle(_LEFT, y, 20, 20, style(request), round=2)
    drawing.text(_LEFT + 10, y + 15, letter(request), "fill-page strong", anchor="middle")
    drawing.text(_LEFT + 28, y + 15, f"{moment.tokens[request]} tokens", "fill-ink")
    for place, page in enumerate(pages[:_MOST_BOXES]):
        x = _BOXES_AT + place * (_BOX + 4)
        if place == _MOST_BOXES - 1 and len(pages) > _MOST_BOXES:
            drawing.text(x + 2, y + 15, "…", "fill-ink")
            break
        hover = f"{letter(request)}: its block {place} is physical block {page}"
        drawing.rectangle(x, y, _BOX, 20, f"band {style(request)}", hover=hover, round=2)
        drawing.text(x + _BOX / 2, y + 15, f"{page}", "fill-ink", anchor="middle")


def _memory(drawing: Drawing, top: float, moment: CacheMoment) -> None:
    """Rows of slots; a block that does not fit into the rest of a row goes on in the next."""
    by_page = {use.page: use for use in moment.uses}
    for page in range(moment.num_pages):
        use = by_page.get(page)
        for x, y, width, first, count in _pieces(page * moment.page_tokens, moment.page_tokens, top):
            _piece(drawing, (x, y, width), use, first, count)
            if width >= _NUMBERED:
                name = f"{page}" if use is None else f"{letter(use.request)} · {page}"
                _name(drawing, x, y, name, held=use is not None)
    if moment.page_tokens * (_RIGHT - _LEFT) / _SLOTS_IN_ROW < _NUMBERED:
        _letters(drawing, top, moment)


def _pieces(start: int, count: int, top: float) -> list[tuple[float, float, float, int, int]]:
    """Where some slots lie: x, y, width, and which of the block's slots they are (first, count)."""
    slot = (_RIGHT - _LEFT) / _SLOTS_IN_ROW
    pieces, done = [], 0
    while done < count:
        row, column = divmod(start + done, _SLOTS_IN_ROW)
        some = min(count - done, _SLOTS_IN_ROW - column)
        pieces.append((_LEFT + column * slot, top + row * (_ROW + _GAP), some * slot, done, some))
        done += some
    return pieces


def _piece(
    drawing: Drawing, box: tuple[float, float, float], use: PageUse | None, first: int, count: int
) -> None:
    x, y, width = box
    inner = max(width - 1.0, 0.6)
    frame = [(x, y), (x + inner, y), (x + inner, y + _ROW), (x, y + _ROW), (x, y)]
    if use is None:
        drawing.path(frame, "thin line-grid")
        return
    filled = min(max(use.slots.filled - first, 0), count)
    part = inner * filled / count
    holders = f", held by {use.holders}" if use.holders > 1 else ""
    empty = use.slots.later + use.slots.never
    hover = f"block {use.page}: {letter(use.request)}'s block {use.place}, {empty} slots empty{holders}"
    drawing.rectangle(x, y, inner, _ROW, "clear", hover=hover)
    drawing.rectangle(x, y, part, _ROW, style(use.request), hover=hover)
    if filled < count:
        hatch(drawing, x + part, y, inner - part, _ROW)
    drawing.path(frame, f"thin {style(use.request).replace('fill', 'line')}")
    if use.holders > 1:
        drawing.path([(x + 3, y + _ROW - 5), (x + inner - 3, y + _ROW - 5)], "solid line-page")


def _name(drawing: Drawing, x: float, y: float, name: str, *, held: bool) -> None:
    if held:
        drawing.rectangle(x + 3, y + 5, 9.0 * len(name) + 4, 19, "fill-page", round=2)
        drawing.text(x + 5, y + 20, name, "fill-ink strong")
    else:
        drawing.text(x + 5, y + 20, name, "fill-muted")


def _letters(drawing: Drawing, top: float, moment: CacheMoment) -> None:
    """One letter for each run of neighbouring small blocks of one request, where there is room for it."""
    runs: list[list[PageUse]] = []
    for use in moment.uses:
        last = runs[-1][-1] if runs else None
        if last and last.request == use.request and last.page + 1 == use.page:
            runs[-1].append(use)
        else:
            runs.append([use])
    for run in runs:
        start, count = run[0].page * moment.page_tokens, len(run) * moment.page_tokens
        for x, y, width, *_ in _pieces(start, count, top):
            if width >= _LETTERED:
                _name(drawing, x, y, letter(run[0].request), held=True)


def _legend(moment: CacheMoment) -> tuple[Label, ...]:
    slots = moment.slots
    shared = any(use.holders > 1 for use in moment.uses)
    return (
        Label("fill-request-0", "filled, by its request's letter", f"{slots.filled:,} slots"),
        Label("clear thin line-muted", "hatched: held and empty", f"{slots.later + slots.never:,} slots"),
        Label(
            "clear thin line-grid",
            "nobody's",
            f"{moment.num_pages * moment.page_tokens - slots.held:,} slots",
        ),
        *((Label("fill-ink", "a line below: held by several requests"),) if shared else ()),
    )


def _alt(moment: CacheMoment, source: str) -> str:
    slots = moment.slots
    return (
        f"Step {moment.step}, {source}: {len(moment.tables)} requests hold {len(moment.uses):,} of "
        f"{moment.num_pages:,} blocks of {moment.page_tokens:,} tokens. Of their {slots.held:,} slots "
        f"{slots.filled:,} are filled and {slots.later + slots.never:,} are empty."
    )
