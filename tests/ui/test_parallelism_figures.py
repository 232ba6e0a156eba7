"""The pictures of page 19: tanks to scale for every plan, what is not drawn is said, and the curve."""

import doctest
import re
from dataclasses import replace

import pytest

from core.lesson.quantities.chip_plan import ChipsOfStage, SpeedUp
from core.ui.figures.chip_speed_up import chip_speed_up
from core.ui.figures.mark_scale import Marks
from core.ui.figures.plan_chips import PlanShape, plan_chips
from core.ui.lesson import plan_offers
from tests.ui.drawn import drawn_inside

GIB = 2**30
MARKS = Marks(low=1, high=16, unit="×", said=8.0, true=2.4, now=2.4)
CHIPS = ChipsOfStage(
    first_layer=1,
    last_layer=40,
    query_heads=8,
    experts=16,
    weights_bytes=20 * GIB,
    kv_bytes=10 * GIB,
    activation_bytes=1 * GIB,
    overhead_bytes=1 * GIB,
    decode_s=0.012,
    idle_share=0.25,
    prefill_s=0.3,
    prefill_idle_share=0.5,
    sent_bytes=4.8e6,
)


def shape(tp: int = 8, pp: int = 1, ep: int = 1, dp: int = 1, capacity_gib: float | None = 64) -> PlanShape:
    return PlanShape(tp, pp, ep, dp, None if capacity_gib is None else capacity_gib * GIB)


def heights(markup: str, part: str) -> list[float]:
    return [float(found) for found in re.findall(rf'height="([\d.]+)"[^>]*class="fill-{part}"', markup)]


@pytest.mark.parametrize("dp", [1, 4])
@pytest.mark.parametrize("pp", [1, 2, 3, 16])
@pytest.mark.parametrize("tp", [1, 2, 3, 8, 64])
def test_every_plan_is_drawn_inside_the_picture(tp: int, pp: int, dp: int) -> None:
    picture = plan_chips([CHIPS] * pp, shape(tp, pp, dp=dp), "A chip")
    markup = drawn_inside(picture)
    assert len(heights(markup, "weights")) == min(tp, 8) * min(pp, 3)
    assert (f"8 of {tp} chips" in markup) == (tp > 8)
    assert (f"3 of {pp} stages" in markup) == (pp > 3)
    assert (f"1 of {dp} replicas" in markup) == (dp > 1)
    assert f"{tp * pp * dp:,} chip" in picture.title


def test_a_tank_is_filled_to_scale() -> None:
    markup = drawn_inside(plan_chips([CHIPS], shape(), "A chip"))
    parts = {part: heights(markup, part)[0] for part in ("weights", "kv", "activations", "overhead")}
    assert parts["weights"] / parts["kv"] == pytest.approx(2, rel=0.02)
    assert sum(parts.values()) == pytest.approx(42, abs=0.5)  # half of 64 GiB in a tank of 84
    assert "all that a chip holds" not in markup


def test_a_tank_that_overflows_shows_the_edge() -> None:
    picture = plan_chips([CHIPS], shape(capacity_gib=16), "A chip")
    markup = drawn_inside(picture)
    assert "all that a chip holds" in markup
    assert "more than the 16.0 GiB" in picture.alt
    filled = [heights(markup, part)[0] for part in ("weights", "kv", "activations", "overhead")]
    assert sum(filled) == pytest.approx(84, abs=0.5)


def test_what_lies_on_a_chip_and_what_it_does_is_said() -> None:
    picture = plan_chips([CHIPS], shape(), "A chip")
    assert "layers 1 to 40, 8 query heads, 16 experts a layer" in picture.alt
    assert "works 12.0 ms, idle 25 %, sends 4.80 MB" in picture.alt
    found = {str(row[1]): row[2] for row in picture.rows}
    assert found["all memory"] == 32 * GIB
    assert found["idle in a prefill"] == 0.5


def test_without_times_or_capacity_the_memory_is_drawn_all_the_same() -> None:
    bare = replace(CHIPS, decode_s=None, idle_share=None, prefill_s=None, prefill_idle_share=None)
    picture = plan_chips([bare], shape(capacity_gib=None), "A chip")
    assert "not timed" in drawn_inside(picture)
    assert "It is not timed." in picture.alt


def test_a_plan_that_does_not_divide_is_said_in_the_drawing() -> None:
    picture = plan_chips([], shape(3), "A chip")
    assert "No chip&#x27;s share is defined" in drawn_inside(picture)
    assert "cannot be divided so" in picture.alt


def points(*factors: float) -> list[SpeedUp]:
    return [SpeedUp(2**power, 0.01 / factor, factor) for power, factor in enumerate(factors)]


@pytest.mark.parametrize("tensor", [points(1.0), points(1.0, 1.6, 2.3, 3.0), points(1, 2, 4, 8, 16, 32, 64)])
@pytest.mark.parametrize("pipeline", [points(1.0), points(1.0, 0.97, 0.9, 0.7)])
def test_every_curve_is_drawn_inside_the_picture(tensor: list[SpeedUp], pipeline: list[SpeedUp]) -> None:
    picture = chip_speed_up(tensor, pipeline, MARKS)
    markup = drawn_inside(picture)
    assert markup.count("chips that share every layer: ") == len(tensor)
    assert "You said 8 ×." in picture.alt


def test_chips_that_do_not_hold_it_are_hollow_and_told() -> None:
    small = [replace(point, fits=point.chips > 2) for point in points(1.0, 1.9, 3.6)]
    picture = chip_speed_up(small, points(1.0), MARKS)
    assert drawn_inside(picture).count("but it does not fit") == 2
    assert "Fewer than 4 chips do not hold it." in picture.alt
    assert "worked out as if it did" in picture.markup()
    assert "worked out as if" not in chip_speed_up(points(1.0, 1.9), points(1.0), MARKS).markup()


def test_the_efficiency_stands_beside_each_point() -> None:
    markup = drawn_inside(chip_speed_up(points(1.0, 1.6, 2.4), points(1.0), MARKS))
    assert ">80 %<" in markup
    assert ">60 %<" in markup
    assert ">100 %<" not in markup


def test_examples_hold() -> None:
    assert doctest.testmod(plan_offers) == (0, 1)
