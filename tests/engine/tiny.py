"""Tiny random models in Hugging Face's own layout, written by transformers itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

SIZES: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 256,
    "eos_token_id": 257,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
EXPERTS: dict[str, Any] = {
    "num_experts": 6,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 48,
    "head_dim": 16,
}
TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)

MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "llama, tied, grouped": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)),
    "llama, untied, biases, wide heads": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, tie_word_embeddings=False, attention_bias=True, mlp_bias=True, head_dim=32)
    ),
    "llama, one key head, stretched": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES | {"num_key_value_heads": 1}, rope_parameters=LLAMA3)
    ),
    "mistral, window": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=6)),
    "qwen2, untied": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=False)),
    "qwen2, tied, one query a key": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SIZES | {"num_key_value_heads": 4}, tie_word_embeddings=True)
    ),
    "qwen3, tied": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, tie_word_embeddings=True, head_dim=16)),
    "qwen3, untied, wide heads": lambda: Qwen3ForCausalLM(
        Qwen3Config(**SIZES, tie_word_embeddings=False, head_dim=32)
    ),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=5, num_experts_per_tok=2)),
    "qwen3 experts, shares of the picked": lambda: Qwen3MoeForCausalLM(
        Qwen3MoeConfig(**SIZES, **EXPERTS, norm_topk_prob=True, tie_word_embeddings=True)
    ),
    "qwen3 experts, shares of all, a dense layer": lambda: Qwen3MoeForCausalLM(
        Qwen3MoeConfig(**SIZES, **EXPERTS, norm_topk_prob=False, mlp_only_layers=[1])
    ),
}


def tiny_model(name: str) -> Any:
    """One of ``MODELS``, every parameter random, norms and biases too."""
    torch.manual_seed(0)
    model: Any = MODELS[name]()
    model.eval()
    model.set_attn_implementation("eager")  # the plainest of its implementations is the oracle
    for parameter in model.parameters():
        offset = 1.0 if parameter.ndim == 1 else 0.0
        parameter.data = torch.randn_like(parameter) * 0.2 + offset
    return model


def save(model: PreTrainedModel, directory: Path, *, shard_size: str = "1GB") -> Path:
    """Write a whole directory: config, weights, tokenizer and template."""
    model.save_pretrained(directory, max_shard_size=shard_size)
    byte_tokenizer().save(str(directory / "tokenizer.json"))
    settings = {"chat_template": TEMPLATE, "bos_token": "<s>", "eos_token": {"content": "</s>"}}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    return directory


def byte_tokenizer() -> Tokenizer:
    """A byte-level tokenizer without merges: 256 bytes and two special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<s>", special=True), AddedToken("</s>", special=True)])
    return tokenizer
