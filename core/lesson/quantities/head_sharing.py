"""A model with its keys and values shared in another way: the same layers, other heads that are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from core.analytic.kv_cache import bytes_per_token
from core.analytic.parallel import ParallelPlan, stages
from core.catalog.mixers import Attention, LatentAttention
from core.catalog.model import ModelSpec
from core.errors import FormatError
from core.lesson.amount import LessonCase
from core.units import format_count

#: Numbers of the rotary key beside a latent, where the model has no latent of its own:
#: https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/config.json (qk_rope_head_dim)
ROTARY_KEY: Final = 64
MHA, GQA, MQA, MLA = WAYS = ("MHA", "GQA", "MQA", "MLA")


@dataclass(frozen=True, slots=True)
class HeadShape:
    """What attention has in each of a model's layers.

    Attributes:
        query_heads: of a layer. key_dim, value_dim: numbers in one key and one value. layers: with
            attention. kv_heads: that the model keeps itself, None where it keeps a latent.
        rotary_dim: of the key that a latent needs beside it. latent: the model's own, None without one.
    """

    query_heads: int
    key_dim: int
    value_dim: int
    layers: int
    kv_heads: int | None
    rotary_dim: int
    latent: int | None


def head_shape(model: ModelSpec) -> HeadShape:
    """The heads of a model's first layer with attention.

    Raises:
        FormatError: no layer has query heads with keys or a latent of their own.
    """
    found = [layer.mixer for layer in model.layers if isinstance(layer.mixer, Attention | LatentAttention)]
    if not found:
        raise FormatError(
            f"{model.name} must have attention heads to share something, and it has none of this kind. "
            "Choose another model in the line above."
        )
    first = found[0]
    latent = first if isinstance(first, LatentAttention) else None
    return HeadShape(
        query_heads=first.num_heads,
        key_dim=first.head_dim,
        value_dim=first.value_dim if isinstance(first, LatentAttention) else first.value_head_dim,
        layers=len(found),
        kv_heads=first.num_kv_heads if isinstance(first, Attention) else None,
        rotary_dim=ROTARY_KEY if latent is None else latent.rope_dim,
        latent=None if latent is None else latent.kv_rank,
    )


@dataclass(frozen=True, slots=True)
class Sharing:
    """One way to share: a name, and either KV heads or a latent with its rotary key.

    Attributes:
        way: one of ``WAYS``. kv_heads: None with a latent. latent: None with heads.
    """

    way: str
    kv_heads: int | None = None
    latent: int | None = None


def sharing(case: LessonCase, way: str) -> Sharing:
    """A way to share, with the page's group and latent.

    Args:
        case: its settings "group" and "latent" say how many query heads share a KV head, and how many
            numbers a latent has.
        way: one of ``WAYS``.
    """
    heads = head_shape(case.model).query_heads
    if way == MLA:
        return Sharing(way, latent=int(case.number("latent")))
    group = {MHA: 1, MQA: heads}.get(way) or min(int(case.number("group")), heads)
    return Sharing(way, kv_heads=max(heads // group, 1))


def chosen(case: LessonCase) -> Sharing:
    """What the page's control says."""
    return sharing(case, case.word("sharing"))


def shared_model(model: ModelSpec, how: Sharing) -> ModelSpec:
    """The model with every attention layer sharing in this way; other layers stay as they are."""
    shape = head_shape(model)
    mixer: Attention | LatentAttention
    if how.kv_heads is not None:
        mixer = Attention(shape.query_heads, how.kv_heads, shape.key_dim, value_dim=shape.value_dim)
    else:
        mixer = LatentAttention(
            num_heads=shape.query_heads,
            query_rank=None,
            kv_rank=how.latent or 0,
            nope_dim=shape.key_dim,
            rope_dim=shape.rotary_dim,
            value_dim=shape.value_dim,
        )
    layers = tuple(
        replace(layer, mixer=mixer) if isinstance(layer.mixer, Attention | LatentAttention) else layer
        for layer in model.layers
    )
    return replace(model, layers=layers)


@lru_cache(maxsize=256)
def token_bytes(model: ModelSpec, how: Sharing | None, kv: str, chips: int) -> int:
    """What one token leaves on each of so many chips with tensor parallelism.

    Args:
        model: the model.
        how: another way to share than its own; None is its own.
        kv: the cache's format.
        chips: the tensor-parallel degree.
    """
    whole = model if how is None else shared_model(model, how)
    if chips == 1:
        return bytes_per_token(whole, kv)
    return bytes_per_token(stages(whole, ParallelPlan(tp=chips))[0].shard, kv)


@dataclass(frozen=True, slots=True)
class SharedCache:
    """One way to share, and what a token leaves: in all, and on each chip."""

    name: str
    total_bytes: float
    chip_bytes: float
    chips: int

    @property
    def copies(self) -> float:
        """How often the chips together keep it."""
        return self.chip_bytes * self.chips / self.total_bytes


def shared_caches(case: LessonCase) -> list[SharedCache]:
    """Each way to share, and the model as it is."""
    chips, kv = int(case.number("chips")), case.scenario.kv

    def row(name: str, how: Sharing | None) -> SharedCache:
        whole, part = (token_bytes(case.model, how, kv, count) for count in (1, chips))
        return SharedCache(name, whole, part, chips)

    ways = [sharing(case, way) for way in WAYS]
    return [*(row(words(case.model, how), how) for how in ways), row(f"{case.model.name}, as it is", None)]


def words(model: ModelSpec, how: Sharing) -> str:
    """A way to share and its size, for a row."""
    if how.kv_heads is None:
        return f"{how.way}: {how.latent:,} + {head_shape(model).rotary_dim} numbers"
    heads = format_count(how.kv_heads, "KV head")
    return f"{how.way}: {heads}"
