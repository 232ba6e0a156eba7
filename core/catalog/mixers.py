"""What moves information between tokens: one record for each kind of mixer a layer can have.

A mixer answers the questions that memory asks: which vectors a token leaves in a cache
(``cache_vectors``), how many tokens of them stay (``span``), and which values a sequence keeps
whatever its length (``state``). The letters are those of ``core.catalog.model``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from core.catalog.state_mixers import Mamba2

#: Number of vectors and the length of each: what one token leaves in a layer's cache.
CacheVectors = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class State:
    """Values that a sequence keeps in one layer, whatever its length.

    Attributes:
        convolution: inputs that a short convolution still needs, ``channels * (kernel - 1)``.
        recurrent: the running sum of an SSM or of linear attention.
    """

    convolution: int = 0
    recurrent: int = 0


@dataclass(frozen=True, slots=True)
class _Cached:
    """A mixer whose memory is a cache."""

    @property
    def state(self) -> State:
        """None: everything it keeps grows with the tokens."""
        return State()


@dataclass(frozen=True, slots=True)
class Attention(_Cached):
    """Multi-head attention with H query heads and K KV heads (K = H: MHA; K = 1: MQA; else GQA).

    Attributes:
        num_heads, num_kv_heads, head_dim: H, K and D; D is the width of queries and keys.
        qkv_bias, output_bias: biases on the projections.
        qk_norm: queries and keys are normalised; ``qk_norm_values`` says with how many trained
            values (None: one vector of D for each, shared by the heads; 0: none are trained).
        window: how many tokens, itself included, a token looks back on; None is all of them.
        value_dim: width of a value where it is not D.
        chunk: tokens look back to the start of their own chunk of this many; None is no chunks.
        sinks: one learned score a head that takes part in the softmax and has no token.
        gate_features: features of a gate on the output, projected from the input; 0 is none.
        kv_projection: "separate" matrices for K and V, "one" for both, "none" where the layer has
            no K and V of its own.
        keeps_cache: False where the layer reads the cache of an earlier one.
        rotary_dim: how many of D are rotated; None is all, 0 is none.
        beside: a state space that reads the same input, and whose output is added (Falcon-H1).
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    window: int | None = None
    value_dim: int | None = None
    chunk: int | None = None
    sinks: bool = False
    gate_features: int = 0
    kv_projection: Literal["separate", "one", "none"] = "separate"
    keeps_cache: bool = True
    qk_norm_values: int | None = None
    rotary_dim: int | None = None
    beside: Mamba2 | None = None

    @property
    def state(self) -> State:
        """That of the state space beside it; none without one."""
        return State() if self.beside is None else self.beside.state

    @property
    def name(self) -> str:
        """The field's name for this sharing: "mha", "gqa" or "mqa"."""
        if self.num_kv_heads == self.num_heads:
            return "mha"
        return "mqa" if self.num_kv_heads == 1 else "gqa"

    @property
    def value_head_dim(self) -> int:
        """Width of one head's value: D unless stated otherwise."""
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def query_features(self) -> int:
        """H * D; not always the hidden size."""
        return self.num_heads * self.head_dim

    @property
    def kv_features(self) -> int:
        """K * D, the width of the keys alone."""
        return self.num_kv_heads * self.head_dim

    @property
    def value_features(self) -> int:
        """Width of the values of all KV heads."""
        return self.num_kv_heads * self.value_head_dim

    @property
    def output_features(self) -> int:
        """What attention hands to the output projection: one value a query head."""
        return self.num_heads * self.value_head_dim

    @property
    def qkv_features(self) -> int:
        """Output features of the fused Q, K and V projection, those that the layer has."""
        keys = 0 if self.kv_projection == "none" else self.kv_features
        values = self.value_features if self.kv_projection == "separate" else 0
        return self.query_features + keys + values

    @property
    def cache_vectors(self) -> CacheVectors:
        """A key and a value for each KV head; nothing where an earlier layer's cache is read."""
        if not self.keeps_cache:
            return ()
        return ((self.num_kv_heads, self.head_dim), (self.num_kv_heads, self.value_head_dim))

    @property
    def span(self) -> int | None:
        """The most tokens whose keys and values stay; None is all of them."""
        return self.window if self.chunk is None else self.chunk


@dataclass(frozen=True, slots=True)
class Indexer:
    """The small scorer of sparse attention: it picks the ``top_k`` tokens that each token attends to.

    Attributes:
        num_heads, head_dim: its own queries; every token leaves one key of ``head_dim`` for all heads.
        top_k: how many tokens (or compressed blocks of them) are picked.
    """

    num_heads: int
    head_dim: int
    top_k: int


@dataclass(frozen=True, slots=True)
class LatentAttention(_Cached):
    """Multi-head latent attention (MLA): keys and values of all heads come from one short latent.

    Attributes:
        num_heads: H.
        query_rank: width of the queries' latent; None where queries are projected straight from E.
        kv_rank: width of the latent that is cached.
        nope_dim, rope_dim: parts of a query and key without and with rotary positions; the rotary
            part of the key is one for all heads, and cached.
        value_dim: width of one head's value.
        bias: on the projections from the hidden size and on the output.
        indexer: picks the tokens that are looked at; None is all of them.
        gate_features: features of a gate on the output; 0 is none.
        window: how many tokens, itself included, a token looks back on; None is all of them.
    """

    num_heads: int
    query_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False
    indexer: Indexer | None = None
    gate_features: int = 0
    window: int | None = None

    @property
    def name(self) -> str:
        """The field's name."""
        return "mla"

    @property
    def head_dim(self) -> int:
        """Width of one head's query and key."""
        return self.nope_dim + self.rope_dim

    @property
    def query_features(self) -> int:
        """H * D."""
        return self.num_heads * self.head_dim

    @property
    def latent_features(self) -> int:
        """What one token leaves in the cache: the latent and the one rotary key."""
        return self.kv_rank + self.rope_dim

    @property
    def expanded_features(self) -> int:
        """Keys (without their rotary part) and values of all heads, made from the latent."""
        return self.num_heads * (self.nope_dim + self.value_dim)

    @property
    def output_features(self) -> int:
        """What attention hands to the output projection."""
        return self.num_heads * self.value_dim

    @property
    def cache_vectors(self) -> CacheVectors:
        """The latent with the rotary key, once for all heads."""
        return ((1, self.latent_features),)

    @property
    def span(self) -> int | None:
        """The most tokens whose latents stay; None is all of them."""
        return self.window


@dataclass(frozen=True, slots=True)
class CompressedAttention(_Cached):
    """DeepSeek-V4 attention: one shared key that is also the value, and blocks of tokens made one entry.

    Each token attends to its last ``window`` tokens uncompressed, and to older ones through one entry
    for every ``ratio`` tokens.

    Attributes:
        num_heads, head_dim: H and D; K = 1, and the key is the value.
        query_rank: width of the queries' latent.
        rope_dim: rotated part of D.
        output_groups, output_rank: the output goes through ``output_groups`` low-rank blocks.
        window: uncompressed tokens that stay.
        ratio: tokens an entry; 0 is a window alone, without compressed entries.
        series: how many vectors each token gives to compression: 1, or 2 where an entry also takes
            from the block before it.
        indexer: picks entries; None attends to all of them.
    """

    num_heads: int
    head_dim: int
    query_rank: int
    rope_dim: int
    output_groups: int
    output_rank: int
    window: int
    ratio: int
    series: int = 1
    indexer: Indexer | None = None

    @property
    def name(self) -> str:
        """The field's name: like MLA it keeps one vector a token for all heads."""
        return "mla"

    @property
    def query_features(self) -> int:
        """H * D."""
        return self.num_heads * self.head_dim

    @property
    def output_features(self) -> int:
        """What attention hands to the output projections."""
        return self.num_heads * self.head_dim

    @property
    def cache_vectors(self) -> CacheVectors:
        """One vector of D; key and value are the same."""
        return ((1, self.head_dim),)

    @property
    def span(self) -> int | None:
        """Uncompressed tokens that stay; the compressed entries are counted apart."""
        return self.window
