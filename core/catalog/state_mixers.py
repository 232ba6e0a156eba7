"""Mixers whose memory does not grow with the tokens: state spaces, linear attention, short convolutions.

Each leaves nothing in a cache; a sequence keeps a ``State`` of fixed size in each such layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.catalog.mixers import CacheVectors, State


@dataclass(frozen=True, slots=True)
class _Stateful:
    """What these mixers share: no cache."""

    @property
    def cache_vectors(self) -> CacheVectors:
        """Nothing grows with the tokens."""
        return ()

    @property
    def span(self) -> int | None:
        """There is no cache to bound."""
        return None


@dataclass(frozen=True, slots=True)
class Mamba(_Stateful):
    """The first selective state space (Mamba 1).

    Attributes:
        inner_size: channels, usually twice E.
        state_size: values that each channel keeps.
        time_rank: rank of the projection that makes the step sizes.
        kernel: taps of the convolution.
        conv_bias, bias: biases of the convolution, and of the two outer projections.
        inner_norms: step sizes, B and C are normalised with trained weights (Jamba).
    """

    inner_size: int
    state_size: int
    time_rank: int
    kernel: int
    conv_bias: bool = True
    bias: bool = False
    inner_norms: bool = False

    @property
    def name(self) -> str:
        """The field's name."""
        return "mamba"

    @property
    def state(self) -> State:
        """The last inputs of the convolution, and ``state_size`` values a channel."""
        return State(self.inner_size * (self.kernel - 1), self.inner_size * self.state_size)


@dataclass(frozen=True, slots=True)
class Mamba2(_Stateful):
    """The state space with heads (Mamba 2, SSD).

    Attributes:
        num_heads, head_dim: their product is the number of channels.
        state_size: values that each channel keeps.
        num_groups: B and C are shared by the heads of a group.
        kernel: taps of the convolution over channels, B and C.
        conv_bias, bias: biases of the convolution, and of the two outer projections.
        gated_norm: the output is normalised with trained weights.
    """

    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    kernel: int
    conv_bias: bool = True
    bias: bool = False
    gated_norm: bool = True

    @property
    def name(self) -> str:
        """The field's name."""
        return "mamba2"

    @property
    def inner_size(self) -> int:
        """Channels."""
        return self.num_heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution: the inner ones, B and C."""
        return self.inner_size + 2 * self.num_groups * self.state_size

    @property
    def state(self) -> State:
        """The last inputs of the convolution, and ``state_size`` values a channel."""
        return State(self.conv_channels * (self.kernel - 1), self.inner_size * self.state_size)


@dataclass(frozen=True, slots=True)
class LinearAttention(_Stateful):
    """Linear attention with a decay: gated delta net, Kimi delta attention, lightning attention.

    Attributes:
        num_key_heads, num_value_heads, key_dim, value_dim: heads of queries and keys, and of values.
        kernel: taps of the convolution over queries, keys and values; 0 is none.
        decay: who forgets at which rate: a learned rate a "head" and token, a rate a key "channel"
            and token, or "fixed" rates.
        gate_rank: rank of the projection of the output's gate; None is a full matrix.
        norm_size: trained weights of the output's norm.
    """

    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    decay: Literal["head", "channel", "fixed"] = "head"
    gate_rank: int | None = None
    norm_size: int = 0

    @property
    def name(self) -> str:
        """The field's name."""
        return "linear"

    @property
    def key_features(self) -> int:
        """Width of all keys, and of all queries."""
        return self.num_key_heads * self.key_dim

    @property
    def value_features(self) -> int:
        """Width of all values."""
        return self.num_value_heads * self.value_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution: queries, keys and values; 0 without one."""
        return (2 * self.key_features + self.value_features) if self.kernel else 0

    @property
    def state(self) -> State:
        """The last inputs of the convolution, and one key-by-value matrix a value head."""
        recurrent = self.num_value_heads * self.key_dim * self.value_dim
        return State(self.conv_channels * max(self.kernel - 1, 0), recurrent)


@dataclass(frozen=True, slots=True)
class ShortConvolution(_Stateful):
    """A gated convolution over the last few tokens.

    LFM2's takes two gates and a value, each of E features, and is all there is. RecurrentGemma's takes one
    gate and a value, and a gated linear recurrence (RG-LRU) follows it, one value a channel.

    Attributes:
        channels: features of the value and of each gate. kernel: taps. bias: on all parts.
        recurrence_blocks: blocks of the two square matrices that make the recurrence's gates; 0 is no
            recurrence.
    """

    channels: int
    kernel: int
    bias: bool = False
    recurrence_blocks: int = 0

    @property
    def name(self) -> str:
        """The field's name."""
        return "lru" if self.recurrence_blocks else "conv"

    @property
    def block_width(self) -> int:
        """Channels of one block of the recurrence's gates."""
        return self.channels // self.recurrence_blocks if self.recurrence_blocks else 0

    @property
    def state(self) -> State:
        """The last inputs of the convolution, and a value a channel where a recurrence follows."""
        return State(self.channels * (self.kernel - 1), self.channels if self.recurrence_blocks else 0)
