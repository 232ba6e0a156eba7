"""The numbers of page 1: against the operator table, by hand, and as laws over every model."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.operators import operators
from core.analytic.params import count
from core.catalog.models import catalogue
from core.errors import ConfigError
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.parts import parts
from core.lesson.quantities import one_token
from core.lesson.quantities.token_work import AS_IT_IS, DEEP, UNSHARED, WIDE, work_by_operator
from tests.lesson.diagnosed import is_wrong_by_a_factor

values: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"model": st.sampled_from(list(catalogue())), "input_tokens": st.integers(1, 200_000)}
)


def test_one_token_of_eight_billion_parameters() -> None:
    case = catalogue_case({})
    by_hand = 2 * 7_504_658_432 + 4 * 4096 * 2048 * 32
    assert one_token.token_flops(case).value * 1e9 == pytest.approx(by_hand, rel=1e-12)
    assert one_token.weights_in_use(case).value == pytest.approx(7.504658432)
    assert one_token.mlp_flops(case).value * 1e6 == 2 * 3 * 4096 * 14_336
    assert one_token.token_flops(case).text == "16.1 GFLOP"


def test_attention_by_prompt_length() -> None:
    case = catalogue_case({})
    assert one_token.prompt_attention_share(case).text == "3.71 %"
    assert one_token.long_prompt_attention_share(case).text == "38.1 %"
    assert one_token.book_attention_share(case).text == "71.1 %"
    # 2 * 6,979,321,856 weights in the layers against 4 * 4,096 * 32 for each token looked at, half of them.
    assert one_token.equal_prompt(case).value == pytest.approx(
        2 * 2 * 6_979_321_856 / (4 * 4096 * 32), rel=1e-3
    )


@given(values)
def test_operators_add_up_to_the_table_and_to_the_parameters(given: dict[str, Any]) -> None:
    case = catalogue_case(given)
    works = work_by_operator(case)
    table = operators(
        case.model, batch=1, new_tokens=1, context=given["input_tokens"], weights="bf16", kv="bf16"
    )
    assert sum(work.flops for work in works) == pytest.approx(float(table.total("flops")))
    assert sum(work.bytes for work in works) == pytest.approx(float(table.streamed_bytes.sum()))
    counted = sum(work.parameters for work in works)
    total = count(case.model).total
    assert 0 <= total - counted <= 0.03 * total  # scalars and towers belong to no operator
    assert [work.name for work in works] == list(dict.fromkeys(table.names))
    assert list(parts(lessons()["one_token"], case)) == [work.name for work in works]


@given(values)
def test_two_flops_a_weight_and_attention_beside_them(given: dict[str, Any]) -> None:
    case = catalogue_case(given)
    weights, attention = one_token.weights_in_use(case).value, one_token.attention_flops(case).value
    assert one_token.token_flops(case).value == pytest.approx(2 * weights + attention)
    assert attention > 0


def shares(shape: str, model: str = "llama-3.1-8b") -> dict[str, float]:
    case = catalogue_case({"shape": shape, "model": model})
    return {work.name: work.flops for work in work_by_operator(case)}


def test_shapes_change_what_they_say() -> None:
    base, wide, deep, unshared = (shares(shape) for shape in (AS_IT_IS, WIDE, DEEP, UNSHARED))
    assert wide["gate_up"] == 4 * base["gate_up"]
    assert wide["attention"] == 2 * base["attention"]
    assert deep["gate_up"] == 2 * base["gate_up"]
    assert deep["lm_head"] == base["lm_head"]
    assert unshared["attention"] == base["attention"]  # sharing saves bytes
    assert unshared["qkv"] == base["qkv"] * 2
    cache = [
        sum(work.cache_bytes for work in work_by_operator(catalogue_case({"shape": shape})))
        for shape in (AS_IT_IS, UNSHARED)
    ]
    assert cache[1] == 4 * cache[0]


@pytest.mark.parametrize("model", list(catalogue()))
@pytest.mark.parametrize("shape", [AS_IT_IS, WIDE, DEEP, UNSHARED])
def test_every_model_of_the_catalogue_is_counted_or_a_sentence_says_why_not(model: str, shape: str) -> None:
    case = catalogue_case({"model": model, "shape": shape, "mfu": 0.5})
    for name, quantity in one_token.QUANTITIES.items():
        try:
            assert np.isfinite(quantity(case).value), name
        except ConfigError as gap:
            assert str(gap).endswith(".")


def test_a_window_never_lets_attention_overtake() -> None:
    case = catalogue_case({"model": "mistral-7b-v0.1"})
    with pytest.raises(ConfigError, match="with windows it does not"):
        one_token.equal_prompt(case)


@pytest.mark.parametrize(
    ("exercise", "factor", "says"),
    [
        ("mlp_flops", 1 / 2, "a multiply and an add are two FLOPs"),
        ("mlp_flops", 2 / 3, "That is two matrices"),
        ("mlp_flops", 1 / 3, "That is one matrix of the 3"),
        ("equal_prompt", 1 / 2, "not every token looks at the whole prompt"),
        ("equal_prompt", 2, "halve once, for the mask"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: str, factor: float, says: str) -> None:
    is_wrong_by_a_factor(lessons()["one_token"], exercise, factor, says, seed=5)
