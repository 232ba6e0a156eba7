"""The scenario bar: one line on every page that uses the scenario; it opens to edit.

A page draws it inside the fragment of its main picture, so that a change redraws that fragment
alone.
"""

from __future__ import annotations

import streamlit as st

from core.ui import print_view, prose
from core.ui.plain import plain
from core.ui.scenario import editor, record, words


def draw() -> None:
    """The line with its editor, the link to copy, and what had to be repaired in the address."""
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        prose.paragraph(words.line(record.case_of(record.current())))
        if not print_view.is_on():
            is_open = bool(st.session_state.get(record.BAR_OPEN, False))
            st.button(
                "Done" if is_open else "Change",
                key="scenario_change",
                icon=":material/tune:",
                on_click=_toggle,
            )
        _copy_link()
    if st.session_state.get(record.BAR_OPEN, False) and not print_view.is_on():
        with st.container(border=True):
            editor.draw()
    for note in record.notes():
        st.warning(plain(note), icon=":material/link:")
    if said := record.said():
        st.info(plain(said), icon=":material/hub:")
    _split()


def slide(name: str) -> None:
    """A slider for one of the counts: its steps are the powers of two, and today's value."""
    now = getattr(record.current(), name)
    key = f"scenario_slide_{name}"
    st.session_state[key] = now
    st.select_slider(
        words.LABELS[name],
        editor.steps(name, now),
        key=key,
        format_func=lambda value: f"{value:,}",
        help=words.HELP[name],
        on_change=_slid,
        args=(name,),
    )


def _toggle() -> None:
    st.session_state[record.BAR_OPEN] = not st.session_state.get(record.BAR_OPEN, False)


def _slid(name: str) -> None:
    record.change(**{name: st.session_state.get(f"scenario_slide_{name}")})


def _copy_link() -> None:
    part = print_view.pop("Link", key="scenario_link", icon=":material/link:")
    if not part.open:
        return
    with part.place:
        st.code(record.address(), language=None, wrap_lines=True)
        now = record.current()
        if {now.model, now.accelerator} & set(record.own().keys):
            st.caption(
                "This scenario uses something of your own. A link does not carry it: send the saved file too."
            )
        else:
            st.caption("Whoever opens it sees this scenario.")


def _split() -> None:
    """A split over chips is made on the page of plans; this is the way back from every page."""
    now = record.current()
    if (now.tp, now.pp, now.ep) == (1, 1, 1):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        prose.small(f"{words.split_sentence(now)} Without a split each chip holds all of it.")
        if not print_view.is_on():
            st.button(
                "Do not split the model over chips",
                key="scenario_unsplit",
                help="Sets tensor parallel, pipeline stages and expert parallel to 1: each chip then holds "
                "the whole model, and further chips are copies of it. The rest of the scenario stays.",
                on_click=record.split,
                kwargs={"tp": 1, "pp": 1, "ep": 1},
            )
