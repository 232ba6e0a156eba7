"""Page 2: why reading a prompt and writing an answer differ so much in speed."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("prefill_and_decode")
