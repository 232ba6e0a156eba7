"""The course map: its five parts and their pages."""

import streamlit as st

from core.ui import frame
from core.ui.lesson import course_page

frame.require()
st.title("Where do you want to go next?", anchor=False)
course_page.show()
