"""After a reload: the tab is asked who it is, and its job is found again."""

from __future__ import annotations

from typing import Final

import streamlit as st

from core.lab.experiment import SWEEP
from core.ui import visit_key
from core.ui.lab import runs, settings
from core.ui.lab.service import Lab, Visits
from core.ui.lab.sweep import page as sweep

_REATTACH: Final = "lab_reattach"


def take_up(visits: Visits) -> None:
    """Take the tab's job up again where the last look found one, and what was set and typed since."""
    key = st.session_state.pop(_REATTACH, None)
    if not key:
        return
    if request := runs.reattach(visits, key):
        settings.use(visits.settings_of(key) or request)
    job = runs.job()
    if job is not None and job.experiment is not None and job.experiment.kind == SWEEP:
        sweep.take_up(job.experiment)


def ask(lab: Lab, visits: Visits) -> None:
    """Find the job of this tab again after a reload. The body of a fragment."""
    key = visit_key.ask()
    if key is not None and runs.can_reattach(lab, visits, key):
        st.session_state[_REATTACH] = key
        st.rerun()
