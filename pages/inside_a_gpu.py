"""Page 3: the memories of a chip, what each holds, and how long a byte takes from it."""

from core.ui import frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("inside_a_gpu")
