"""The engine lab: predict how fast a model writes here, run it, and see how close you came."""

import streamlit as st

from core.ui import frame
from core.ui.lab import parts
from core.ui.lab.service import lab, visits

frame.require()
st.title("How fast does a model write on this computer, and what holds it back?")
parts.show(lab(), visits())
