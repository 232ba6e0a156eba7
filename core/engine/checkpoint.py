"""A model as it is read: its shape, its tensors by name, and how it writes and reads text.

Tensors carry the names that Hugging Face gives them, whatever file they came from; ``LAYER_PARTS``
says which of them each operator of the engine fuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from core.catalog.model import Layer, ModelSpec
from core.catalog.runnable import RUNNABLE, is_runnable
from core.engine.text import TextCodec
from core.engine.weight import Weight
from core.errors import CheckpointError, ConfigError

#: Operator -> the projections whose rows it fuses, in order.
LAYER_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}
EMBEDDING: Final = "model.embed_tokens.weight"
FINAL_NORM: Final = "model.norm.weight"
HEAD: Final = "lm_head.weight"


class WeightSource(Protocol):
    """Where tensors come from: a file, or a seed."""

    def weight(self, name: str) -> Weight:
        """Give the tensor of this name."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that a model's files hold.

    Attributes:
        spec: its shape. weights: its tensors. text: its tokenizer and chat template.
        end_tokens: ids after which an answer is finished.
    """

    spec: ModelSpec
    weights: WeightSource
    text: TextCodec
    end_tokens: frozenset[int]


def layer_prefix(index: int) -> str:
    """The beginning of the names of one layer's tensors."""
    return f"model.layers.{index}."


def require_runnable(spec: ModelSpec) -> None:
    """Refuse a model that can be counted but not run.

    Raises:
        ConfigError: it is of another family, or has layers that the engine does not compute.
    """
    if not is_runnable(spec):
        raise ConfigError(
            f"The engine runs {', '.join(RUNNABLE)} models with layers of attention and a gated SiLU MLP; "
            f"this one is {spec.model_type[:60]} and can only be counted. Choose another model."
        )


def expected_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Every tensor that a model of this shape must have, by name.

    Raises:
        ConfigError: the engine cannot run such a model.
    """
    require_runnable(spec)
    table = (spec.vocab_size, spec.hidden_size)
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: table, FINAL_NORM: (spec.hidden_size,)}
    if not spec.tied_embeddings:
        shapes[HEAD] = table
    for index, layer in enumerate(spec.layers):
        prefix = layer_prefix(index)
        shapes |= {prefix + name: shape for name, shape in _layer_shapes(layer, spec.hidden_size).items()}
    return shapes


def _layer_shapes(layer: Layer, hidden: int) -> dict[str, tuple[int, ...]]:
    attention, width = layer.attention, layer.mlp.intermediate_size
    query, key = attention.query_features, attention.kv_features
    matrices = {
        "self_attn.q_proj": (query, hidden, attention.qkv_bias),
        "self_attn.k_proj": (key, hidden, attention.qkv_bias),
        "self_attn.v_proj": (key, hidden, attention.qkv_bias),
        "self_attn.o_proj": (hidden, query, attention.output_bias),
        "mlp.gate_proj": (width, hidden, layer.mlp.bias),
        "mlp.up_proj": (width, hidden, layer.mlp.bias),
        "mlp.down_proj": (hidden, width, layer.mlp.bias),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    if attention.qk_norm:
        shapes |= dict.fromkeys(("self_attn.q_norm.weight", "self_attn.k_norm.weight"), (attention.head_dim,))
    for name, (rows, columns, has_bias) in matrices.items():
        shapes[f"{name}.weight"] = (rows, columns)
        if has_bias:
            shapes[f"{name}.bias"] = (rows,)
    return shapes


def check_shapes(found: Mapping[str, tuple[int, ...]], spec: ModelSpec, *, file: str) -> None:
    """Hold a file's tensors against what its config promises.

    Raises:
        CheckpointError: a tensor is missing, or has another shape.
    """
    for name, shape in expected_shapes(spec).items():
        if name not in found:
            raise CheckpointError(
                f"{file} must have the tensor {name}, which its config promises; it is missing. "
                "Download the model again, or correct the config."
            )
        if tuple(found[name]) != shape:
            raise CheckpointError(
                f"The tensor {name} in {file} must have the shape {list(shape)} that its config "
                f"promises; it has {list(found[name])}. Use the config that belongs to these weights."
            )
