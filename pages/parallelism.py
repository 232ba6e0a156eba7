"""Page 19: how many chips share one model, what lies on each, and what that brings."""

from core.ui import frame
from core.ui.lesson import lesson_page, plan_offers, split_trial

frame.require()
lesson_page.show("parallelism", measured=split_trial.show, below=plan_offers.show)
