"""Page 4's pictures: marks lie where their numbers say, words never on a mark, nothing leaves the drawing."""

import re

import pytest

from core.catalog.models import catalogue
from core.lesson.catalogue_case import catalogue_case
from core.lesson.quantities.roof_points import PHASES, peak_flops_per_s, roof_pass
from core.lesson.quantities.roofline import critical_batch
from core.ui.figures.operator_roof import BatchMark, bare_roof, operator_roof
from core.ui.figures.roof_axes import roof_axes
from core.ui.picture import Picture
from tests.ui.drawn import drawn_inside

PEAK, BANDWIDTH = 989e12, 3.35e12


def drawn(mark: BatchMark | None = None, **values: object) -> Picture:
    case = catalogue_case(values)  # type: ignore[arg-type]
    return operator_roof(
        [roof_pass(case, phase) for phase in PHASES],
        peak_flops_per_s(case),
        case.machine.bandwidth_bytes_per_s,
        critical_batch(case).value,
        mark,
    )


@pytest.mark.parametrize("model", list(catalogue()))
@pytest.mark.parametrize("batch", [1, 512])
def test_every_model_is_drawn(model: str, batch: int) -> None:
    picture = drawn(BatchMark(30, 30), model=model, batch=batch)
    markup = drawn_inside(picture)
    assert "decode step" in markup
    assert "you: 30" in markup


@pytest.mark.parametrize("tokens", [1, 2_000_000])
@pytest.mark.parametrize("chip", ["h100-sxm-80gb", "raspberry-pi-5", "rubin-announced", "apple-m1"])
def test_every_size_is_drawn(tokens: int, chip: str) -> None:
    drawn_inside(drawn(accelerator=chip, input_tokens=tokens))


def test_the_bare_roof_does_not_say_where_its_corner_is() -> None:
    picture = bare_roof(PEAK, BANDWIDTH, "A chip")
    markup = drawn_inside(picture)
    assert "295" not in markup + picture.alt
    shown = re.findall(r">([^<]*)</text>", markup)
    assert "100" not in shown


def test_the_corner_lies_at_peak_over_bandwidth() -> None:
    axes = roof_axes(PEAK, BANDWIDTH, [])
    assert axes.ridge == pytest.approx(295.2, abs=0.1)
    assert axes.roof(1) == BANDWIDTH
    assert axes.roof(1e6) == PEAK
    left, right = axes.at(axes.ridge / 2, PEAK)[0], axes.at(axes.ridge * 2, PEAK)[0]
    assert left < axes.at(axes.ridge, PEAK)[0] < right


def test_a_larger_batch_moves_the_squares_to_the_right() -> None:
    def mean_square(batch: int) -> float:
        markup = drawn(batch=batch).drawing.markup()
        found = re.findall(r'<rect x="([\d.]+)"[^>]*class="fill-decode"><title>decode, (?!attention)', markup)
        return sum(map(float, found)) / len(found)

    assert mean_square(64) > mean_square(1) + 60


def test_the_learners_batch_is_a_dashed_line() -> None:
    markup = drawn(BatchMark(10, 10.0)).drawing.markup()
    assert markup.count("outline line-ink") == 1
    assert "you: 10" in markup
    bare = drawn()
    assert "you:" not in bare.drawing.markup()
    assert "You said" not in bare.alt
    assert "You said a batch of 10." in drawn(BatchMark(10, 10.0)).alt


def test_what_a_pass_waits_for_adds_up_to_its_bar() -> None:
    markup = drawn().drawing.markup()
    for name in ("decode step", "prefill"):
        shares = re.findall(rf"<title>{name} (?:waits|fixed)[^:]*: (\d+)%", markup)
        assert 99 <= sum(map(int, shares)) <= 101
