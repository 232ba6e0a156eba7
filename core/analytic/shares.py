"""A chip's share of each kind of layer under tensor parallelism: fewer heads, columns and channels.

Matrices are split by columns where a product begins a part (QKV, gate and up) and by rows where it ends
one (output, down). What has no heads or columns of its own (latents, routers, norms) stays whole, and so
does a KV head where chips are more than KV heads. Counts that do not divide are rounded up, as by padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Final

from core.catalog.feed_forward import DenseMLP, FeedForward
from core.catalog.mixers import Attention, CompressedAttention, LatentAttention
from core.catalog.model import Layer, Mixer
from core.catalog.state_mixers import LinearAttention, Mamba, Mamba2, ShortConvolution


def shard_layers(layers: tuple[Layer, ...], tensor: int, expert_tensor: int) -> tuple[Layer, ...]:
    """One chip's share of each layer; layers that are one record stay one record.

    Args:
        layers: whole.
        tensor: chips that share each matrix.
        expert_tensor: chips that share each expert.
    """
    known: dict[int, Layer] = {}
    for layer in layers:
        if id(layer) not in known:
            part = layer.feed_forward
            known[id(layer)] = replace(
                layer,
                mixer=None if layer.mixer is None else _shard_mixer(layer.mixer, tensor),
                feed_forward=None if part is None else _shard_feed_forward(part, tensor, expert_tensor),
            )
    return tuple(known[id(layer)] for layer in layers)


def _shard_feed_forward(part: FeedForward, tensor: int, expert_tensor: int) -> FeedForward:
    if isinstance(part, DenseMLP):
        return _shard_mlp(part, tensor)
    return replace(
        part,
        expert=_shard_mlp(part.expert, expert_tensor),
        shared=None if part.shared is None else _shard_mlp(part.shared, tensor),
    )


def _shard_mlp(mlp: DenseMLP, chips: int) -> DenseMLP:
    return replace(mlp, intermediate_size=ceil(mlp.intermediate_size / chips))


def kv_heads_on_chip(num_kv_heads: int, tp: int) -> int:
    """KV heads of one chip: a share, or one that several chips keep where there are fewer heads.

    >>> kv_heads_on_chip(8, 4), kv_heads_on_chip(8, 16)
    (2, 1)
    """
    return ceil(num_kv_heads / tp)


def _shard_mixer(mixer: Mixer, tp: int) -> Mixer:
    if tp == 1:
        return mixer
    return _SHARES[type(mixer)](mixer, tp)


def _attention(mixer: Attention, tp: int) -> Attention:
    return replace(
        mixer,
        num_heads=ceil(mixer.num_heads / tp),
        num_kv_heads=kv_heads_on_chip(mixer.num_kv_heads, tp),
        gate_features=ceil(mixer.gate_features / tp),
        beside=None if mixer.beside is None else _mamba2(mixer.beside, tp),
    )


def _latent(mixer: LatentAttention, tp: int) -> LatentAttention:
    """The latent has no heads: every chip keeps all of it."""
    return replace(mixer, num_heads=ceil(mixer.num_heads / tp), gate_features=ceil(mixer.gate_features / tp))


def _compressed(mixer: CompressedAttention, tp: int) -> CompressedAttention:
    return replace(mixer, num_heads=ceil(mixer.num_heads / tp), output_groups=ceil(mixer.output_groups / tp))


def _mamba(mixer: Mamba, tp: int) -> Mamba:
    return replace(mixer, inner_size=ceil(mixer.inner_size / tp))


def _mamba2(mixer: Mamba2, tp: int) -> Mamba2:
    return replace(mixer, num_heads=ceil(mixer.num_heads / tp), num_groups=ceil(mixer.num_groups / tp))


def _linear_attention(mixer: LinearAttention, tp: int) -> LinearAttention:
    return replace(
        mixer,
        num_key_heads=ceil(mixer.num_key_heads / tp),
        num_value_heads=ceil(mixer.num_value_heads / tp),
    )


def _short_convolution(mixer: ShortConvolution, tp: int) -> ShortConvolution:
    blocks = ceil(mixer.recurrence_blocks / tp)
    return replace(mixer, channels=ceil(mixer.channels / tp), recurrence_blocks=blocks)


_SHARES: Final[dict[type, Callable[..., Mixer]]] = {
    Attention: _attention,
    LatentAttention: _latent,
    CompressedAttention: _compressed,
    Mamba: _mamba,
    Mamba2: _mamba2,
    LinearAttention: _linear_attention,
    ShortConvolution: _short_convolution,
}
