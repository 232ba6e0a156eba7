"""Page 5: what fills a chip's memory, and how many conversations fit beside the weights."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("will_it_fit")
