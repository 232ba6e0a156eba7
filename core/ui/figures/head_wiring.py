"""Which query head reads which key and value, and which chip holds what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.ui.picture import Label, Picture, redrawable
from core.ui.svg import Drawing

_WIDTH: Final = 560
_HEIGHT: Final = 178
_LEFT: Final = 6
_RIGHT: Final = 554
_TOP: Final = 26
_QUERY: Final = 46
_KEPT: Final = 116
_BOX: Final = 18
#: More chips than this are not drawn one by one.
_MOST_CHIPS: Final = 8
#: Width of a letter on a phone, where letters are largest.
_LETTER: Final = 10.5


@dataclass(frozen=True, slots=True)
class Wiring:
    """What is wired to what.

    Attributes:
        query_heads: of a layer. kv_heads: that are kept; None where all read one latent.
        latent, rotary_key: numbers of the latent and of the key beside it. chips: that share the heads.
    """

    query_heads: int
    kv_heads: int | None
    latent: int
    rotary_key: int
    chips: int

    @property
    def queries_on_a_chip(self) -> int:
        """Query heads of one chip, the fullest."""
        return -(-self.query_heads // self.chips)

    @property
    def kept_on_a_chip(self) -> int:
        """KV heads that one chip keeps; 1 where it is a latent."""
        return 1 if self.kv_heads is None else -(-self.kv_heads // self.chips)

    @property
    def copies(self) -> float:
        """How often each kept head, or the latent, is there."""
        return self.kept_on_a_chip * self.chips / (self.kv_heads or 1)

    def read_by(self, query: int) -> int:
        """The kept head that a query head reads."""
        return 0 if self.kv_heads is None else query * self.kv_heads // self.query_heads


@redrawable
def head_wiring(wiring: Wiring, title: str) -> Picture:
    """Draw query heads above, what they read below, a frame around each chip.

    Args:
        wiring: of one layer.
        title: what way to share it is.
    """
    drawing = Drawing(_WIDTH, _HEIGHT)
    shown = min(wiring.chips, _MOST_CHIPS)
    width = (_RIGHT - _LEFT) / shown
    for chip in range(shown):
        _chip(drawing, wiring, chip, _LEFT + chip * width, width)
    note = f"{shown} of {wiring.chips} chips" if wiring.chips > shown else ""
    drawing.text(_LEFT, 14, f"{wiring.query_heads} query heads", "fill-ink strong")
    drawing.text(_RIGHT, 14, note, "fill-muted", anchor="end")
    return Picture(
        title=title,
        drawing=drawing,
        alt=_alt(wiring),
        columns=("chip", "query heads", "kept", "of them copies"),
        rows=[_row(wiring, chip) for chip in range(shown)],
        legend=(
            Label("fill-ink", "query head"),
            Label("fill-kv", "key and value that are kept" if wiring.kv_heads else "latent that is kept"),
            *((Label("band fill-kv", "a copy of one on another chip"),) if wiring.copies > 1 else ()),
        ),
    )


def _chip(drawing: Drawing, wiring: Wiring, chip: int, left: float, width: float) -> None:
    if wiring.chips > 1:
        right, bottom = left + width - 2, _HEIGHT - 22
        frame = [(left + 2, _TOP), (right, _TOP), (right, bottom), (left + 2, bottom), (left + 2, _TOP)]
        drawing.path(frame, "thin line-muted")
        drawing.text(left + width / 2, _HEIGHT - 6, f"chip {chip + 1}", "fill-muted", anchor="middle")
    queries = _queries(wiring, chip)
    if not queries:
        return
    kept = sorted({wiring.read_by(query) for query in queries})
    places = {head: _middle(index, len(kept), left, width) for index, head in enumerate(kept)}
    for index, query in enumerate(queries):
        x = _middle(index, len(queries), left, width)
        read = places[wiring.read_by(query)]
        drawing.path([(x, _QUERY + 6), (read, _KEPT)], "thin line-muted")
        radius = min(6.0, 0.38 * (width - 12) / len(queries))
        drawing.circle(x, _QUERY, round(radius, 1), "fill-ink", hover=f"query head {query + 1}")
    for head, x in places.items():
        is_copy = any(head in map(wiring.read_by, _queries(wiring, earlier)) for earlier in range(chip))
        _keep(drawing, wiring, head, (x, width / len(kept)), "band fill-kv" if is_copy else "fill-kv")


def _keep(drawing: Drawing, wiring: Wiring, head: int, place: tuple[float, float], style: str) -> None:
    """One kept head or the latent, at the middle of its room; a copy is pale and framed."""
    (x, room), is_copy = place, style != "fill-kv"
    half = min(room - 10, 150.0) / 2 if wiring.kv_heads is None else min(_BOX, 0.7 * room) / 2
    what = "the latent" if wiring.kv_heads is None else f"KV head {head + 1}"
    hover = f"{what}, {'a copy' if is_copy else 'kept here'}"
    drawing.rectangle(x - half, _KEPT, 2 * half, _BOX, style, hover=hover, round=2)
    if is_copy:
        frame = [(x - half, _KEPT), (x + half, _KEPT), (x + half, _KEPT + _BOX), (x - half, _KEPT + _BOX)]
        drawing.path([*frame, frame[0]], "thin line-kv")
    number = f"{wiring.latent} + {wiring.rotary_key}" if wiring.kv_heads is None else str(head + 1)
    if room > _LETTER * len(number):  # so that neighbours' words keep apart
        drawing.text(x, _KEPT + _BOX + 14, number, "fill-ink", anchor="middle")


def _queries(wiring: Wiring, chip: int) -> list[int]:
    each = wiring.queries_on_a_chip
    return list(range(chip * each, min((chip + 1) * each, wiring.query_heads)))


def _middle(index: int, count: int, left: float, width: float) -> float:
    return left + 6 + (width - 12) * (index + 0.5) / count


def _row(wiring: Wiring, chip: int) -> tuple[str, int, str, int]:
    queries = _queries(wiring, chip)
    kept = sorted({wiring.read_by(query) for query in queries})
    before = {wiring.read_by(query) for earlier in range(chip) for query in _queries(wiring, earlier)}
    named = "the latent" if wiring.kv_heads is None else ", ".join(f"KV head {head + 1}" for head in kept)
    return f"chip {chip + 1}", len(queries), named or "nothing", len(before & set(kept))


def _alt(wiring: Wiring) -> str:
    if wiring.kv_heads is None:
        kept = f"one latent of {wiring.latent} numbers and a rotary key of {wiring.rotary_key}"
    else:
        kept = f"{wiring.kv_heads} KV heads" if wiring.kv_heads > 1 else "one KV head"
    said = f"{wiring.query_heads} query heads of a layer read {kept}."
    if wiring.chips == 1:
        return said
    copies = "nothing twice" if wiring.copies <= 1 else f"each of them {wiring.copies:g} times"
    return f"{said} Over {wiring.chips} chips the heads are divided; together the chips keep {copies}."
