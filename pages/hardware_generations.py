"""Page 21: what grew from one chip to the next, whom that helped, and every chip of the catalogue."""

from core.ui import chip_explorer, frame
from core.ui.lesson import lesson_page

frame.require()
lesson_page.show("hardware_generations", beside=chip_explorer.show)
