"""The Python that a picture offers draws the very same picture."""

import numpy as np
import pytest

from core.analytic.datasheet import machine_from
from core.analytic.memory import footprint
from core.analytic.roofline import RoofMark
from core.catalog.accelerators import accelerator
from core.catalog.models import model
from core.lesson.catalogue_case import catalogue_case
from core.lesson.quantities.answer_timeline import timeline
from core.lesson.quantities.kv_cache import work_by_step
from core.ui.export import to_csv
from core.ui.figures.answer_in_time import answer_in_time
from core.ui.figures.answer_timeline import timed_answer_timeline
from core.ui.figures.cached_work_and_memory import Guess, cached_work_and_memory
from core.ui.figures.memory_bar import memory_bar
from core.ui.figures.operator_times import operator_times
from core.ui.figures.pass_work import RatioScale, pass_work
from core.ui.figures.roofline import roofline
from core.ui.figures.step_times import step_times
from core.ui.figures.token_triangle import token_triangle
from core.ui.picture import Picture
from core.ui.redraw import Call, program
from core.ui.series import Gap

CASE = catalogue_case({"input_tokens": 64, "output_tokens": 8})
FOOTPRINT = footprint(
    model("llama-3.1-8b"),
    machine_from(accelerator("t4")),
    batch=1,
    context=9,
    weights="bf16",
    kv="bf16",
)
PICTURES = [
    memory_bar(FOOTPRINT, 'a "chip"\n'),
    answer_in_time(0.06, None, output_tokens=1),
    roofline([RoofMark("decode", 1.6e10, 1.5e10, 0.008)], 989e12, 3.35e12, "bf16"),
    operator_times([Gap("gate_up", "weights", 0.004)], "decode"),
    step_times(np.array([0.01, 0.011]), np.array([0.01])),
    timed_answer_timeline(timeline(CASE), 64, 7, 1),
    pass_work(timeline(CASE), 64, 1, RatioScale(1, 1000, None, 300.0, 250.0)),
    token_triangle(64, 7),
    cached_work_and_memory(work_by_step(CASE), 64, Guess("linearly", 1.0)),
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.title)
def test_the_program_makes_the_same_picture(picture: Picture, capsys: pytest.CaptureFixture[str]) -> None:
    assert picture.call is not None
    space: dict[str, Picture] = {}
    exec(program(picture.call), space)  # noqa: S102 - the program that the page offers
    assert capsys.readouterr().out == to_csv(picture.columns, picture.rows)
    assert space["picture"].markup() == picture.markup()


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(TypeError, match="A set cannot be written as Python"):
        program(Call(step_times, {"predicted_s": {1.0}}))
