"""Page 12: what rounding weights and activations to few bits loses, where, and how much by format."""

from core.ui import frame
from core.ui.lesson import lesson_page, quality_beat

frame.require()
lesson_page.show("quantising", measured=quality_beat.show, beside=quality_beat.details)
