"""The drawing board escapes what it writes and keeps its marks inside."""

import math
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ui.svg import Drawing, Scale, log_ticks, ticks

HOSTILE = '<script>alert("1")</script>&\'"'


def test_texts_and_hovers_are_escaped() -> None:
    drawing = Drawing(10, 10)
    drawing.text(0, 0, HOSTILE)
    drawing.circle(1, 1, 1, "fill-ink", hover=HOSTILE)
    markup = drawing.markup()
    assert "<script" not in markup
    texts = [element.text for element in ET.fromstring(markup).iter() if element.text]  # noqa: S314 - our own
    assert texts == [HOSTILE, HOSTILE]


@given(st.floats(-1e9, 1e9), st.floats(0, 1e6), st.floats(1e-9, 1e6))
def test_a_scale_never_leaves_its_ends(value: float, low: float, span: float) -> None:
    scale = Scale(low, low + span, 50, 500)
    assert 50 <= scale(value) <= 500


def test_a_scale_of_one_value_stays_at_its_start() -> None:
    assert Scale(3, 3, 50, 500)(3) == 50


@given(st.floats(1e-6, 1e9))
def test_ticks_are_few_and_round(high: float) -> None:
    found = ticks(high)
    assert 2 <= len(found) <= 7
    assert found[0] == 0
    assert found[-1] <= high * (1 + 1e-9)
    step = found[1] - found[0]
    assert re.fullmatch(r"[125]0*e[+-]\d+", f"{step:.0e}")


@pytest.mark.parametrize("high", [0.0, -1.0, float("nan"), float("inf")])
def test_without_a_range_there_is_one_tick(high: float) -> None:
    assert ticks(high) == [0.0]


@given(st.floats(-9, 12), st.floats(0.12, 9))
def test_an_axis_of_logarithms_has_two_ticks_or_more_and_not_many(low: float, span: float) -> None:
    found = log_ticks(Scale(low, low + span, 0, 500))
    assert 2 <= len(found) <= 10
    assert found == sorted(set(found))
    assert all(low <= math.log10(value) <= low + span for value in found)
    assert all(re.fullmatch(r"[1-9](\.[0-9])?0*e[+-]\d+", f"{value:.6e}") for value in found)
