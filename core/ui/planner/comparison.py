"""Two scenarios side by side: one that is held, and the one in the bar."""

from __future__ import annotations

from html import escape
from typing import Final

import streamlit as st

from core.analytic.planner_comparison import Better, Difference, PlanComparison, compare_plans
from core.analytic.planner_room import Case
from core.catalog.scenario import Scenario
from core.errors import UserError
from core.ui import export, print_view, prose
from core.ui.plain import plain
from core.ui.planner import link
from core.ui.scenario import record, words
from core.units import significant

_TABLE: Final = "width:100%;border-collapse:collapse;margin:0"
_CELL: Final = "padding:.28rem .4rem;text-align:left;border:0"
_ROW: Final = "border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)"
_WORDS: Final[dict[Better, str]] = {
    "first": "◀ held is better",
    "second": "▶ now is better",
    "same": "the same",
    "unknown": "unknown",
}


def draw(now: Case) -> None:
    """Hold a scenario, or compare with the one that is held."""
    st.header("Compare two scenarios", anchor=False)
    scenario = link.held()
    if scenario is None:
        if not print_view.is_on():
            st.button(
                "Hold this scenario",
                key="planner_hold",
                icon=":material/push_pin:",
                on_click=link.hold,
                args=(now.scenario,),
                help="Then change the scenario above: both stand side by side here.",
            )
        else:
            prose.small("No scenario is held.")
        return
    with st.container(horizontal=True):
        st.button("Hold this one instead", key="planner_hold", on_click=link.hold, args=(now.scenario,))
        st.button("Swap the two", key="planner_swap", on_click=_swap, args=(now.scenario,))
        st.button("End", key="planner_release", on_click=link.hold, args=(None,))
    held = record.case_of(scenario)
    try:
        compared = compare_plans(held, now)
    except UserError as mistake:
        st.error(plain(str(mistake)))
        return
    st.html(_table(compared, held, now))
    prose.paragraph(_sentence(compared.sentence))
    _numbers(compared)


def _sentence(words: str) -> str:
    """The comparison's first is what is held, its second what is in the bar."""
    for old, new in (
        ("Only the first fits", "Only the held one fits"),
        ("Only the second fits", "Only the one of now fits"),
        ("he first ", "he held one "),
        ("he second ", "he one of now "),
    ):
        words = words.replace(old, new)
    return words


def _table(compared: PlanComparison, held: Case, now: Case) -> str:
    head = "".join(
        f'<th scope="col" style="{_CELL};width:{width};font-size:.82rem">{escape(text)}</th>'
        for text, width in (
            ("quantity", "16%"),
            (f"held: {words.line(held)}", "29%"),
            (f"now: {words.line(now)}", "29%"),
            ("now / held", "26%"),
        )
    )
    rows = "".join(map(_row, compared.rows))
    return (
        f'<table style="{_TABLE}" aria-label="Two scenarios"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(row: Difference) -> str:
    factor = "" if row.factor is None else f"× {significant(row.factor)} "
    return (
        f'<tr style="{_ROW}"><th scope="row" style="{_CELL}">{escape(row.name)}</th>'
        f'<td style="{_CELL}">{escape(row.text(row.first))}</td>'
        f'<td style="{_CELL}">{escape(row.text(row.second))}</td>'
        f'<td style="{_CELL}">{factor}<small>{_WORDS[row.better]}</small></td></tr>'
    )


def _numbers(compared: PlanComparison) -> None:
    part = print_view.fold("Numbers of this comparison", key="planner_comparison_table")
    if part.open:
        with part.place:
            export.show_table(
                ("quantity", "unit", "held", "now", "now / held"),
                [(row.name, row.unit, row.first, row.second, row.factor) for row in compared.rows],
                key="planner_comparison",
                file_name="comparison",
                label="Numbers of this comparison",
            )


def _swap(now: Scenario) -> None:
    held = link.held()
    if held is not None:
        link.hold(now)
        record.use(held)
