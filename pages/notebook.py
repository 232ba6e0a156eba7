"""The lab notebook: predictions and answers of this visit, to be saved and loaded."""

import streamlit as st

from core.ui import frame
from core.ui.lesson import notebook_page

frame.require()
st.title("What have you predicted, and how close did you come?", anchor=False)
notebook_page.show()
