"""The pictures of page 21: what is asked stays covered, bars lie where their factors say."""

import math
import re

import pytest

from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.quantities.chip_catalogue import CLASSES, COLUMNS, chip_rows
from core.lesson.quantities.sheet_growth import sheet_growth as growth_of
from core.lesson.quantities.workload_gain import gains
from core.ui.figures.chip_map import ChipDot, chip_map
from core.ui.figures.factor_rows import factor_axis
from core.ui.figures.sheet_growth import covered_sheet_growth, sheet_growth
from core.ui.figures.workload_gains import workload_gains
from core.ui.picture import Picture
from tests.ui.drawn import drawn_inside

BASE = lessons()["hardware_generations"].base
PAIRS = [
    ("a100-sxm-80gb", "b200-sxm"),
    ("h200-sxm-141gb", "apple-m4-max"),
    ("tpu-v5e", "rubin-announced"),
    ("xeon-8480plus", "mi355x"),
]


def pictures(earlier: str, later: str) -> list[Picture]:
    case = catalogue_case({**BASE, "earlier": earlier, "later": later})
    lines = growth_of(case)
    return [
        covered_sheet_growth(lines, "Before", "After"),
        sheet_growth(lines, "Before", "After", guess=3.0),
        workload_gains(gains(case), lines[0], lines[1], "Before", "After"),
    ]


@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_every_pair_is_drawn_inside_the_picture(earlier: str, later: str) -> None:
    for picture in pictures(earlier, later):
        drawn_inside(picture)


def test_what_is_asked_is_covered_before_and_shown_after() -> None:
    covered, shown, _ = pictures("a100-sxm-80gb", "b200-sxm")
    before = covered.drawing.markup() + covered.alt + str(covered.rows)
    assert "7.2" not in before
    assert "2,250" not in before
    assert "3.78" not in before
    assert before.count("→ ?") == 2
    assert "× 7.21" in shown.drawing.markup()
    assert "2,250 TFLOP/s" in shown.drawing.markup()


def test_the_learners_mark_is_a_diamond_on_the_line_of_the_arithmetic() -> None:
    _, shown, _ = pictures("a100-sxm-80gb", "b200-sxm")
    diamond = re.search(
        r'<path d="M([\d.]+) ([\d.]+)[^"]*" class="outline line-ink"><title>you: × 3.00',
        shown.drawing.markup(),
    )
    assert diamond is not None
    axis = factor_axis([2250 / 312, 3.0])
    assert float(diamond[1]) == pytest.approx(axis(math.log10(3.0)), abs=0.1)
    assert float(diamond[2]) < 40


def test_equal_factors_are_equal_lengths_wherever_they_begin() -> None:
    axis = factor_axis([0.3, 7.0])
    assert axis(math.log10(4)) - axis(math.log10(2)) == pytest.approx(
        axis(math.log10(1)) - axis(math.log10(0.5))
    )
    assert axis.low <= math.log10(0.3)
    assert axis.high >= math.log10(7)


def test_bars_say_what_a_workload_mostly_does() -> None:
    _, _, gained = pictures("a100-sxm-80gb", "b200-sxm")
    markup = gained.drawing.markup()
    assert re.search(r'class="fill-decode"><title>one user chats', markup)
    assert re.search(r'class="fill-prefill"><title>long prompts', markup)


def test_a_model_too_large_is_told_in_the_legend() -> None:
    case = catalogue_case({**BASE, "model": "llama-3.1-70b", "later": "h100-sxm-80gb"})
    lines = growth_of(case)
    drawn = workload_gains(gains(case), lines[0], lines[1], "Before", "After")
    assert any("more than one After holds" in label.words for label in drawn.legend)


def dots() -> list[ChipDot]:
    bandwidth, peak = (list(COLUMNS).index(name) for name in ("bandwidth, GB/s", "16 bits, TFLOP/s"))
    return [
        ChipDot(
            row.name, row.values[bandwidth] or 0, row.values[peak] or 0, row.announced, row.id == "b200-sxm"
        )
        for row in chip_rows(CLASSES, "year")
    ]


def test_every_chip_is_a_dot_and_the_chosen_one_is_named() -> None:
    drawn = chip_map(dots())
    markup = drawn.drawing.markup()
    assert markup.count("<circle") == len(dots())
    assert re.findall(r'class="t fill-ink strong">([^<]+)', markup) == ["NVIDIA B200 SXM (HGX/DGX)"]
    announced = sum(dot.announced for dot in dots())
    assert announced > 0
    assert markup.count('class="outline line-decode"') == announced
    assert "NVIDIA B200 SXM (HGX/DGX) 7,700 GB/s" in drawn.alt
    assert len(drawn.rows) == len(dots())


def test_a_measured_computer_is_a_square_among_the_dots() -> None:
    here = ChipDot("this computer", 20.0, 0.1, announced=False, chosen=True, measured=True)
    drawn = chip_map([*dots(), here])
    markup = drawn.drawing.markup()
    assert markup.count("<circle") == len(dots())
    assert re.search(r'<rect [^>]*class="fill-activations"><title>measured: this computer', markup)
    assert [label.words for label in drawn.legend][-1] == "measured"
    assert "measured" not in [label.words for label in chip_map(dots()).legend]


def test_a_slanted_line_joins_equal_corners() -> None:
    markup = chip_map(dots()).drawing.markup()
    lines = re.findall(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" class="thin line-muted"/>', markup)
    slopes = [(float(y1) - float(y0)) / (float(x1) - float(x0)) for x0, y0, x1, y1 in lines]
    assert len(slopes) == 3
    assert max(slopes) - min(slopes) < 0.01
    assert all(slope < 0 for slope in slopes)
