"""Page 1: how many FLOPs one token costs, operator by operator."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("one_token")
