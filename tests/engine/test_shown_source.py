"""What the lab shows as an operator's source is the very function that an engine calls."""

import inspect
from typing import Any

import pytest

from core.engine.engine import Engine
from core.engine.native.step import MOST_ROWS, MOST_TILED_ROWS, native_step
from core.engine.sampling import Sampler
from core.ui.lab import engine_source
from core.ui.lab.operator_source import CPP, _method
from tests.engine.small import small_engine
from tests.engine.test_experts import mixture

pytestmark = pytest.mark.torch

WEIGHTS = ["fp32", "bf16", "int8", "int8-dynamic", "int4", "fp8-weight-only"]


def shown(operator: str) -> str:
    source = engine_source.python_source("", *_method(operator))
    assert source is not None, operator
    return source.text


def called(engine: Engine) -> dict[str, Any]:
    return dict(engine.model.operators())


@pytest.mark.parametrize("engine", [small_engine(), small_engine(model_type="qwen3"), mixture()])
def test_every_operator_shows_the_method_that_is_called(engine: Engine) -> None:
    for operator, method in called(engine).items():
        assert shown(operator) == inspect.getsource(method), operator
    assert shown("sample") == inspect.getsource(Sampler.choose)


def test_a_step_in_one_call_has_a_function_for_each_of_its_operators() -> None:
    step = native_step(small_engine(weights="int4", model_type="qwen3").model)
    if step is None:
        pytest.skip("A step in C++ needs a C++ compiler.")
    assert set(step.operators) <= set(CPP)


def test_the_limits_of_a_step_in_one_call_are_the_engines() -> None:
    found = [engine_source.number("core/engine/native/step.py", n) for n in ("MOST_ROWS", "MOST_TILED_ROWS")]
    assert found == [MOST_ROWS, MOST_TILED_ROWS]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_kernel_that_a_record_may_name_has_its_product(weights: str) -> None:
    kernel: Any = small_engine(weights=weights).model.blocks[0].qkv_linear
    few_name = getattr(kernel, "few_name", kernel.name)
    source = engine_source.product_source("", few_name, few=True)
    assert source is not None
    method = getattr(kernel, "few_rows", kernel.__call__)
    assert source.text == inspect.getsource(method)
