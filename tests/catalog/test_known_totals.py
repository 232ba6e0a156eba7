"""Totals of the hub for models that are not in the catalogue: the same readers count them exactly."""

from typing import Any

import pytest

from core.analytic.params import count
from core.catalog.hf_config import read_config

QWEN2_7B: dict[str, Any] = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
PATCHES = {"depth": 32, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
#: Source, total (safetensors.total of the hub or the model card), and config.
KNOWN: dict[str, tuple[int, dict[str, Any]]] = {
    "https://huggingface.co/THUDM/chatglm3-6b": (
        6_243_584_000,
        {
            "model_type": "chatglm",
            "add_qkv_bias": True,
            "ffn_hidden_size": 13696,
            "hidden_size": 4096,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "num_attention_heads": 32,
            "num_layers": 28,
            "padded_vocab_size": 65024,
            "seq_length": 8192,
        },
    ),
    "https://huggingface.co/Qwen/Qwen-7B": (
        7_721_324_544,
        {
            "model_type": "qwen",
            "hidden_size": 4096,
            "intermediate_size": 22016,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "kv_channels": 128,
            "no_bias": True,
            "vocab_size": 151936,
        },
    ),
    "https://huggingface.co/deepseek-ai/deepseek-moe-16b-base": (
        16_375_728_128,
        {
            "model_type": "deepseek",
            "hidden_size": 2048,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "num_hidden_layers": 28,
            "vocab_size": 102400,
        },
    ),
    "https://huggingface.co/apple/OpenELM-270M": (
        271_527_168,
        {
            "model_type": "openelm",
            "model_dim": 1280,
            "head_dim": 64,
            "num_transformer_layers": 16,
            "num_query_heads": [12] * 5 + [16] * 7 + [20] * 4,
            "num_kv_heads": [3] * 5 + [4] * 7 + [5] * 4,
            "ffn_multipliers": [
                *(0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13),
                *(2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0),
            ],
            "ffn_dim_divisor": 256,
            "vocab_size": 32000,
        },
    ),
    "https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct": (
        8_292_166_656,
        {
            **QWEN2_7B,
            "model_type": "qwen2_5_vl",
            "vision_config": {
                **PATCHES,
                "hidden_size": 1280,
                "intermediate_size": 3420,
                "out_hidden_size": 3584,
            },
        },
    ),
    "https://huggingface.co/Qwen/Qwen2-VL-7B-Instruct": (
        8_291_375_616,
        {
            **QWEN2_7B,
            "model_type": "qwen2_vl",
            "vision_config": {**PATCHES, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584},
        },
    ),
    "https://huggingface.co/mistralai/Mistral-Small-3.1-24B-Instruct-2503": (
        24_011_361_280,
        {
            "model_type": "mistral3",
            "spatial_merge_size": 2,
            "text_config": {
                "model_type": "mistral",
                "head_dim": 128,
                "hidden_size": 5120,
                "intermediate_size": 32768,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "num_hidden_layers": 40,
                "vocab_size": 131072,
            },
            "vision_config": {
                "model_type": "pixtral",
                "hidden_size": 1024,
                "intermediate_size": 4096,
                "num_hidden_layers": 24,
                "patch_size": 14,
            },
        },
    ),
}


@pytest.mark.parametrize(("total", "config"), KNOWN.values(), ids=[source.split("/")[-1] for source in KNOWN])
def test_the_count_is_the_hubs(total: int, config: dict[str, Any]) -> None:
    assert count(read_config(config)).total == total


def test_a_searched_model_leaves_parts_out() -> None:
    block = {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.5}}
    without = {"attention": {"no_op": True}, "ffn": {"ffn_mult": 3.0}}
    spec = read_config(
        {
            "model_type": "nemotron-nas",
            "hidden_size": 512,
            "num_attention_heads": 8,
            "num_hidden_layers": 2,
            "vocab_size": 100,
            "block_configs": [block, without],
        }
    )
    assert spec.layers[0].attention.num_kv_heads == 2
    assert [layer.mlp.intermediate_size for layer in spec.layers] == [512, 1024]
    assert spec.layers[1].mixer is None
    assert spec.layers[1].norms == ("mlp_norm",)
