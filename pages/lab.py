"""The engine lab: predict how fast a model writes here, run it, and see how close you came."""

import streamlit as st

from core.ui import frame
from core.ui.lab import page
from core.ui.lab.service import lab, visits

frame.require()
st.title("How fast does a model write on this computer, and what holds it back?")
st.markdown(
    "A language model writes one token (a piece of a word) at a time. Here stands how fast it **should** "
    "be, by arithmetic; press Run and see how fast it **is**. Prompts are not logged. SmolLM2 is tiny (135 "
    "million parameters): it writes fluently and says false things."
)
page.show(lab(), visits())
