"""Page 2: why reading a prompt and writing an answer differ so much in speed."""

from core.ui.lesson import lesson_page

lesson_page.show("prefill_and_decode")
