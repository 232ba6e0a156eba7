"""Page 12's pictures: levels on the axis, factors, shades, and what nothing beats."""

import re
from itertools import pairwise
from typing import Any

import pytest

from core.lesson.lesson_file import lessons
from core.lesson.quality_trial import THOUSAND
from core.lesson.quantities.rounding_example import (
    BASE,
    BITS,
    SHARED,
    Setting,
    block_errors,
    ends,
    error,
    grids,
    view,
)
from core.ui.figures.error_map import error_map
from core.ui.figures.loss_by_size import FormatPoint, front, loss_by_size
from core.ui.figures.rounding_errors import rounding_errors
from core.ui.figures.shades import COUNT
from core.ui.figures.values_and_grid import values_and_grid
from core.ui.picture import Picture
from tests.lab.quality_example import quality_record
from tests.ui.drawn import drawn_inside


def errors_of(now: Setting, said: float | None = None) -> Picture:
    errors = {shared: error(now, shared) for shared in SHARED}
    return rounding_errors(
        errors, BASE, now.shared, blocks=block_errors(now).tolist(), ends=ends(now), said=said
    )


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("bits", BITS.values())
@pytest.mark.parametrize("outlier", [0.0, 60.0, 120.0])
def test_every_setting_is_drawn(shared: str, bits: int, outlier: float) -> None:
    now = Setting(shared, bits, True, outlier)
    drawn_inside(values_and_grid(view(now), grids(now), "A tensor", outside=outlier or None))
    for said in (None, 1.0, 10_000.0):
        drawn_inside(errors_of(now, said))


def test_levels_are_drawn_one_by_one_where_they_can_be_told_apart() -> None:
    coarse = Setting("all numbers", 8, True, 60.0)
    markup = values_and_grid(view(coarse), grids(coarse), "A tensor", outside=60.0).drawing.markup()
    assert markup.count("level at") == 17  # 0.472 apart between -4 and 4
    assert "one more at 60.0" in markup
    fine = Setting("groups of 128", 8, True, 60.0)
    markup = values_and_grid(view(fine), grids(fine), "A tensor", outside=60.0).drawing.markup()
    assert markup.count("faint fill-decode") == 1  # a band, since 255 levels lie too close
    assert "grid of the outlier" in markup
    assert "finest grid" in markup


def test_the_learners_factor_stands_beside_the_true_one() -> None:
    picture = errors_of(Setting("all numbers", 8, True, 60.0), 300.0)
    assert "you: × 300" in picture.drawing.markup()
    assert "You said 300 times." in picture.alt
    assert picture.rows[0][2] == pytest.approx(29.3, abs=0.1)
    assert picture.rows[2][2] == 1.0


def test_only_the_outliers_group_is_strong() -> None:
    markup = errors_of(Setting("groups of 128", 8, True, 60.0)).drawing.markup()
    boxes = re.findall(r'class="([^"]*)fill-decode"><title>row (\d), part (\d+)', markup)
    full = {(int(row), int(part)) for style, row, part in boxes if not style}
    assert full == {(2, part) for part in range(4, 8)}  # number 200 of row 2, and its 127 neighbours


def test_a_map_shows_the_most_lost_strongest_and_the_exact_empty() -> None:
    cells = ((40.0, None), (30.0, None), (20.0, None))
    picture = error_map("Weights", ("QKV", "output"), cells, cells)
    markup = drawn_inside(picture)
    hovers = re.findall(r'class="([^"]*)"><title>(layer \d, \w+: [^<]*)<', markup)
    styles = {words.partition(",")[0]: style for style, words in hovers if "QKV" in words}
    assert styles == {"layer 0": "band fill-decode", "layer 1": "faint fill-decode", "layer 2": "fill-decode"}
    assert sum("nothing lost" in words for _, words in hovers) == 3
    assert "QKV from 20 dB in layer 2 to 40 dB; output lost nothing" in picture.alt
    assert picture.rows[2] == (2, 20.0, "nothing lost", 20.0, "nothing lost")
    assert markup.count("shade ") == COUNT


def test_a_map_that_lost_nothing_or_the_same_everywhere_is_drawn() -> None:
    for value in (None, 25.0):
        cells = tuple((value,) for _ in range(30))
        drawn_inside(error_map("Weights", ("QKV",), cells, cells))


def points() -> list[FormatPoint]:
    reference, *others = quality_record().rows
    return [
        FormatPoint(
            row.weights, "weights", row.weight_bytes / reference.weight_bytes, row.kl * THOUSAND, 40.0
        )
        if row.kv == "fp32"
        else FormatPoint(
            row.kv,
            "cache",
            row.cache_bytes_per_token / reference.cache_bytes_per_token,
            row.kl * THOUSAND,
            None,
        )
        for row in others
    ]


def test_the_front_holds_what_nothing_of_its_kind_beats() -> None:
    assert [point.name for point in front(points(), "weights")] == ["int4", "fp16"]
    assert [point.name for point in front(points(), "cache")] == ["int4", "int8", "fp16"]
    picture = loss_by_size(points())
    markup = drawn_inside(picture)
    assert markup.count("outline line-weights") == markup.count("outline line-kv") == 1
    assert sum(row[-1] == "yes" for row in picture.rows) == 5


def test_a_single_format_is_drawn() -> None:
    drawn_inside(loss_by_size(points()[:1]))


def test_names_of_one_kind_do_not_touch() -> None:
    near = [FormatPoint(f"f{i}", "weights", 0.25, 1.0 + 0.01 * i, None) for i in range(3)]
    markup = drawn_inside(loss_by_size(near))
    heights = sorted(
        float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="start" class="t fill-ink"', markup)
    )
    assert all(b - a >= 16 for a, b in pairwise(heights))


def test_the_record_is_drawn() -> None:
    record = quality_record()
    drawn_inside(values_and_grid(record.tensor.histogram, record.tensor.grids, "Weights"))
    for found in record.maps:
        drawn_inside(error_map(found.name, found.columns, found.sqnr_db, found.worst_db))


def test_the_lesson_names_these_pictures() -> None:
    pictures: Any = lessons()["quantising"].pictures
    assert (pictures.base, pictures.answer) == ("values_and_grid", "rounding_errors")
