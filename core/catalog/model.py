"""What a decoder is made of: the shapes that every count starts from.

A model is a stack of layers; each layer is a mixer (attention, a state space, linear attention) and a
feed-forward part (an MLP, experts), or one of the two. Families differ in which block they put
where, so a family is read once (``hf_config``) into these records and nothing after that asks which
family it was.

One alphabet for shapes, here and everywhere: B batch, T new tokens, S context, L layers, H query
heads, K KV heads, D head dimension, E hidden size (width), F intermediate size, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.catalog.feed_forward import DenseMLP, FeedForward, MoE
from core.catalog.mixers import Attention, CompressedAttention, Indexer, LatentAttention, State
from core.catalog.state_mixers import LinearAttention, Mamba, Mamba2, ShortConvolution
from core.errors import ConfigError

__all__ = [
    "RMS_NORM",
    "Attention",
    "CompressedAttention",
    "DenseMLP",
    "FeedForward",
    "Indexer",
    "LatentAttention",
    "Layer",
    "LinearAttention",
    "Mamba",
    "Mamba2",
    "Mixer",
    "MoE",
    "ModelSpec",
    "Norm",
    "Part",
    "PerLayerEmbedding",
    "RopeScaling",
    "ShortConvolution",
    "State",
]

Mixer = (
    Attention | LatentAttention | CompressedAttention | Mamba | Mamba2 | LinearAttention | ShortConvolution
)

#: Mixers that keep a state of fixed size instead of a cache.
_STATEFUL: Final = (Mamba, Mamba2, LinearAttention, ShortConvolution)


@dataclass(frozen=True, slots=True)
class Norm:
    """What each norm of a model is: an RMS norm or a layer norm, and what of it is trained."""

    kind: Literal["rms", "layer"] = "rms"
    weight: bool = True
    bias: bool = False

    def values(self, width: int) -> int:
        """Trained values of one norm over ``width`` features.

        >>> Norm().values(8), Norm("layer", bias=True).values(8), Norm("layer", weight=False).values(8)
        (8, 16, 0)
        """
        return (self.weight + self.bias) * width


#: What most models use.
RMS_NORM: Final = Norm()


@dataclass(frozen=True, slots=True)
class Part:
    """A named number of parameters; None where the config does not say how many."""

    name: str
    parameters: int | None


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer: a mixer, then a feed-forward part, each behind a norm and a residual.

    Attributes:
        mixer, feed_forward: what it computes; one of them may be None.
        norms: its norms over E, by the operator that applies them, in order.
        norm: what each of them is.
        parallel: both parts read the layer's input, and their outputs are added at once.
        streams: copies of the residual that the layer mixes (hyper-connections); 1 is the usual one.
        per_layer_input: features that this layer takes from a table of its own (``PerLayerEmbedding``).
        others: small trained tensors that belong to no operator (a scalar on the output).
    """

    mixer: Mixer | None
    feed_forward: FeedForward | None
    norms: tuple[str, ...] = ("attention_norm", "mlp_norm")
    norm: Norm = RMS_NORM
    parallel: bool = False
    streams: int = 1
    per_layer_input: int = 0
    others: tuple[Part, ...] = ()

    @property
    def attention(self) -> Attention:
        """The mixer where it is attention with query and KV heads.

        Raises:
            ConfigError: it is something else.
        """
        if not isinstance(self.mixer, Attention):
            kind = "no mixer" if self.mixer is None else f"another mixer ({self.mixer.name})"
            raise ConfigError(
                f"This needs layers with query and KV heads; a layer of this model has {kind}. "
                "Choose a model with MHA, GQA or MQA in every layer."
            )
        return self.mixer

    @property
    def mlp(self) -> DenseMLP:
        """The feed-forward part where it is a dense MLP.

        Raises:
            ConfigError: it is something else.
        """
        if not isinstance(self.feed_forward, DenseMLP):
            kind = "none" if self.feed_forward is None else "experts"
            raise ConfigError(
                f"This needs layers with a dense MLP; a layer of this model has {kind}. Choose a dense model."
            )
        return self.feed_forward


@dataclass(frozen=True, slots=True)
class PerLayerEmbedding:
    """A second input table that gives every layer ``size`` features of its own for each token.

    Attributes:
        vocab_size: its rows. size: features a layer.
    """

    vocab_size: int
    size: int


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
        positions: how the model knows the order of tokens.
        position_rows: rows of a learned table of positions; 0 without one.
        norm: what the norms outside the layers are.
        embedding_norm, final_norm: a norm after the input table, and before the head.
        embedding_size: width of the table where it is not E (it is then projected to E, and back).
        head_bias: the head adds a bias.
        per_layer_embedding: a second table that feeds every layer.
        others: small trained tensors outside the layers that belong to no operator.
        towers: vision and audio encoders with their projections; part of the total.
        extras: what the files hold beside the model (draft modules, scales); in no count.
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
    positions: Literal["rotary", "learned", "alibi", "none"] = "rotary"
    position_rows: int = 0
    norm: Norm = RMS_NORM
    embedding_norm: bool = False
    final_norm: bool = True
    embedding_size: int | None = None
    head_bias: bool = False
    per_layer_embedding: PerLayerEmbedding | None = None
    others: tuple[Part, ...] = ()
    towers: tuple[Part, ...] = ()
    extras: tuple[Part, ...] = ()

    @property
    def num_layers(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def mixers(self) -> dict[str, int]:
        """How many layers have each kind of mixer, for example {"linear": 36, "gqa": 12}."""
        found: dict[str, int] = {}
        for layer in self.layers:
            if layer.mixer is not None:
                found[layer.mixer.name] = found.get(layer.mixer.name, 0) + 1
        return found

    @property
    def attention(self) -> str:
        """The attention in use: "mha", "gqa", "mqa", "mla", "hybrid" (with state), "ssm" (state alone).

        Layers that differ only in their heads give all names, for example "gqa+mqa".
        """
        mixers = [layer.mixer for layer in self.layers if layer.mixer is not None]
        if any(isinstance(mixer, Attention) and mixer.beside for mixer in mixers):
            return "hybrid"
        stateful = [isinstance(mixer, _STATEFUL) for mixer in mixers]
        if any(stateful):
            return "ssm" if all(stateful) else "hybrid"
        return "+".join(sorted(self.mixers)) or "none"
