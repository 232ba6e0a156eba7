"""The operator table against transformers' own models of many families, FLOP by FLOP.

Each tiny model runs one prefill under torch's counter with plain attention, which computes its whole
T x T rectangle; the table counts the pairs that a mask lets through. What else the counter sees and the
table does not, or the other way round, is written out for each family.
"""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from core.analytic.operators import operators
from core.analytic.table import Operators
from core.catalog.hf_config import read_config
from core.catalog.mixers import Attention, LatentAttention
from core.catalog.model import ModelSpec
from core.catalog.state_mixers import LinearAttention, Mamba, ShortConvolution

pytestmark = pytest.mark.torch

TOKENS = 12
SIZES: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}
WIDE = {**SIZES, "head_dim": 16}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32}
PATTERN = ["sliding_attention", "full_attention"] * 2
FAMILIES: dict[str, dict[str, Any]] = {
    "mixtral": {**WIDE, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None},
    "qwen3_moe": {**WIDE, **EXPERTS, "num_experts": 8, "decoder_sparse_step": 1, "mlp_only_layers": []},
    "deepseek_v3": {
        **SIZES,
        **EXPERTS,
        "num_key_value_heads": 8,
        "q_lora_rank": 24,
        "kv_lora_rank": 32,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
    },
    "gemma2": {**WIDE, "sliding_window": 5, "query_pre_attn_scalar": 16},
    "gemma3_text": {**WIDE, "sliding_window": 5, "query_pre_attn_scalar": 16, "layer_types": PATTERN},
    "phi": {**SIZES, "partial_rotary_factor": 0.5},
    "falcon": {
        "vocab_size": 128,
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "multi_query": True,
        "parallel_attn": True,
        "new_decoder_architecture": False,
        "bias": False,
        "alibi": False,
    },
    "gpt2": {
        "vocab_size": 128, "n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 256,
        "bos_token_id": 0, "eos_token_id": 0,
    },
    "glm4_moe": {
        **WIDE,
        **EXPERTS,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "partial_rotary_factor": 0.5,
        "use_qk_norm": True,
        "n_group": 1,
        "topk_group": 1,
    },
    "lfm2": {
        **SIZES,
        "conv_L_cache": 3,
        "conv_bias": False,
        "block_auto_adjust_ff_dim": False,
        "layer_types": ["conv", "full_attention"] * 2,
    },
    "jamba": {
        **SIZES,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "mamba_d_state": 4,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "mamba_dt_rank": 4,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
    },
    "qwen3_next": {
        **WIDE,
        **EXPERTS,
        "num_experts": 8,
        "shared_expert_intermediate_size": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
}  # fmt: skip


def counted(family: str) -> int:
    """FLOPs of one prefill, without the convolution and the kernel of linear attention.

    That kernel works in padded chunks of 64 tokens, so it does many times the recurrence's work here.
    """
    config = AutoConfig.for_model(family, **FAMILIES[family])
    config._experts_implementation = "eager"  # grouped kernels are unknown to the counter
    torch.manual_seed(0)
    build: Any = AutoModelForCausalLM.from_config
    model = build(config, attn_implementation="eager").eval()
    ids = torch.arange(TOKENS)[None]
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(ids, use_cache=False)
    flops = {name: sum(found.values()) for name, found in counter.get_flop_counts().items()}
    mixers = [name for name in flops if name.endswith(".linear_attn")]
    children = sum(flops[name] for name in flops if name.rpartition(".")[0] in mixers)
    kernels = sum(flops[name] for name in mixers) - children
    return int(flops["Global"] - kernels)


def described(family: str) -> tuple[ModelSpec, Operators]:
    spec = read_config({"model_type": family, **FAMILIES[family]})
    table = operators(
        spec,
        batch=1,
        new_tokens=TOKENS,
        context=TOKENS,
        weights="bf16",
        kv="bf16",
        logit_rows=TOKENS,
        latent="expanded",
    )
    return spec, table


def whole_rectangle(spec: ModelSpec) -> int:
    """Attention without a mask: scores and sums for every pair of tokens."""
    mixers = [layer.mixer for layer in spec.layers]
    return sum(
        2 * TOKENS**2 * (mixer.query_features + mixer.output_features)
        for mixer in mixers
        if isinstance(mixer, Attention | LatentAttention)
    )


def beside_the_table(spec: ModelSpec) -> int:
    """What the counter sees and the table leaves out, less the contrary.

    Convolutions of transformers compute ``kernel - 1`` positions more, and throw them away. The counter
    does not see the scan's update of a state, which is no matrix product there.
    """
    extra = 0
    for layer in spec.layers:
        mixer = layer.mixer
        if isinstance(mixer, ShortConvolution):
            extra += 2 * (mixer.kernel - 1) * mixer.channels * mixer.kernel
        elif isinstance(mixer, Mamba):
            extra += 2 * (mixer.kernel - 1) * mixer.inner_size * mixer.kernel
            extra -= 2 * TOKENS * mixer.state.recurrent
        elif isinstance(mixer, LinearAttention):
            extra -= 2 * TOKENS * (mixer.conv_channels * mixer.kernel + 3 * mixer.state.recurrent)
    return extra


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_a_prefill_does_the_flops_of_the_table(family: str) -> None:
    spec, table = described(family)
    by_name = table.by_name(table.flops)
    attention = by_name.pop("attention", 0.0)
    assert whole_rectangle(spec) >= attention
    expected = sum(float(flops) for flops in by_name.values()) + whole_rectangle(spec)
    assert counted(family) == expected + beside_the_table(spec)
