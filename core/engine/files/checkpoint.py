"""A model as it is read: its shape, its tensors by name, and how it writes and reads text.

Tensors carry the names that Hugging Face gives them, whatever file they came from; ``LAYER_PARTS``
says which of them each operator of the engine fuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from core.catalog.model import DenseMLP, Layer, ModelSpec, MoE
from core.catalog.runnable import RUNNABLE, is_runnable
from core.engine.files.text import TextCodec
from core.engine.files.weight import Weight
from core.errors import CheckpointError, ConfigError

#: Operator -> the projections whose rows it fuses, in order.
LAYER_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


class ExpertNames(NamedTuple):
    """How a family names a layer's router and experts; an expert's number stands before its projections."""

    router: str
    experts: str
    gate_up: tuple[str, str]
    down: tuple[str]


EXPERT_NAMES: Final = {
    "mixtral": ExpertNames("block_sparse_moe.gate", "block_sparse_moe.experts", ("w1", "w3"), ("w2",)),
    "qwen3_moe": ExpertNames("mlp.gate", "mlp.experts", ("gate_proj", "up_proj"), ("down_proj",)),
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

    @property
    def stored_as(self) -> str:
        """The encoding of the layers' matrices, told by the first that every layer has."""
        return self.weights.weight(f"{layer_prefix(0)}self_attn.o_proj.weight").encoding


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
            f"The engine runs {', '.join(RUNNABLE)} models with layers of attention and a gated SiLU MLP or "
            f"such experts; this one is {spec.model_type[:60]} and can only be counted. Choose another model."
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
        own = _layer_shapes(layer, spec.hidden_size) | _expert_shapes(layer, spec)
        shapes |= {prefix + name: shape for name, shape in own.items()}
    return shapes


def _layer_shapes(layer: Layer, hidden: int) -> dict[str, tuple[int, ...]]:
    attention, part = layer.attention, layer.feed_forward
    query, key = attention.query_features, attention.kv_features
    matrices = {
        "self_attn.q_proj": (query, hidden, attention.qkv_bias),
        "self_attn.k_proj": (key, hidden, attention.qkv_bias),
        "self_attn.v_proj": (key, hidden, attention.qkv_bias),
        "self_attn.o_proj": (hidden, query, attention.output_bias),
    }
    if isinstance(part, DenseMLP):
        width = part.intermediate_size
        matrices |= dict.fromkeys(("mlp.gate_proj", "mlp.up_proj"), (width, hidden, part.bias))
        matrices["mlp.down_proj"] = (hidden, width, part.bias)
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


def _expert_shapes(layer: Layer, spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The router and the experts of a layer that has them."""
    part = layer.feed_forward
    if not isinstance(part, MoE):
        return {}
    names, hidden, width = EXPERT_NAMES[spec.model_type], spec.hidden_size, part.expert.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {f"{names.router}.weight": (part.num_experts, hidden)}
    for expert in range(part.num_experts):
        prefix = f"{names.experts}.{expert}."
        shapes |= {f"{prefix}{name}.weight": (width, hidden) for name in names.gate_up}
        shapes |= {f"{prefix}{name}.weight": (hidden, width) for name in names.down}
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
