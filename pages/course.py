"""The course map: its five parts and their pages."""

import streamlit as st

from core.ui.lesson import course_page

st.title("Where do you want to go next?", anchor=False)
course_page.show()
