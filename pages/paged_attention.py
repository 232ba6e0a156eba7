"""Page 9: a cache in blocks, the tables that find them, and what reserving ahead wastes."""

from core.ui import frame
from core.ui.lesson import lesson_page, serving_trial

frame.require()
lesson_page.show("paged_attention", measured=serving_trial.show_paging)
