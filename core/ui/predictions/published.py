"""The published measurements: where we are weak, every row as a mark, errors by class, one row open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import streamlit as st

from core.analytic.validation.error_table import (
    FACETS,
    UNITS,
    Errors,
    classes,
    error_table,
    errors,
    longest_tails,
    metric_words,
    never_published,
    weakest,
)
from core.analytic.validation.judged import JudgedRun, judged_on, judged_runs, published
from core.ui import choice_list, export, picture, print_view, prose
from core.ui.choice_list import Offer
from core.ui.figures.measured_and_predicted import ScatterPoint, measured_and_predicted
from core.ui.picture import Picture
from core.ui.plain import plain
from core.ui.predictions import link, row, words

COLUMNS: Final = (
    "rows that are",
    "median, %",
    "90th percentile, %",
    "mean, %",
    "rows",
    "sources",
    "in range, %",
)
#: What each facet is called, where its rows are split by it and where they are filtered.
_FACET_NAMES: Final = {
    "group": "group",
    "metric": "metric",
    "family": "model family",
    "batch": "batch",
    "format": "format",
    "chip": "chip",
    "engine": "software",
    "source": "source",
}
_WEAK: Final = 4
_TAILS: Final = 2
_FURTHEST: Final = 5
_ROW: Final = "predictions_row_choice"
_NOTES: Final = (
    "Errors are |predicted / measured - 1| in percent, of the number as it was published. A rate can be "
    "predicted too low by 100 % at most, and too high without end.",
    "Every row is predicted by a fit of all rows but those of its own source, with the same code that the "
    "planner uses. python -m core validate judges them anew and prints the same table.",
    "The range should hold four measurements in five. Its width was found from other sources alone.",
    "Some rows state only part of their conditions. What was inferred, the row says in its own words.",
)


def show() -> None:
    """Draw the section; it is its own fragment."""
    st.header("Published measurements of others", anchor=False)
    st.fragment(_published, key="predictions_published")()


@cache
def weak_words() -> tuple[str, ...]:
    """The weak regimes as sentences, the weakest first; of all rows, whatever is shown."""
    worst = weakest(judged_runs(), _WEAK)
    named = {found.name for found in worst}
    tails = [found for found in longest_tails(judged_runs(), _WEAK + _TAILS) if found.name not in named]
    return tuple(words.errors_sentence(found) for found in (*worst, *tails[:_TAILS]))


def summary() -> str:
    """All rows in two sentences."""
    found = errors("all", judged_runs())
    return (
        f"{found.rows:,} published measurements of {found.sources} sources are predicted, each by a fit that "
        f"has not seen its source. Half of the predictions are off by less than {found.median:.0f} %, nine "
        f"in ten by less than {found.p90:.0f} %, and {100 * found.in_range:.0f} % of the measurements lie in "
        "the predicted range, which should hold 80 %."
    )


def _published() -> None:
    """Everything that follows from the filters."""
    shown = link.now()
    rows = _filtered(shown)
    chosen = next((judged for judged in judged_runs() if judged.run.id == shown.row), None)
    drawn = _picture(rows, shown) if rows else None
    prose.paragraph(summary())
    st.subheader("Where they are weak", anchor=False)
    prose.bullets(weak_words())
    _gaps()
    for note in link.notes():
        st.warning(plain(note), icon=":material/link:")
    _filters(shown)
    if drawn is None:
        st.warning("No published row is all of this. Take one of the choices back.")
        st.button("Show all rows", on_click=link.show_all, key="predictions_all")
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        picture.show(drawn, key="predictions_scatter", on_pick=_open)
    with right:
        _furthest(rows)
        _row_choice(rows, chosen)
    if chosen is not None:
        with st.container(border=True):
            row.draw(chosen)
    _table(rows, shown.by)
    _notes()


def _filtered(shown: link.Shown) -> list[JudgedRun]:
    """The rows that every filter lets through, the furthest off first."""
    asked = [(FACETS[name], getattr(shown, name)) for name in link.FILTERS if getattr(shown, name)]
    kept = [judged for judged in judged_runs() if all(value in names(judged) for names, value in asked)]
    return sorted(kept, key=lambda judged: -judged.factor)


def _filters(shown: link.Shown) -> None:
    """One box a facet; the link owns their values."""
    for name, column in zip(link.FILTERS, st.columns(len(link.FILTERS)), strict=True):
        with column:
            found = classes(judged_runs(), name)
            counts = {"": f"all ({len(judged_runs()):,})"}
            counts |= {each: f"{each} ({len(rows):,})" for each, rows in found.items()}
            key = f"predictions_{name}"
            st.session_state[key] = getattr(shown, name)
            st.selectbox(
                _FACET_NAMES[name].capitalize(),
                list(counts),
                format_func=counts.__getitem__,
                key=key,
                on_change=_filter_changed,
                args=(name,),
            )


def _filter_changed(name: str) -> None:
    link.show(**{name: st.session_state.get(f"predictions_{name}")})


def _picture(rows: Sequence[JudgedRun], shown: link.Shown) -> Picture:
    metrics = {judged.run.metric for judged in rows}
    unit = UNITS[next(iter(metrics))] if len(metrics) == 1 else "in the row's own unit"
    what = metric_words(next(iter(metrics))) if len(metrics) == 1 else "every metric"
    points = [
        ScatterPoint(
            id=judged.run.id,
            name=words.row_name(judged),
            kind=words.kind_of(judged),
            measured=judged.run.value,
            predicted=judged.predicted,
            low=judged.low,
            high=judged.high,
        )
        for judged in rows
    ]
    return measured_and_predicted(
        points, tuple(words.KINDS.values()), f"Predicted and published: {what}", unit, shown.row
    )


def _open(name: str) -> None:
    """A row was chosen, by a click or in the list."""
    link.show(row=name)


def _furthest(rows: Sequence[JudgedRun]) -> None:
    st.subheader("Furthest off", anchor=False)
    choice_list.show(
        [
            Offer(judged.run.id, judged.run.id, words.off_by(judged), words.row_words(judged))
            for judged in rows[:_FURTHEST]
        ],
        "Arithmetic",
        key="predictions_furthest",
        on_choose=_open,
    )


def _row_choice(rows: Sequence[JudgedRun], chosen: JudgedRun | None) -> None:
    """Any of the rows that are shown; the way of the keyboard to what a click on a mark does."""
    names = {"": "none; or click a mark"}
    if chosen is not None:
        names[chosen.run.id] = words.row_name(chosen)
    names |= {judged.run.id: words.row_name(judged) for judged in rows}
    st.session_state[_ROW] = "" if chosen is None else chosen.run.id
    st.selectbox(
        "Row to work out",
        list(names),
        format_func=names.__getitem__,
        key=_ROW,
        on_change=_row_changed,
    )


def _row_changed() -> None:
    link.show(row=st.session_state.get(_ROW))


def _table(rows: Sequence[JudgedRun], by: str) -> None:
    st.subheader("Errors by class", anchor=False)
    st.session_state["predictions_by"] = by
    st.segmented_control(
        "Split by",
        list(FACETS),
        required=True,
        format_func=lambda name: _FACET_NAMES[name],
        key="predictions_by",
        on_change=_split_changed,
    )
    for facet in FACETS if print_view.is_on() else (by,):
        export.show_table(
            COLUMNS,
            [_cells(found) for found in (*error_table(rows, facet), errors("all that are shown", rows))],
            key=f"predictions_errors_{facet}",
            file_name=f"errors-by-{facet}",
            label=f"Errors by {_FACET_NAMES[facet]}",
        )


def _split_changed() -> None:
    link.show(by=st.session_state.get("predictions_by"))


def _cells(found: Errors) -> tuple[str | float | int, ...]:
    return (
        found.name,
        found.median,
        found.p90,
        found.mean,
        found.rows,
        found.sources,
        round(100 * found.in_range, 1),
    )


def _gaps() -> None:
    """What no row can tell, and the rows that are kept out."""
    skipped = published().skipped
    part = print_view.fold(
        f"What nobody published, and {len(skipped)} rows that are kept out", key="predictions_gaps"
    )
    if not part.open:
        return
    with part.place:
        prose.small("Ranges are wider for these, because hardly any published row is of them:")
        prose.bullets([f"{said[0].upper()}{said[1:]}." for said in never_published()])
        reasons: dict[str, list[str]] = {}
        for left in skipped:
            reasons.setdefault(left.why, []).append(left.id)
        export.show_table(
            ("why rows are kept out", "rows", "which"),
            [(why, len(ids), ", ".join(ids)) for why, ids in reasons.items()],
            key="predictions_kept_out",
            file_name="kept-out",
            label="Rows that are kept out",
        )


def _notes() -> None:
    part = print_view.fold("How they are judged", key="predictions_notes", icon=":material/info:")
    if part.open:
        with part.place:
            prose.bullets([*_NOTES, f"These rows were judged on {judged_on()}."])
