"""The numbers of page 5 against the memory table, in both kinds of gigabyte."""

import numpy as np
import pytest

from core.analytic.planner_room import Case, users_that_fit
from core.errors import FormatError
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.quantities.will_it_fit import conversations_that_fit
from tests.lesson.diagnosed import is_diagnosed

LESSON = lessons()["will_it_fit"]


def case(**values: str | int) -> LessonCase:
    return catalogue_case({**LESSON.base, **values})


def value(name: str, now: LessonCase) -> float:
    return LESSON.quantities[name](now).value


def test_the_running_model_on_the_running_chip() -> None:
    now = case()
    assert value("usable_mib", now) == 81_559
    assert value("usable_gb", now) == pytest.approx(81_559 * 2**20 / 1e9)
    assert value("budget", now) == pytest.approx(0.9 * 81_559 * 2**20 / 1e9)
    assert value("box", now) == 80
    assert value("weights", now) == pytest.approx(16.060522496)
    assert value("weights_gib", now) == pytest.approx(16.060522496e9 / 2**30)
    assert value("one_cache", now) == pytest.approx(8192 * 131_072 / 1e9)
    room = value("budget", now) - value("weights", now) - value("reserve", now)
    assert value("conversations", now) == room // value("one_cache", now) == 52


@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", "qwen2.5-14b", "gemma-3-27b", "deepseek-v2-lite", "mamba-2.8b"]
)
@pytest.mark.parametrize("context", [8192, 16_384, 65_536])
@pytest.mark.parametrize("weights", ["bf16", "int4"])
def test_they_are_as_many_as_the_planner_says(model: str, context: int, weights: str) -> None:
    """On all of the memory; the planner has no share. Logits of very many users may cost it a few."""
    now = case(model=model, context=context, share=100, weights=weights)
    scenario = now.having({"input_tokens": context - 1, "output_tokens": 1}).scenario
    planned = users_that_fit(Case(scenario, now.model, now.machine))
    assert planned is not None
    assert planned <= value("conversations", now) <= 1.02 * planned + 1
    if planned < 200:
        assert value("conversations", now) == planned


def test_one_call_gives_a_sweep() -> None:
    contexts = np.array([1024.0, 8192.0, 131_072.0])
    swept = conversations_that_fit(case(), contexts)
    each = [value("conversations", case(context=int(tokens))) for tokens in contexts]
    assert swept.tolist() == each
    assert each == sorted(each, reverse=True)


def test_none_fits_where_the_weights_alone_are_too_large() -> None:
    assert value("conversations", case(model="llama-3.1-70b")) == 0
    assert value("conversations", case(model="llama-3.1-70b", weights="int4")) > 0


def test_slips_are_further_from_the_answer_than_its_tolerance() -> None:
    now = case()
    assert value("conversations_without_reserve", now) == 56
    assert value("conversations_by_parameters", now) == 64
    assert value("conversations_of_half_the_weights", now) == 60
    assert value("conversations_by_hidden_size", now) == 52 // 4


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("conversations_without_reserve", "nothing for a pass"),
        ("conversations_by_parameters", "weights and caches only"),
        ("conversations_of_mib_as_mb", "MiB for MB"),
        ("conversations_by_hidden_size", "width of the keys"),
    ],
)
def test_wrong_answers_are_diagnosed(name: str, says: str) -> None:
    is_diagnosed(LESSON, 0, name, says, digits=".0f")


def test_a_chip_whose_memory_nobody_published_is_a_sentence() -> None:
    with pytest.raises(FormatError, match="What NVIDIA L40 offers to software must be known"):
        value("conversations", case(accelerator="l40"))


def test_units_are_told_apart() -> None:
    instance = draw(LESSON, LESSON.exercises[1], 0)
    verdict = instance.check(f"{instance.answer.value * 2**30 / 1e9:.4g}")
    assert not verdict.correct
    assert "GB" in verdict.sentence
