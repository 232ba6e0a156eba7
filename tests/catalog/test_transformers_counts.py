"""Every family counts what transformers builds from the same config.

Models are built on torch's meta device, which allocates nothing; the widths are the classes' own defaults,
the number of layers is small.
"""

import json
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core.analytic.params import count
from core.catalog.hf_config import read_config

pytestmark = pytest.mark.torch

#: Buffers that a checkpoint stores and that the project's totals include.
ROUTER_BIASES = ("e_score_correction_bias", "expert_bias")
#: Model type and what differs from its default config.
CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("mistral", {}),
    ("qwen2", {}),
    ("qwen3", {"attention_bias": True, "num_key_value_heads": 4, "head_dim": 96}),
    ("phi3", {}),
    ("glm", {"attention_bias": True}),
    ("glm4", {"attention_bias": True}),
    ("seed_oss", {"attention_bias": True, "attention_out_bias": True}),
    ("helium", {"attention_bias": True}),
    ("ernie4_5", {"use_bias": True}),
    ("smollm3", {}),
    ("granite", {"attention_bias": True}),
    ("olmo", {}),
    ("olmo2", {"num_key_value_heads": 8}),
    ("olmo3", {}),
    ("exaone4", {}),
    ("cohere", {"use_qk_norm": True, "num_key_value_heads": 8, "attention_bias": True}),
    ("cohere2", {}),
    ("starcoder2", {"use_bias": False, "tie_word_embeddings": False}),
    ("nemotron", {"num_key_value_heads": 8, "attention_bias": True, "mlp_bias": True}),
    ("arcee", {"attention_bias": True}),
    ("stablelm", {"qk_layernorm": True, "use_qkv_bias": True, "use_parallel_residual": True}),
    ("gemma", {}),
    ("gemma2", {}),
    ("gemma3_text", {"attention_bias": True}),
    ("gemma4_text", {"num_hidden_layers": 12, "num_kv_shared_layers": 6, "use_double_wide_mlp": True}),
    ("gemma4_text", {"attention_k_eq_v": True, "num_global_key_value_heads": 2}),
    (
        "gemma4_text",
        {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 100},
    ),
    ("gemma3n_text", {"num_hidden_layers": 10, "num_kv_shared_layers": 5, "intermediate_size": 1000}),
    ("gpt2", {"n_inner": 1000}),
    ("gpt_bigcode", {"multi_query": False}),
    ("gpt_bigcode", {}),
    ("gpt_neo", {"attention_types": [[["global", "local"], 3]]}),
    ("gpt_neox", {"attention_bias": False, "use_parallel_residual": False}),
    ("gptj", {}),
    ("phi", {"qk_layernorm": True}),
    ("opt", {"word_embed_proj_dim": 512, "do_layer_norm_before": False}),
    ("opt", {"layer_norm_elementwise_affine": False, "enable_bias": False}),
    ("bloom", {}),
    ("mpt", {}),
    (
        "falcon",
        {
            "new_decoder_architecture": True,
            "num_kv_heads": 8,
            "hidden_size": 8192,
            "num_attention_heads": 128,
        },
    ),
    ("falcon", {"parallel_attn": False, "bias": True, "multi_query": False, "alibi": True}),
    ("mixtral", {}),
    ("granitemoe", {"attention_bias": True}),
    ("phimoe", {"attention_bias": True, "lm_head_bias": True}),
    ("qwen2_moe", {"mlp_only_layers": [0, 3], "decoder_sparse_step": 2, "qkv_bias": False}),
    ("qwen3_moe", {"mlp_only_layers": [1]}),
    ("olmoe", {"num_key_value_heads": 4}),
    ("glm4_moe", {"use_qk_norm": True, "attention_bias": True, "head_dim": 128, "first_k_dense_replace": 3}),
    ("minimax_m2", {}),
    ("gpt_oss", {}),
    ("llama4_text", {"interleave_moe_layer_step": 2}),
    ("mimo_v2_flash", {}),
    ("deepseek_v2", {"first_k_dense_replace": 2, "num_experts_per_tok": 6}),
    ("deepseek_v3", {"q_lora_rank": None, "attention_bias": True}),
    ("deepseek_v3", {"first_k_dense_replace": 0, "n_shared_experts": 3}),
    ("deepseek_v32", {}),
    ("deepseek_v4", {}),
    ("glm_moe_dsa", {}),
    ("glm4_moe_lite", {}),
    ("minicpm3", {}),
    ("mamba", {"use_bias": True, "use_conv_bias": False, "time_step_rank": 33}),
    ("falcon_mamba", {}),
    ("mamba2", {"n_groups": 2, "use_bias": True}),
    ("jamba", {"mamba_proj_bias": True, "mamba_conv_bias": False}),
    ("jamba", {"num_experts": 1}),
    ("nemotron_h", {"hybrid_override_pattern": "ME*-EM", "moe_latent_size": 512}),
    ("recurrent_gemma", {"num_key_value_heads": 1, "attention_bias": True, "lru_width": 2000}),
    ("recurrent_gemma", {"block_types": ["attention", "recurrent"]}),
    ("bamba", {"attn_layer_indices": [1]}),
    ("falcon_h1", {"mamba_rms_norm": True, "mamba_n_groups": 2, "attention_bias": True}),
    (
        "falcon_h1",
        {"mamba_d_ssm": 2048, "mamba_d_head": 16, "projectors_bias": True, "mamba_proj_bias": True},
    ),
    ("granitemoehybrid", {"num_local_experts": 0}),
    ("granitemoehybrid", {}),
    ("qwen3_next", {"mlp_only_layers": [2]}),
    ("qwen3_5_text", {"attention_bias": True}),
    ("kimi_linear", {"q_lora_rank": 512}),
    ("minimax", {"num_key_value_heads": 4}),
    ("lfm2", {"full_attn_idxs": [2, 5]}),
    ("apertus", {"num_key_value_heads": 8}),
    ("bitnet", {}),
    ("nanochat", {}),
    ("vaultgemma", {}),
    ("persimmon", {}),
    ("diffllama", {"num_key_value_heads": 8}),
    ("jais2", {}),
    ("cwm", {}),
    ("internlm3", {}),
    ("youtu", {}),
    ("ernie4_5_moe", {"use_bias": True, "moe_layer_interval": 2, "moe_layer_end_index": 4}),
    ("afmoe", {"num_dense_layers": 2, "num_key_value_heads": 4}),
    ("exaone_moe", {"num_key_value_heads": 8}),
    ("flex_olmo", {}),
    ("granitemoeshared", {"shared_intermediate_size": 1000, "attention_bias": True}),
    ("gemma3", {}),
    ("gemma4", {}),
    ("llama4", {}),
    ("qwen3_5", {}),
    ("qwen3_vl", {}),
    ("mistral3", {}),
    ("qwen2_vl", {}),
    ("kimi_k25", {"first_k_dense_replace": 3}),
]
LAYERS = 6
#: How a family's classes call the number of layers.
LAYER_KEYS = {
    "gpt2": "n_layer",
    "gpt_bigcode": "n_layer",
    "gptj": "n_layer",
    "bloom": "n_layer",
    "mpt": "n_layers",
}
COMPOSED = {"gemma3", "gemma4", "llama4", "qwen3_5", "qwen3_vl", "mistral3", "qwen2_vl", "kimi_k25"}


def config_of(model_type: str, changes: dict[str, Any]) -> Any:
    key = LAYER_KEYS.get(model_type, "num_layers" if model_type == "gpt_neo" else "num_hidden_layers")
    classes: Any = CONFIG_MAPPING
    if model_type in COMPOSED:
        return classes[model_type](text_config={key: LAYERS, **changes})
    return classes[model_type](**{key: LAYERS, **changes})


def built(config: Any, model_type: str) -> nn.Module:
    kind: Any = AutoModelForImageTextToText if model_type in COMPOSED else AutoModelForCausalLM
    with torch.device("meta"):
        model: nn.Module = kind.from_config(config)
    return model


def parameters(model: nn.Module) -> int:
    biases = (value for name, value in model.named_buffers() if name.endswith(ROUTER_BIASES))
    return sum(value.numel() for value in model.parameters()) + sum(value.numel() for value in biases)


@pytest.mark.parametrize(
    ("model_type", "changes"), CONFIGS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_count_is_that_of_transformers(model_type: str, changes: dict[str, Any]) -> None:
    config = config_of(model_type, changes)
    written = json.loads(config.to_json_string(use_diff=False))
    counted = count(read_config(written)).total
    model = built(config, model_type)
    stored = parameters(model)
    if model_type == "nemotron_h":  # its published files have no router biases
        stored = sum(value.numel() for value in model.parameters())
    assert counted == stored
