"""The numbers of pages 9 and 14 by hand, and what their trials ask the lab for."""

from typing import Any

import pytest

from core.errors import RequestError
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.quantities import batching, paged_attention
from core.lesson.quantities.served_trace import ANSWERS, WAYS
from core.lesson.serving_trial import experiment_of, request_of

BATCHING, PAGING = lessons()["batching"], lessons()["paged_attention"]


def having(lesson: Any, **values: Any) -> LessonCase:
    return catalogue_case({**lesson.base, **values})


def test_the_running_numbers_of_batching() -> None:
    case = BATCHING.base_case
    assert (batching.static_steps(case).value, batching.continuous_steps(case).value) == (37, 25)
    assert batching.used_static(case).text == "45.9 %"
    assert batching.used_continuous(case).text == "68 %"
    assert batching.answer_tokens(case).text == "68 tokens"
    assert batching.fewest_steps(case).value == 20
    assert batching.gain(case).value == 37 / 25


def test_all_spreads_have_the_same_tokens_and_every_policy_has_its_reason() -> None:
    assert {sum(lengths) for lengths in ANSWERS.values()} == {68}
    late = having(BATCHING, spacing=6)
    waits = {policy: batching.first_token_steps(late, policy) for policy in WAYS}
    assert waits["continuous"] < waits["dynamic"] < waits["static"], "company is waited for only so long"
    assert batching.largest_step(BATCHING.base_case, "continuous, chunked") == 16
    assert batching.largest_step(BATCHING.base_case, "continuous") == 48


def test_the_running_numbers_of_paging() -> None:
    case = PAGING.base_case
    assert paged_attention.reserved_waste(case).text == "70.7 %"
    assert (paged_attention.block_of_token(case).value, paged_attention.offset(case).value) == (9, 5)
    assert paged_attention.slot(case).value == 149
    assert paged_attention.tail_waste(case).value == 7.5
    assert paged_attention.paged_steps(case).value < paged_attention.contiguous_steps(case).value
    assert paged_attention.paged_waste(case).value < 25
    assert paged_attention.contiguous_waste(case).value > 50


def test_larger_blocks_waste_more_and_blocks_of_one_waste_nothing() -> None:
    wastes = [
        paged_attention.paged_waste(having(PAGING, block=block)).value for block in ("1", "4", "16", "64")
    ]
    assert wastes[0] == 0
    assert wastes == sorted(wastes)


@pytest.mark.parametrize("seed", range(12))
def test_each_wrong_answer_of_an_exercise_has_its_own_reason(seed: int) -> None:
    instance = draw(BATCHING, BATCHING.exercises[0], seed)
    right = instance.answer.value
    assert instance.check(f"{right:.4g}").correct
    idle = f"{100 - right:.4g}"
    assert "gives none" in instance.check(idle).sentence or abs(100 - 2 * right) < 0.05 * right
    assert "percent" in instance.check(f"{right / 100:.4g}").sentence


def test_a_trial_serves_what_the_picture_shows() -> None:
    request = request_of(BATCHING, having(BATCHING, policy="dynamic", seats=3, answers=""))
    assert [way.policy for way in request.ways] == ["static", "continuous", "dynamic"]
    assert request.places == 3
    paging = request_of(PAGING, having(PAGING, block="8", shared=16))
    assert [way.cache for way in paging.ways] == ["paged", "contiguous"]
    assert (paging.page_tokens, paging.trace.shared_tokens) == (8, 16)
    with pytest.raises(RequestError, match="kv_cache does not"):
        request_of(lessons()["kv_cache"], BATCHING.base_case)


@pytest.mark.parametrize("block", ["1", "4", "8", "16", "32", "64"])
@pytest.mark.parametrize(("spacing", "shared"), [(0, 0), (8, 40)])
@pytest.mark.parametrize("spread", ["mixed", "all alike"])
def test_every_setting_of_paging_is_within_the_labs_limits(
    block: str, spacing: int, shared: int, spread: str
) -> None:
    case = having(PAGING, block=block, spacing=spacing, shared=shared, spread=spread)
    experiment_of(PAGING, case)
    request_of(PAGING, case).validate()


@pytest.mark.parametrize("seats", [1, 8])
@pytest.mark.parametrize("policy", WAYS)
@pytest.mark.parametrize("spacing", [0, 6])
def test_every_setting_of_batching_is_within_the_labs_limits(seats: int, policy: str, spacing: int) -> None:
    case = having(BATCHING, seats=seats, policy=policy, spacing=spacing, answers="")
    request_of(BATCHING, case).validate()
