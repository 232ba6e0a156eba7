"""Page 14: who shares a step, who waits for whom, and what closed batches cost."""

from core.ui import frame
from core.ui.lesson import lesson_page, serving_trial

frame.require()
lesson_page.show("batching", measured=serving_trial.show_batching)
