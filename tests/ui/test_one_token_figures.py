"""Page 1's pictures: every operator has its box, areas are as the numbers, marks stay inside."""

import re

import pytest

from core.catalog.models import catalogue
from core.lesson.catalogue_case import catalogue_case
from core.lesson.quantities.token_work import OperatorWork, work_by_operator
from core.ui.figures.block_diagram import block_diagram, counted_block_diagram
from core.ui.figures.mark_scale import Marks
from core.ui.figures.token_areas import Counted, token_areas
from tests.ui.drawn import drawn_inside

MARKS = Marks(1, 100_000, "GFLOP", said=30.0, true=16.1, now=16.1)
KINDS: tuple[Counted, ...] = ("FLOPs", "parameters", "bytes")


def works(model: str = "llama-3.1-8b", tokens: int = 2048) -> list[OperatorWork]:
    return work_by_operator(catalogue_case({"model": model, "input_tokens": tokens}))


@pytest.mark.parametrize("model", list(catalogue()))
@pytest.mark.parametrize("tokens", [1, 2_000_000])
def test_every_model_is_drawn(model: str, tokens: int) -> None:
    found = works(model, tokens)
    for draw in (block_diagram, counted_block_diagram):
        markup = drawn_inside(draw(found, 32, "attention"), slack=0.1)
        assert markup.count("data-pick") == len(found)
    for counted in KINDS:
        drawn_inside(token_areas(found, counted, "attention", MARKS), slack=0.1)


def test_what_is_counted_waits_for_the_prediction() -> None:
    before, after = (draw(works(), 32, "gate_up") for draw in (block_diagram, counted_block_diagram))
    assert "FLOP" not in before.drawing.markup()
    assert "FLOP" not in before.alt
    assert "7.52 GFLOP a token" in after.drawing.markup()
    assert "3.76 G parameters" in before.drawing.markup()


def test_an_unknown_part_opens_the_first() -> None:
    assert "Opened: embedding" in block_diagram(works(), 32, "no_such_part").alt


@pytest.mark.parametrize("counted", KINDS)
def test_areas_are_as_the_numbers(counted: Counted) -> None:
    found = works()
    markup = token_areas(found, counted, "", MARKS).drawing.markup()
    sizes = [
        float(w) * float(h)
        for w, h in re.findall(r'width="([\d.]+)" height="([\d.]+)"[^>]*class="clear"', markup)
    ]
    values = [
        {"FLOPs": work.flops, "parameters": float(work.parameters), "bytes": work.bytes}[counted]
        for work in found
    ]
    wanted, total = sorted(values, reverse=True)[:6], sum(values)
    assert sum(sizes) == pytest.approx(560 * 250, rel=0.01)
    for size, expected in zip(sizes, wanted, strict=False):
        assert size / (560 * 250) == pytest.approx(expected / total, abs=0.003)


def test_a_click_names_the_operator_and_the_rest_names_none() -> None:
    markup = token_areas(works(), "FLOPs", "down", MARKS).drawing.markup()
    assert 'data-pick="gate_up"' in markup
    assert 'data-pick=""' not in markup
    assert markup.count("solid line-ink") == 2  # the open box, and the learner's mark


def test_the_learners_mark_and_todays_value_stand_on_the_scale() -> None:
    markup = token_areas(works(), "FLOPs", "", MARKS).drawing.markup()
    assert "you: 30.0 GFLOP" in markup
    moved = Marks(1, 100_000, "GFLOP", said=None, true=16.1, now=99.0)
    picture = token_areas(works(), "FLOPs", "", moved)
    assert "asked: 16.1 GFLOP, now: 99.0 GFLOP" in picture.drawing.markup()
    assert "You said" not in picture.alt
