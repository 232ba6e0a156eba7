"""How good our predictions are: held against published measurements, and against runs of this lab."""

import streamlit as st

from core.ui import frame
from core.ui.predictions import page

frame.require()
st.title("How good are our predictions?")
page.show()
