"""The pictures of page 5: parts to scale, the edge where it is, and a line that ends where nothing fits."""

import re
from itertools import pairwise

import pytest

from core.ui.figures.chip_memory import ChipMemory, chip_memory
from core.ui.figures.conversations_by_context import conversations_by_context
from core.ui.figures.mark_scale import Marks
from core.units import GIB
from tests.ui.drawn import drawn_inside

MARKS = Marks(low=1, high=10_000, unit="", said=200.0, true=52.0, now=26.0)
CONTEXTS = (512, 1024, 2048, 4096, 8192)


def memory(conversations: int = 10, weights: float = 15.0, capacity: float = 80.0) -> ChipMemory:
    return ChipMemory(
        capacity_bytes=capacity * GIB,
        budget_bytes=0.9 * capacity * GIB,
        weights_bytes=weights * GIB,
        kv_bytes=conversations * GIB,
        reserve_bytes=4 * GIB,
        conversations=conversations,
    )


@pytest.mark.parametrize("conversations", [1, 2, 52, 1024, 65_536])
@pytest.mark.parametrize("weights", [0.1, 15.0, 140.0, 2000.0])
def test_every_load_is_drawn_inside_the_picture(conversations: int, weights: float) -> None:
    drawn_inside(chip_memory(memory(conversations, weights), "A chip"))


def test_parts_are_to_scale_and_each_conversation_is_a_cell() -> None:
    markup = chip_memory(memory(10), "A chip").drawing.markup()
    widths = {
        part: float(found[1])
        for part in ("weights", "activations", "kv")
        if (found := re.search(rf'width="([\d.]+)"[^>]*class="fill-{part}"', markup))
    }
    assert widths["weights"] / widths["kv"] == pytest.approx(1.5, rel=0.01)
    assert widths["kv"] / widths["activations"] == pytest.approx(2.5, rel=0.01)
    assert markup.count('class="thin line-page"') == 9


def test_what_is_left_or_missing_is_said() -> None:
    fits, not_so = chip_memory(memory(10), "A chip"), chip_memory(memory(70), "A chip")
    assert fits.legend[-1].words == "free up to the edge"
    assert fits.legend[-1].value == "43.0 GiB"
    assert "43.0 GiB are free" in fits.alt
    assert not_so.legend[-1].words == "past the edge"
    assert "17.0 GiB are missing" in not_so.alt
    assert "edge: 72.0 GiB" in fits.drawing.markup()


def test_the_line_falls_and_carries_the_learners_mark() -> None:
    drawn = conversations_by_context(CONTEXTS, (800, 400, 200, 100, 50), 8192, 50, MARKS)
    drawn_inside(drawn)
    line = re.search(r'<path d="M([^"]+)" class="solid line-kv">', drawn.drawing.markup())
    assert line is not None
    heights = [float(point.split()[1]) for point in line[1].split("L")]
    steps = [below - above for above, below in pairwise(heights)]
    assert max(steps) - min(steps) < 0.2  # a factor of two is the same step everywhere
    assert steps[0] > 0
    assert "You said 200." in drawn.alt
    assert "asked: 52, now: 26" in drawn.drawing.markup()


def test_the_line_ends_where_nothing_fits() -> None:
    drawn = conversations_by_context(CONTEXTS, (2, 1, 0, 0, 0), 8192, 0, MARKS)
    drawn_inside(drawn)
    line = re.search(r'<path d="M([^"]+)" class="solid line-kv">', drawn.drawing.markup())
    assert line is not None
    assert line[1].count("L") == 1
    assert "not one of 8,192 tokens fits" in drawn.drawing.markup()
    nothing = conversations_by_context(CONTEXTS, (0, 0, 0, 0, 0), 8192, 0, MARKS)
    assert "line-kv" not in nothing.drawing.markup()
