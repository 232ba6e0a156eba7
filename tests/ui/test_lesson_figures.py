"""The lessons' pictures: marks where the numbers say, at every size, with the learner's own among them."""

import re
from itertools import pairwise

import numpy as np
import pytest

from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.quantities.answer_timeline import timeline
from core.lesson.quantities.kv_cache import work_by_step
from core.ui.figures.answer_timeline import answer_timeline, timed_answer_timeline
from core.ui.figures.cached_work_and_memory import (
    Guess,
    cached_work_and_memory,
    recomputed_work_and_memory,
)
from core.ui.figures.pass_work import RatioScale, pass_work
from core.ui.figures.token_triangle import cached_triangle, recomputed_triangle, token_triangle
from core.ui.lesson.control_row import stops
from core.ui.lesson.prediction_beat import scale
from core.ui.picture import Picture
from tests.ui.drawn import drawn_inside

SCALE = RatioScale(1, 10_000, said=30.0, true=312.0, now=312.0)
SIZES = [(1, 1), (1, 2), (7, 3), (2048, 256), (32_768, 2048), (2_000_000, 2)]


def case(prompt: int = 2048, answer: int = 256) -> LessonCase:
    return catalogue_case({"input_tokens": prompt, "output_tokens": answer})


def every_picture(prompt: int, answer: int) -> list[Picture]:
    now = case(prompt, answer)
    line, steps = timeline(now), answer - 1
    work = work_by_step(now.having({"input_tokens": 1, "output_tokens": prompt + answer - 1}))
    return [
        answer_timeline(line, prompt, steps, 1),
        timed_answer_timeline(line, prompt, steps, 1),
        pass_work(line, prompt, 1, SCALE),
        token_triangle(prompt, max(steps, 1)),
        cached_triangle(prompt, max(steps, 1)),
        recomputed_triangle(prompt, max(steps, 1)),
        cached_work_and_memory(work, prompt, None),
        recomputed_work_and_memory(work, prompt, Guess("linearly", 1.0)),
    ]


@pytest.mark.parametrize(("prompt", "answer"), SIZES)
def test_every_size_is_drawn_inside_the_picture_with_words_and_rows(prompt: int, answer: int) -> None:
    for picture in every_picture(prompt, answer):
        assert len(drawn_inside(picture)) < 60_000
        assert picture.rows


def test_the_base_timeline_keeps_its_times_for_later() -> None:
    line = timeline(case())
    before, after = (draw(line, 2048, 255, 1) for draw in (answer_timeline, timed_answer_timeline))
    shown = re.compile(r">([^<]*)</text>")
    assert not any(" ms" in text or " s" in text[-3:] for text in shown.findall(before.drawing.markup()))
    assert any(" ms" in text for text in shown.findall(after.drawing.markup()))


def test_the_blocks_width_is_the_prefills_share_of_the_answer() -> None:
    line = timeline(case())
    markup = answer_timeline(line, 2048, 255, 1).drawing.markup()
    first = re.search(r'<rect x="4.0" y="30.0" width="([\d.]+)"', markup)
    assert first is not None
    assert float(first[1]) / 552 == pytest.approx(line.prefill_s / line.end_s, abs=0.002)


def test_the_learners_mark_is_an_outline_left_of_what_is_true() -> None:
    markup = pass_work(timeline(case()), 2048, 1, SCALE).drawing.markup()
    diamond = re.search(r'<path d="M([\d.]+) [^"]*" class="solid line-ink">', markup)
    dot = re.search(r'<circle cx="([\d.]+)"', markup)
    assert diamond is not None
    assert dot is not None
    assert float(diamond[1]) < float(dot[1])
    assert "you: 30.0 ×" in markup
    bare = pass_work(timeline(case()), 2048, 1, RatioScale(1, 10_000, None, 312.0, 312.0)).drawing.markup()
    assert "you:" not in bare


def test_what_holds_now_is_drawn_where_it_differs_from_what_was_asked() -> None:
    moved = RatioScale(1, 10_000, None, 312.0, 12.0)
    assert "now: 12.0 ×" in pass_work(timeline(case()), 2048, 1, moved).drawing.markup()


@pytest.mark.parametrize(("steps", "rows"), [(1, 2), (5, 6), (9, 10), (10, 11), (255, 11)])
def test_the_triangle_has_the_prefill_the_first_steps_and_the_last(steps: int, rows: int) -> None:
    markup = token_triangle(100, steps).drawing.markup()
    assert markup.count("100 prompt tokens") == rows
    assert f"answer token {steps:,}:" in markup


def test_a_cache_leaves_one_new_cell_a_step_and_without_one_the_old_are_crossed() -> None:
    cached = cached_triangle(100, 5).drawing.markup()
    again = recomputed_triangle(100, 5).drawing.markup()
    assert cached.count("token 1: goes through") + cached.count("token 5: goes through") == 2
    assert cached.count("kept, only looked at") == 5 + (1 + 2 + 3 + 4)
    assert again.count("goes through the model again") == 5 + (1 + 2 + 3 + 4)
    assert again.count('class="thin line-ink"') == 15


def test_a_guess_is_a_dashed_curve_of_its_own_shape() -> None:
    work = work_by_step(case(1, 2303))
    markup = cached_work_and_memory(work, 2048, Guess("with the square", 2.0)).drawing.markup()
    curve = re.search(r'<path d="M([^"]+)" class="outline line-ink"><title>you', markup)
    assert curve is not None
    heights = [float(point.split()[1]) for point in curve[1].split("L")]
    falls = [above - below for above, below in pairwise(heights)]
    assert all(later >= earlier - 0.2 for earlier, later in pairwise(falls))  # steeper and steeper
    assert falls[-1] > 10 * max(falls[0], 0.1)


def test_an_empty_meter_stands_for_no_cache() -> None:
    work = work_by_step(case(1, 2303))
    full = cached_work_and_memory(work, 2048, None).drawing.markup()
    empty = recomputed_work_and_memory(work, 2048, None).drawing.markup()
    assert "fill-kv" in full
    assert "fill-kv" not in empty
    assert "0 B" in empty


@pytest.mark.parametrize("value", [1, 2048, 5000, 2_000_000])
def test_a_control_offers_todays_value_wherever_it_lies(value: int) -> None:
    for lesson in lessons().values():
        for control in lesson.controls:
            if control.kind == "range":
                found = stops(control, value)
                assert value in found
                assert {control.low, control.high} <= set(found)
                assert list(found) == sorted(found)


def test_a_log_scale_has_even_steps_and_its_ends() -> None:
    asked = lessons()["prefill_and_decode"].prediction
    marks = np.array(scale(asked))
    assert (marks[0], marks[-1]) == (asked.low, asked.high)
    assert (np.diff(np.log10(marks)) < 0.15).all()
