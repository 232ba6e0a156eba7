"""Page 6: what a model keeps of earlier tokens, what that saves, and what it costs."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("kv_cache")
