"""Files from strangers: each is refused with one sentence, whatever they hold."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.engine.choice import _read
from core.engine.engine import Engine
from core.engine.files.models import open_checkpoint
from core.engine.files.text import ModelText
from core.errors import CheckpointError
from tests.engine import tiny

pytestmark = pytest.mark.torch


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tiny.save(tiny.tiny_model("qwen2, untied"), tmp_path / "model")


def change(directory: Path, name: str, tensor: torch.Tensor) -> None:
    file = directory / "model.safetensors"
    save_file(load_file(file) | {name: tensor}, file)


QUERY = "model.layers.0.self_attn.q_proj.weight"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite(directory: Path, bad: float) -> None:
    weight = load_file(directory / "model.safetensors")[QUERY]
    weight[0, 0] = bad
    change(directory, QUERY, weight)
    with pytest.raises(CheckpointError, match=r"q_proj\.weight must hold finite numbers"):
        Engine.load(directory, weights="fp32", kv="fp32")


@pytest.mark.parametrize("dtype", [torch.int64, torch.float8_e4m3fn, torch.bool])
def test_numbers_in_another_format(directory: Path, dtype: torch.dtype) -> None:
    weight = load_file(directory / "model.safetensors")[QUERY]
    change(directory, QUERY, weight.to(dtype))
    with pytest.raises(CheckpointError, match="must be fp32, bf16 or fp16; it is"):
        Engine.load(directory, weights="fp32", kv="fp32")


def test_shards_outside_the_directory(directory: Path) -> None:
    index: dict[str, Any] = {"weight_map": {QUERY: "../../etc/passwd"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="must name files beside it"):
        open_checkpoint(directory)


def test_a_name_too_long_to_be_a_path() -> None:
    with pytest.raises(CheckpointError, match="The model must be smollm2-135m"):
        open_checkpoint("x" * 5000)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 / 0 }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ 'é'.encode('ascii') }}",
        "{{ messages.missing.deeper }}",
    ],
)
def test_templates_that_fail(directory: Path, template: str) -> None:
    text = Engine.load(directory, weights="fp32", kv="fp32").text
    assert isinstance(text, ModelText)
    with pytest.raises(CheckpointError, match="chat template must render"):
        ModelText(text.tokenizer, template, {}).render("hello")


@pytest.mark.parametrize("content", ["[" * 100_000, "not json", "[1]", '{"q": -99}'])
def test_damaged_kernel_choices_are_timed_again(tmp_path: Path, content: str) -> None:
    file = tmp_path / "choices.json"
    file.write_text(content)
    assert _read(file) == {}
