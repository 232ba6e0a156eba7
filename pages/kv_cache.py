"""Page 6: what a model keeps of earlier tokens, what that saves, and what it costs."""

from core.ui.lesson import lesson_page

lesson_page.show("kv_cache")
