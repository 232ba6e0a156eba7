"""Which models the app's own engine can run; all others can only be counted."""

from __future__ import annotations

from typing import Final

from core.catalog.model import Attention, DenseMLP, Layer, ModelSpec, MoE

#: The families whose arithmetic the engine has; others may differ in what no shape tells.
RUNNABLE: Final = ("llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe")


def is_runnable(spec: ModelSpec) -> bool:
    """Whether it is of a family that the engine knows, with attention and a gated SiLU MLP in every layer.

    Experts that are such MLPs will do, where nothing else belongs to them.

    >>> from core.catalog.models import model
    >>> is_runnable(model("llama-3.1-8b"))
    True
    """
    kinds = dict.fromkeys(spec.layers)
    return spec.model_type in RUNNABLE and not spec.towers and all(_is_plain(layer) for layer in kinds)


def _is_plain(layer: Layer) -> bool:
    mixer, part = layer.mixer, layer.feed_forward
    return (
        isinstance(mixer, Attention)
        and layer == Layer(mixer, part)
        and mixer == Attention(*_shape(mixer))
        and (_is_gated(part) if isinstance(part, DenseMLP) else isinstance(part, MoE) and _is_mixture(part))
    )


def _is_gated(mlp: DenseMLP) -> bool:
    return mlp.gated and mlp.activation in {"silu", "swish"}


def _is_mixture(part: MoE) -> bool:
    """Nothing but a router without values of its own and experts without biases."""
    bare = MoE(part.num_experts, part.experts_per_token, part.expert, normalised=part.normalised)
    return part == bare and not part.expert.bias and _is_gated(part.expert)


def _shape(mixer: Attention) -> tuple[int, int, int, bool, bool, bool, int | None]:
    """All of an attention that the engine computes."""
    heads = (mixer.num_heads, mixer.num_kv_heads, mixer.head_dim)
    return (*heads, mixer.qkv_bias, mixer.output_bias, mixer.qk_norm, mixer.window)
