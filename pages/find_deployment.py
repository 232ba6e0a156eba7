"""The planner that searches: which chips, how many, and how, for a model, two limits and a load."""

import streamlit as st

from core.ui import frame
from core.ui.find import page

frame.require()
st.title("Which chips, how many, and how?")
page.show()
