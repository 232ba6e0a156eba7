"""Model types that nobody told us about: read by the shape of their config, with a visible note."""

from __future__ import annotations

from typing import Final

from core.catalog.families import FAMILIES
from core.catalog.families.family import Family
from core.catalog.fields import Fields
from core.errors import ConfigError

#: What a Llama-shaped config must state.
_NEEDED: Final = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
)
#: Beginnings of keys that speak of layers no Llama has: state spaces, linear attention, encoders.
_FOREIGN: Final = (
    *("mamba_", "ssm_", "linear_attn", "linear_num", "linear_key", "rwkv", "lru_", "rnn_", "conv_l", "xlstm"),
    *(
        "rescale_every",
        "qk_dim_factor",
        "zero_expert",
        "shared_block",
        "num_mem_blocks",
        "use_shared_attention",
    ),
    *("type_vocab_size", "encoder_", "decoder_layers", "d_kv", "relative_attention"),
)


def unknown_family(fields: Fields, model_type: str | None) -> tuple[str, Family]:
    """Choose how a config of an unknown model type is read, and note it.

    Raises:
        ConfigError: it lacks what a Llama-shaped model states, or has layers of another kind.
    """
    shown = "none" if model_type is None else repr(model_type[:60])
    foreign = [key for key in fields.values if str(key).lower().startswith(_FOREIGN)]
    if foreign:
        raise ConfigError(
            f"The layers behind {foreign[0][:60]} cannot be counted for the model type {shown}, which is not "
            "known here. Choose a model type that is."
        )
    like = _like(fields)
    needed = _NEEDED if model_type is not None else _NEEDED[:3]
    missing = [key for key in needed if not fields.has(key)]
    if like != "llama" and fields.has("moe_intermediate_size") and "intermediate_size" in missing:
        missing.remove("intermediate_size")
    if missing:
        raise ConfigError(
            f"A config of the model type {shown}, which is not known here, must state {', '.join(missing)}; "
            f"{'it is' if len(missing) == 1 else 'they are'} missing or null. Paste the whole config.json."
        )
    fields.notes.append(
        f"The model type {shown} is not known here; it is read as if it were {like}, and norms and biases "
        "that the config does not mention are not counted."
    )
    family = FAMILIES[like]
    return like, family if model_type is None else Family(family.read, tied=family.tied)


def _like(fields: Fields) -> str:
    """The model type whose layout a config with such keys most likely has."""
    if fields.has("kv_lora_rank"):
        return "deepseek_v3" if fields.has("num_experts") else "minicpm3"
    if not fields.has("num_experts"):
        return "llama"
    if fields.has("n_shared_experts"):
        return "deepseek"
    return "qwen3_moe" if fields.has("moe_intermediate_size") else "mixtral"
