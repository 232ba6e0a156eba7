"""Every trained tensor of a model, listed once, under the operator that reads it.

Counts and byte sizes are sums over these lists, so they cannot disagree. Letters are those of
``core.catalog.model``; matrices are ``[out_features, in_features]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Literal

from core.catalog.feed_forward import DenseMLP, FeedForward, MoE
from core.catalog.mixers import Attention, CompressedAttention, LatentAttention
from core.catalog.model import Layer, Mixer, ModelSpec
from core.catalog.state_mixers import LinearAttention, Mamba, Mamba2, ShortConvolution

#: What a tensor is for, and so which format it is kept in; "small" matrices stay 16-bit with vectors.
Role = Literal["linear", "expert", "small", "head", "table", "vector"]


@dataclass(frozen=True, slots=True)
class Weight:
    """A trained tensor: a matrix of ``[out_features, in_features]``, or a vector (one row).

    ``copies`` equal ones are listed as one: the experts of a layer, the blocks of a grouped matrix.
    """

    role: Role
    out_features: int
    in_features: int
    copies: int = 1

    @property
    def count(self) -> int:
        """Its number of parameters, all copies together."""
        return self.copies * self.out_features * self.in_features


Weights = dict[str, tuple[Weight, ...]]


def layer_weights(layer: Layer, hidden_size: int) -> Weights:
    """The tensors of one layer, by the operator that reads them; fused where engines fuse them.

    >>> from core.catalog.model import Attention, DenseMLP
    >>> sorted(layer_weights(Layer(Attention(4, 2, 16), DenseMLP(96)), 64))
    ['attention_norm', 'down', 'gate_up', 'mlp_norm', 'output', 'qkv']
    """
    norms = {name: (_vector(layer.norm.values(hidden_size)),) for name in layer.norms}
    mixer = {} if layer.mixer is None else _mixer(layer.mixer, hidden_size)
    mlp = {} if layer.feed_forward is None else _feed_forward(layer.feed_forward, hidden_size)
    weights = {**norms, **mixer, **mlp, **_streams(layer, hidden_size), **_per_layer(layer, hidden_size)}
    if layer.others:
        weights["others"] = tuple(_vector(part.parameters or 0) for part in layer.others)
    return _without_empty(weights)


def outer_weights(model: ModelSpec) -> Weights:
    """The tensors outside the layers, by operator; a tied head is listed as a tensor of its own."""
    hidden, table = model.hidden_size, model.embedding_size or model.hidden_size
    weights: Weights = {"embedding": (Weight("table", model.vocab_size, table),)}
    if table != hidden:
        weights["embedding_projection"] = linear(hidden, table)
        weights["head_projection"] = linear(table, hidden)
    if model.position_rows:
        weights["positions"] = (Weight("table", model.position_rows, hidden),)
    if model.per_layer_embedding:
        extra = model.per_layer_embedding
        features = extra.size * model.num_layers
        weights["per_layer_embedding"] = (Weight("table", extra.vocab_size, features),)
        weights["per_layer_projection"] = (*linear(features, hidden), _vector(extra.size))
    if model.embedding_norm:
        weights["embedding_norm"] = (_vector(model.norm.values(hidden)),)
    if model.final_norm:
        weights["final_norm"] = (_vector(model.norm.values(hidden)),)
    if model.others:
        weights["others"] = tuple(_vector(part.parameters or 0) for part in model.others)
    bias = (_vector(model.vocab_size),) if model.head_bias else ()
    weights["lm_head"] = (Weight("head", model.vocab_size, table), *bias)
    return _without_empty(weights)


def _without_empty(weights: Weights) -> Weights:
    return {name: tensors for name, tensors in weights.items() if any(tensor.count for tensor in tensors)}


def linear(out_features: int, in_features: int, *, bias: bool = False) -> tuple[Weight, ...]:
    """A layer's matrix, and its bias where it has one."""
    return (Weight("linear", out_features, in_features), *((_vector(out_features),) if bias else ()))


def _vector(length: int) -> Weight:
    return Weight("vector", 1, length)


def _small(out_features: int, in_features: int) -> Weight:
    return Weight("small", out_features, in_features)


# --- Mixers ---------------------------------------------------------------------------------------


@singledispatch
def _mixer(mixer: Mixer, hidden: int) -> Weights:
    raise NotImplementedError(f"{type(mixer).__name__} of width {hidden}")


@_mixer.register
def _attention(mixer: Attention, hidden: int) -> Weights:
    values = mixer.qk_norm_values
    norms = (_vector(mixer.head_dim),) * 2 if values is None else (_vector(values),)
    # A gate as wide as the queries is a part of their projection, and has its bias.
    gate_bias = mixer.qkv_bias and mixer.gate_features == mixer.query_features
    return {
        "qkv": linear(mixer.qkv_features, hidden, bias=mixer.qkv_bias),
        "qk_norm": norms if mixer.qk_norm else (),
        "sinks": (_vector(mixer.num_heads if mixer.sinks else 0),),
        "attention_gate": linear(mixer.gate_features, hidden, bias=gate_bias),
        "output": linear(hidden, mixer.output_features, bias=mixer.output_bias),
        **({} if mixer.beside is None else _mamba2(mixer.beside, hidden)),
    }


@_mixer.register
def _latent(mixer: LatentAttention, hidden: int) -> Weights:
    if mixer.query_rank is None:
        queries: Weights = {"query": linear(mixer.query_features, hidden)}
    else:
        queries = {
            "query_down": linear(mixer.query_rank, hidden, bias=mixer.bias),
            "query_norm": (_vector(mixer.query_rank),),
            "query_up": linear(mixer.query_features, mixer.query_rank),
        }
    indexer: Weights = {}
    if mixer.indexer:
        heads, dim = mixer.indexer.num_heads, mixer.indexer.head_dim
        indexer = {
            "index_query": linear(heads * dim, mixer.query_rank or hidden),
            "index_key": (*linear(dim, hidden), _vector(2 * dim)),
            "index_score": (_small(heads, hidden),),
        }
    return {
        **queries,
        "latent": linear(mixer.latent_features, hidden, bias=mixer.bias),
        "latent_norm": (_vector(mixer.kv_rank),),
        "latent_up": linear(mixer.expanded_features, mixer.kv_rank),
        **indexer,
        "attention_gate": linear(mixer.gate_features, hidden),
        "output": linear(hidden, mixer.output_features, bias=mixer.bias),
    }


@_mixer.register
def _compressed(mixer: CompressedAttention, hidden: int) -> Weights:
    group = mixer.output_features // mixer.output_groups
    weights: Weights = {
        "query_down": linear(mixer.query_rank, hidden),
        "query_norm": (_vector(mixer.query_rank),),
        "query_up": linear(mixer.query_features, mixer.query_rank),
        "latent": linear(mixer.head_dim, hidden),
        "latent_norm": (_vector(mixer.head_dim),),
        "sinks": (_vector(mixer.num_heads),),
        "output_down": (Weight("linear", mixer.output_rank, group, mixer.output_groups),),
        "output": linear(hidden, mixer.output_groups * mixer.output_rank),
    }
    if mixer.ratio:
        weights["compress"] = _compressor(mixer.head_dim, mixer.series, mixer.ratio, hidden)
    if mixer.indexer:
        heads, dim = mixer.indexer.num_heads, mixer.indexer.head_dim
        weights["index_query"] = linear(heads * dim, mixer.query_rank)
        weights["index_key"] = _compressor(dim, mixer.series, mixer.ratio, hidden)
        weights["index_score"] = (_small(heads, hidden),)
    return weights


def _compressor(dim: int, series: int, ratio: int, hidden: int) -> tuple[Weight, ...]:
    """Values and their weights for each token, a bias for each place in a block, and a norm."""
    return (_small(2 * series * dim, hidden), _small(ratio, series * dim), _vector(dim))


@_mixer.register
def _mamba(mixer: Mamba, hidden: int) -> Weights:
    inner, state, rank = mixer.inner_size, mixer.state_size, mixer.time_rank
    return {
        "mamba_in": linear(2 * inner, hidden, bias=mixer.bias),
        "convolution": _convolution(inner, mixer.kernel, bias=mixer.conv_bias),
        "mamba_parameters": linear(rank + 2 * state, inner),
        "mamba_norm": (_vector(rank + 2 * state if mixer.inner_norms else 0),),
        "mamba_steps": linear(inner, rank, bias=True),
        "state": (_small(inner, state), _vector(inner)),
        "mamba_out": linear(hidden, inner, bias=mixer.bias),
    }


@_mixer.register
def _mamba2(mixer: Mamba2, hidden: int) -> Weights:
    inner = mixer.inner_size
    return {
        "mamba_in": linear(inner + mixer.conv_channels + mixer.num_heads, hidden, bias=mixer.bias),
        "convolution": _convolution(mixer.conv_channels, mixer.kernel, bias=mixer.conv_bias),
        "state": (_vector(3 * mixer.num_heads),),
        "mamba_norm": (_vector(inner if mixer.gated_norm else 0),),
        "mamba_out": linear(hidden, inner, bias=mixer.bias),
    }


@_mixer.register
def _linear_attention(mixer: LinearAttention, hidden: int) -> Weights:
    queries, values, heads = mixer.key_features, mixer.value_features, mixer.num_value_heads
    decays: dict[str, tuple[Weight, ...]] = {
        "head": (_small(2 * heads, hidden), _vector(2 * heads)),  # rates and strengths; their offsets
        "channel": (
            *linear(mixer.key_dim, hidden),
            *linear(queries, mixer.key_dim),
            _small(heads, hidden),
            _vector(mixer.num_key_heads + queries),
        ),
        "fixed": (),
    }
    gate = mixer.gate_rank
    return {
        "linear_in": linear(2 * queries + values, hidden),
        "convolution": _convolution(mixer.conv_channels, mixer.kernel, bias=False),
        "linear_decay": decays[mixer.decay],
        "linear_gate": linear(values, hidden)
        if gate is None
        else linear(gate, hidden) + linear(values, gate),
        "linear_norm": (_vector(mixer.norm_size),),
        "linear_out": linear(hidden, values),
    }


@_mixer.register
def _short_convolution(mixer: ShortConvolution, hidden: int) -> Weights:
    width, blocks = mixer.block_width, mixer.recurrence_blocks
    gates = (Weight("small", width, width, 2 * blocks), _vector(3 * mixer.channels))
    return {
        "conv_in": linear((2 if blocks else 3) * mixer.channels, hidden, bias=mixer.bias),
        "convolution": _convolution(mixer.channels, mixer.kernel, bias=mixer.bias),
        "state": gates if blocks else (),
        "conv_out": linear(hidden, mixer.channels, bias=mixer.bias),
    }


def _convolution(channels: int, kernel: int, *, bias: bool) -> tuple[Weight, ...]:
    return (_small(channels, kernel), _vector(channels)) if bias else (_small(channels, kernel),)


# --- The rest of a layer --------------------------------------------------------------------------


def _feed_forward(part: FeedForward, hidden: int) -> Weights:
    return _dense(part, hidden) if isinstance(part, DenseMLP) else _experts(part, hidden)


def _dense(mlp: DenseMLP, hidden: int) -> Weights:
    return {
        "gate_up" if mlp.gated else "up": linear(mlp.input_features, hidden, bias=mlp.bias),
        "down": linear(hidden, mlp.intermediate_size, bias=mlp.bias),
    }


def _experts(part: MoE, hidden: int) -> Weights:
    expert, number = part.expert, part.num_experts
    width = part.latent_size or hidden

    def biases(features: int) -> tuple[Weight, ...]:
        return (Weight("vector", 1, features, number),) if expert.bias else ()

    up = (Weight("expert", expert.input_features, width, number), *biases(expert.input_features))
    down = (Weight("expert", width, expert.intermediate_size, number), *biases(width))
    weights: Weights = {
        "router": (_small(number, hidden), _vector(part.router_values)),
        "experts_gate_up" if expert.gated else "experts_up": up,
        "experts_down": down,
    }
    if part.latent_size:
        weights["latent_down"] = linear(width, hidden)
        weights["latent_back"] = linear(hidden, width)
    if part.shared:
        weights |= {f"shared_{name}": tensors for name, tensors in _dense(part.shared, hidden).items()}
    if part.shared_gate:
        weights["shared_gate"] = (_small(1, hidden),)
    return weights


def _streams(layer: Layer, hidden: int) -> Weights:
    """Hyper-connections: weights that mix the residual streams, once for each part of the layer."""
    if (streams := layer.streams) == 1:
        return {}
    mixes = (2 + streams) * streams
    parts = (layer.mixer is not None) + (layer.feed_forward is not None)
    return {"stream_mixing": (_small(mixes, streams * hidden), _vector(mixes + 3)) * parts}


def _per_layer(layer: Layer, hidden: int) -> Weights:
    if not (size := layer.per_layer_input):
        return {}
    return {"per_layer_input": (*linear(size, hidden), *linear(hidden, size), _vector(hidden))}
