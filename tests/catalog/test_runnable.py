"""What the engine cannot run it refuses in one sentence, and no list offers it."""

import doctest

import pytest

from core.catalog import runnable
from core.catalog.hf_config import read_config
from core.catalog.models import catalogue, model, runnable_ids
from core.engine.files.checkpoint import expected_shapes
from core.errors import ConfigError

pytestmark = pytest.mark.torch

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}


@pytest.mark.parametrize(
    ("id", "kind"),
    [("gpt2", "gpt2"), ("deepseek-v3", "deepseek_v3"), ("gemma-2-2b", "gemma2"), ("mamba-2.8b", "mamba")],
)
def test_other_families_are_refused_in_a_sentence(id: str, kind: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"this one is {kind} and can only be counted\. Choose another model\.$"
    ):
        expected_shapes(model(id))


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "gelu"},
        {"model_type": "gemma9"},
        {"vision_config": {"model_type": "siglip_vision_model"}},
    ],
)
def test_so_is_a_llama_with_what_the_engine_lacks(change: dict[str, object]) -> None:
    assert runnable.is_runnable(read_config(LLAMA))
    assert not runnable.is_runnable(read_config({**LLAMA, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "gelu"},
        {"model_type": "granitemoe"},
        {"model_type": "qwen2_moe"},
        {"model_type": "gpt_oss"},
    ],
)
def test_so_is_a_mixture_with_more_than_a_router_and_gated_experts(change: dict[str, object]) -> None:
    mixture = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    assert runnable.is_runnable(read_config(mixture))
    assert not runnable.is_runnable(read_config({**mixture, **change}))


def test_every_offered_model_has_shapes_and_no_other_is_offered() -> None:
    offered = {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"}
    assert {catalogue()[key].model_type for key in runnable_ids()} == offered
    for key in runnable_ids():
        assert expected_shapes(model(key))["model.embed_tokens.weight"][1] == model(key).hidden_size


def test_examples_hold() -> None:
    assert doctest.testmod(runnable).failed == 0
