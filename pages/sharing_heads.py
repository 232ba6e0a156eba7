"""Page 7: who may share keys and values, and what that leaves on each of several chips."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("sharing_heads")
