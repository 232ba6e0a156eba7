"""The planner's pictures: what they draw, say, and list."""

import re

import pytest

from core.analytic.memory import Footprint
from core.analytic.roofline import RoofMark
from core.catalog.scenario import Scenario
from core.ui.figures.answer_in_time import answer_in_time
from core.ui.figures.memory_bar import memory_bar
from core.ui.figures.roofline import roofline
from core.ui.picture import Picture
from core.units import GIB
from tests.ui.test_planner_arithmetic import found_for


def need(scenario: Scenario) -> Footprint:
    memory = found_for(scenario).plan.memory
    assert memory is not None
    return memory


def widths(picture: Picture, style: str) -> list[float]:
    return [float(w) for w in re.findall(rf'width="([\d.]+)"[^>]*class="{style}"', picture.markup())]


def test_the_memory_bar_is_to_scale_and_names_every_part() -> None:
    footprint = need(Scenario())
    picture = memory_bar(footprint, "chip")
    assert footprint.capacity_bytes is not None
    share = float(footprint.weights_bytes) / footprint.capacity_bytes
    assert widths(picture, "fill-weights")[0] == pytest.approx(996 * share, abs=0.2)
    words = [f"{label.words} {label.value}" for label in picture.legend]
    assert words[0] == "weights 15.0 GiB"
    assert words[-1].startswith("free ")
    assert "GiB free" in picture.alt
    rows = {row[0]: row for row in picture.rows}
    assert rows["weights"][1] == 16_060_522_496


def test_a_memory_that_is_too_small_says_how_much_is_missing() -> None:
    picture = memory_bar(need(Scenario(model="llama-2-70b")), "chip")
    assert picture.legend[-1].words == "past the end of the memory"
    assert picture.alt.endswith("missing.")


def test_an_unknown_capacity_is_no_frame_and_no_zero() -> None:
    picture = memory_bar(need(Scenario(accelerator="rtx-4080")), "NVIDIA GeForce RTX 4090")
    assert picture.legend[-1].value == "unknown"
    assert "unknown" in picture.alt
    assert ("usable memory", None, None) in picture.rows
    assert "line-ink" not in picture.drawing.markup()


@pytest.mark.parametrize(("ttft_s", "tpot_s", "tokens"), [(0.06, 0.008, 256), (9.0, 0.01, 2), (0.5, None, 1)])
def test_an_answer_in_time_adds_up(ttft_s: float, tpot_s: float | None, tokens: int) -> None:
    picture = answer_in_time(ttft_s, tpot_s, tokens)
    total = ttft_s + (tokens - 1) * (tpot_s or 0)
    assert picture.rows[-1][3] == pytest.approx(total)
    assert picture.alt
    assert picture.look_at
    drawn = sum(widths(picture, "fill-prefill") + widths(picture, "fill-decode"))
    assert drawn == pytest.approx(542, abs=0.3)


def test_the_roofline_puts_each_pass_on_its_side() -> None:
    passes = [RoofMark("prefill", 3e13, 4e10, 0.06), RoofMark("decode", 1.6e10, 1.5e10, 0.008)]
    picture = roofline(passes, 989e12, 3.35e12, "bf16")
    assert "corner at 295 FLOPs per byte" in picture.alt
    assert "prefill does 750 FLOPs per byte, on the side that waits for arithmetic" in picture.alt
    assert "decode does 1.07 FLOPs per byte, on the side that waits for memory" in picture.alt


def test_words_of_marks_in_one_place_do_not_lie_on_each_other() -> None:
    passes = [RoofMark(name, 1.6e10, 1e9, 0.04) for name in ("prefill", "decode")]
    markup = roofline(passes, 989e12, 4.8e12, "bf16").markup()
    heights = [float(y) for y in re.findall(r'y="([\d.]+)"[^>]*strong">(?:prefill|decode)<', markup)]
    assert len(heights) == 2
    assert abs(heights[0] - heights[1]) > 19


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_no_mark_leaves_the_roofline(scale: float) -> None:
    markup = roofline([RoofMark("decode", 1e9 * scale, 1e9, 0.01)], 1e14, 1e12, "bf16").markup()
    assert "nan" not in markup
    x = [float(value) for value in re.findall(r' x="([\d.]+)"', markup)]
    assert min(x) >= 0
    assert max(x) <= 560


def test_a_legend_shows_text_as_it_is() -> None:
    footprint = Footprint(GIB, *(need(Scenario()).weights_bytes for _ in range(4)))
    picture = memory_bar(footprint, "<script>alert(1)</script>")
    assert "<script>" not in picture.markup()
