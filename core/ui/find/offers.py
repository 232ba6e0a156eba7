"""A found deployment as a scenario of the planner, and the links that open it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import streamlit as st

from core.analytic.search.ranking import Candidate
from core.catalog.scenario import LIMITS, VERSION, Scenario, encode
from core.ui import print_view, prose
from core.ui.plain import plain

_PLANNER: Final = "pages/planner.py"


def scenario_of(scenario: Scenario, one: Candidate) -> Scenario:
    """The same model and tokens on the found chips; a batch is that of each replica.

    A scenario holds a limited number of chips, so that of very many replicas it has as many as it can.
    """
    share = one.plan.tp * one.plan.pp
    replicas = min(one.replicas, LIMITS["count"][1] // share)
    return replace(
        scenario,
        accelerator=one.chip.id,
        count=share * max(replicas, 1),
        weights=one.weights,
        kv=one.cache,
        batch=one.batch,
        tp=one.plan.tp,
        pp=one.plan.pp,
        ep=one.plan.ep,
    )


def draw(scenario: Scenario, named: Sequence[tuple[str, Candidate]]) -> None:
    """A row of links, each with its mark; paper has no use for them.

    Args:
        scenario: of today's model and tokens.
        named: the mark that a row or a dot has on the page, and its candidate.
    """
    if print_view.is_on() or not named:
        return
    prose.small("Open in the planner:")
    with st.container(horizontal=True, gap="small"):
        for mark, one in named:
            st.page_link(
                _PLANNER,
                label=plain(f"{mark} · {one.chips:,} × {one.chip.name}"),
                query_params={"v": VERSION, **encode(scenario_of(scenario, one))},
                width="content",
            )
