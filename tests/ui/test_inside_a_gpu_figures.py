"""Page 3's pictures: what is unknown is said, bars are as the times, a byte travels from the open level."""

import math
import re
from itertools import pairwise

import pytest

from core.catalog.accelerators import accelerators
from core.lesson.catalogue_case import catalogue_case
from core.lesson.quantities.memory_levels import HOST, L2, MEMORY, Level, levels
from core.ui.figures.mark_scale import Marks
from core.ui.figures.memory_chain import memory_chain, piped_memory_chain
from core.ui.figures.read_times import read_times
from tests.ui.drawn import drawn_inside

MARKS = Marks(0.1, 100_000, "ms", said=3.0, true=25.5, now=25.5)


def known(key: str = "h100-sxm-80gb") -> list[Level]:
    return levels(catalogue_case({"accelerator": key}))


@pytest.mark.parametrize("key", list(accelerators()))
def test_every_chip_is_drawn(key: str) -> None:
    found = known(key)
    for draw in (memory_chain, piped_memory_chain):
        assert drawn_inside(draw(found, MEMORY)).count("data-pick") == len(found)
    for size in (100.0, 436e6, 1e13):
        drawn_inside(read_times(found, size, "One layer", MEMORY, MARKS))


def test_bandwidths_wait_for_the_prediction() -> None:
    assert "TB/s" not in memory_chain(known(), MEMORY).drawing.markup()
    after = piped_memory_chain(known(), MEMORY)
    for words in ("29.7 TB/s", "8.99 TB/s", "3.35 TB/s", "NVLink 4: 450 GB/s", "not published"):
        assert words in after.drawing.markup()


@pytest.mark.parametrize(("picked", "pipes"), [(L2, 3), (MEMORY, 4), (HOST, 5)])
def test_a_byte_travels_from_the_open_level_to_the_units(picked: str, pipes: int) -> None:
    assert memory_chain(known(), picked).drawing.markup().count("a byte on its way") == pipes


def test_pipes_are_wider_where_more_flows() -> None:
    markup = piped_memory_chain(known(), MEMORY).drawing.markup()
    widths = [
        float(w) for w in re.findall(r'width="([\d.]+)"[^>]*class="faint fill-(?:weights|comm)', markup)
    ]
    assert widths[1:] == sorted(widths[1:], reverse=True)  # the registers' own is not published
    assert len(set(widths[1:])) == 5


def test_bars_are_as_the_logarithm_of_the_times() -> None:
    markup = read_times(known(), 436.224e6, "One layer", MEMORY, MARKS).drawing.markup()
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="13.0"[^>]*><title>', markup)]
    times = [436.224e6 / level.bandwidth_bytes_per_s for level in known() if level.bandwidth_bytes_per_s]
    steps = [math.log10(b / a) for a, b in pairwise(times)]
    drawn = [b - a for a, b in pairwise(widths)]
    for step, width in zip(steps, drawn, strict=True):
        assert width / drawn[0] == pytest.approx(step / steps[0], rel=0.01)


def test_what_does_not_fit_is_said() -> None:
    markup = read_times(known(), 436e6, "One layer", MEMORY, MARKS).drawing.markup()
    assert markup.count("does not fit there at once") == 2  # shared memory and the L2 cache
    assert "53.2 × more" in markup
    assert "you: 3.00 ms" in markup
