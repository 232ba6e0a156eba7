"""The source that is shown for an operator is that of the function that the engine runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from core.ui.lab import engine_source
from core.ui.lab.operator_source import CPP, sources
from core.ui.source import ROOT
from tests.lab import examples

OURS = "int4 product in C++ up to 64 rows, then int4 to bf16, F.linear"
NAMES = ("qkv", "output", "gate_up", "down", "lm_head")


def record(kernel: str, **others: str) -> object:
    return replace(examples.record(), kernels={**dict.fromkeys(NAMES, kernel), **others})


@pytest.mark.parametrize("operator", CPP)
def test_a_step_in_one_call_shows_its_function_in_cpp(operator: str) -> None:
    (found,) = sources(record(OURS), "decode", operator)  # type: ignore[arg-type]
    assert found.path.endswith("cpu_step.cpp")
    assert f"{CPP[operator]}(" in found.text.partition("\n")[0]
    assert found.text.count("{") == found.text.count("}") > 0
    lines = (Path(ROOT) / found.path).read_text().splitlines()
    assert lines[found.line - 1] == found.text.partition("\n")[0]


def test_one_kernel_of_another_kind_shows_the_operator_and_its_product() -> None:
    mixed = record(OURS, down="F.linear")
    own, product = sources(mixed, "decode", "down")  # type: ignore[arg-type]
    assert (own.name, own.path) == ("MLP.down", "core/engine/feed_forward.py")
    assert product.name == "PlainLinear.__call__"
    _, product = sources(mixed, "decode", "qkv")  # type: ignore[arg-type]
    assert product.name == "NativeNibbleLinear.few_rows"


def test_a_long_prompt_shows_the_product_for_many_rows() -> None:
    long = record(OURS)
    first = replace(long.steps[0], new_tokens=500)  # type: ignore[attr-defined]
    long = replace(long, steps=(first, *long.steps[1:]))  # type: ignore[attr-defined, type-var]
    own, product = sources(long, "prefill", "qkv")  # type: ignore[arg-type]
    assert (own.name, product.name) == ("Block.qkv", "NativeNibbleLinear.many_rows")
    assert sources(long, "prefill", "lm_head")[1].name == "NativeNibbleLinear.few_rows"  # type: ignore[arg-type]


def test_a_product_that_a_class_inherits_is_found_where_it_is_written() -> None:
    found = engine_source.product_source("it", "int8 to bf16, F.linear", few=False)
    assert found is not None
    assert found.name == "ByteLinear.many_rows"


def test_an_operator_of_another_version_is_no_source() -> None:
    assert sources(record("F.linear"), "decode", "no_such") == []  # type: ignore[arg-type]
    assert engine_source.cpp_source("it", "core/engine/native/cpu_step.cpp", "no_such") is None
    with pytest.raises(LookupError, match="gives no number"):
        engine_source.number("core/engine/native/step.py", "NO_SUCH")
