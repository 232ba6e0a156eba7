"""Page 17: guessing tokens ahead: what a round brings, what it costs, and one text written both ways."""

from core.ui import frame
from core.ui.lesson import guessing_trial, lesson_page

frame.require()
lesson_page.show("speculative_decoding", measured=guessing_trial.show)
