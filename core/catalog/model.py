"""What a decoder is made of: the shapes that every count starts from.

A model is a stack of layers; each layer is one attention block and one MLP block. Families
differ in which block they put where, so a family is read once (``hf_config``) into these records
and nothing after that asks which family it was. Further blocks (latent attention, experts, state
spaces) become further records beside these.

One alphabet for shapes, here and everywhere: B batch, T new tokens, S context, L layers, H query
heads, K KV heads, D head dimension, E hidden size (width), F intermediate size, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attention:
    """Multi-head attention with H query heads and K KV heads (K = H: MHA; K = 1: MQA; else GQA).

    ``window`` is how many tokens, itself included, a token looks back on; None is all of them.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    window: int | None = None

    @property
    def name(self) -> str:
        """The field's name for this sharing: "mha", "gqa" or "mqa"."""
        if self.num_kv_heads == self.num_heads:
            return "mha"
        return "mqa" if self.num_kv_heads == 1 else "gqa"

    @property
    def query_features(self) -> int:
        """H * D; not always the hidden size."""
        return self.num_heads * self.head_dim

    @property
    def kv_features(self) -> int:
        """K * D, the width of the keys alone (and of the values alone)."""
        return self.num_kv_heads * self.head_dim

    @property
    def qkv_features(self) -> int:
        """Output features of the fused Q, K and V projection."""
        return self.query_features + 2 * self.kv_features


@dataclass(frozen=True, slots=True)
class DenseMLP:
    """A gated MLP (three matrices: gate, up, down) with F intermediate features."""

    intermediate_size: int
    bias: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: attention, then an MLP, each behind a norm and a residual."""

    attention: Attention
    mlp: DenseMLP


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How rotary positions are stretched past the length the model was first trained on.

    Attributes:
        kind: the config's own word: "llama3", "yarn", "linear", "dynamic".
        factor: how much longer. original_context: the first length; None where it is not stated.
        low_frequency_factor, high_frequency_factor: the band edges of "llama3"; None elsewhere.
    """

    kind: str
    factor: float
    original_context: int | None = None
    low_frequency_factor: float | None = None
    high_frequency_factor: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A decoder's shape: everything the arithmetic and the engine need, and no weights.

    Attributes:
        id: key in the catalogue and in links ("smollm2-135m"), or "custom".
        name: what a page shows.
        model_type: the config's own family key ("llama", "qwen2", "qwen3").
        hidden_size: E. vocab_size: V. layers: one record a layer, in order.
        tied_embeddings: the head reuses the input table.
        max_context: the longest sequence the model was made for.
        rope_theta, rms_norm_eps: constants of the forward pass.
        rope_scaling: how positions are stretched, None where they are not.
        source: where the config comes from.
        notes: sentences a reader should see beside any number made from this record.
    """

    id: str
    name: str
    model_type: str
    hidden_size: int
    vocab_size: int
    layers: tuple[Layer, ...]
    tied_embeddings: bool
    max_context: int
    rope_theta: float
    rms_norm_eps: float
    source: str
    notes: tuple[str, ...] = ()
    rope_scaling: RopeScaling | None = None

    @property
    def num_layers(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def attention(self) -> str:
        """The attention kinds in use, for example "gqa"."""
        return "+".join(sorted({layer.attention.name for layer in self.layers}))
