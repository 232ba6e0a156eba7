"""The same weights give the same logits as in Hugging Face transformers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGUFReader, dequantize
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from core.engine.engine import Engine
from core.engine.files.models import embedded_file
from core.engine.sampling import Sampling
from tests.engine.embedded import embedded
from tests.engine.forward import logits, random_ids, relative_error
from tests.engine.tiny import MODELS, save, tiny_model

pytestmark = pytest.mark.torch

TOLERANCE = 1e-4  # ten times tighter than what is promised


@pytest.mark.parametrize("name", MODELS)
def test_logits_of_tiny_models_match(name: str, tmp_path: Path) -> None:
    model = tiny_model(name)
    engine = Engine.load(save(model, tmp_path), weights="fp32", kv="fp32")
    ids = random_ids(24)
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0]
    pieces = [5, 1, 1, 9, 1, 7]
    for end, found in zip(np.cumsum(pieces), logits(engine, ids, pieces), strict=True):
        assert relative_error(found, expected[end - 1]) < TOLERANCE
    (whole,) = logits(engine, ids, [len(ids)])
    assert relative_error(whole, expected[-1]) < TOLERANCE


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = tiny_model("qwen3, untied, wide heads")
    directory = save(model, tmp_path, shard_size="100KB")
    assert len(list(directory.glob("*.safetensors"))) > 1
    ids = random_ids(8)
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0, -1]
    (found,) = logits(Engine.load(directory, weights="fp32", kv="fp32"), ids, [8])
    assert relative_error(found, expected) < TOLERANCE


def test_greedy_text_of_a_directory_is_that_of_transformers(tmp_path: Path) -> None:
    model = tiny_model("llama, tied, grouped")
    engine = Engine.load(save(model, tmp_path), weights="fp32", kv="fp32")
    ids = random_ids(6)
    expected = model.generate(
        torch.tensor([ids]), max_new_tokens=12, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    found = engine.generate(ids, Sampling(), max_tokens=12, end_tokens=frozenset())
    assert ids + found.token_ids == expected[0].tolist()


def test_logits_of_the_embedded_model_match() -> None:
    engine = embedded("fp32", "fp32")
    model = reference_model(embedded_file())
    ids = engine.encode("Why is the sky blue? It has 3 colours.", raw=False)
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0]
    pieces = [len(ids) - 4, 1, 1, 2]
    for end, found in zip(np.cumsum(pieces), logits(engine, ids, pieces), strict=True):
        assert relative_error(found, expected[end - 1]) < TOLERANCE


def reference_model(path: Path) -> Any:
    """The embedded file in transformers, read without any code of the engine."""
    config = LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        rms_norm_eps=1e-5,
        max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": 100_000.0},
        tie_word_embeddings=True,
    )
    with torch.device("meta"):  # no time is spent on weights that are replaced
        model: Any = LlamaForCausalLM(config)
    tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    state = {name: reference_tensor(tensors, name) for name in model.state_dict() if name != "lm_head.weight"}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, assign=True)
    model.model.rotary_emb = LlamaRotaryEmbedding(config)
    return model.eval()


def reference_tensor(tensors: dict[str, Any], name: str) -> Tensor:
    parts = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "model.layers": "blk",
    }
    for theirs, ours in parts.items():
        name = name.replace(theirs, ours)
    values = dequantize(tensors[name].data, tensors[name].tensor_type)
    if "attn_q" in name or "attn_k" in name:
        # llama.cpp keeps feature i of the first half at 2 i, and feature i of the second at 2 i + 1.
        half = 32
        order = [
            head * 64 + (2 * i if i < half else 2 * (i - half) + 1)
            for head in range(values.shape[0] // 64)
            for i in range(64)
        ]
        values = values[order]
    return torch.from_numpy(np.array(values))
