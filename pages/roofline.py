"""Page 4: which limit an operator hits, by its FLOPs for each byte."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("roofline")
