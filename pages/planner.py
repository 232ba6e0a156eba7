"""The planner: does a model fit on a chip, how fast is it there, and what would help most."""

import streamlit as st

from core.ui import frame
from core.ui.planner import page

frame.require()
st.title("Will it fit, how fast will it be, and what would help most?")
page.show()
