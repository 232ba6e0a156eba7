"""What a model family is: how its configs are read, and what they may leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.catalog.fields import Fields
from core.catalog.model import RMS_NORM, Layer, Norm, Part, PerLayerEmbedding

#: How a next-token module is laid out.
Draft = Literal["deepseek", "qwen", "mimo", "none"]


@dataclass(frozen=True, slots=True)
class Decoder:
    """What a family's reader finds: the layers, and how the model differs from a Llama around them.

    The attributes are those of ``ModelSpec``.
    """

    layers: tuple[Layer, ...]
    positions: Literal["rotary", "learned", "alibi", "none"] = "rotary"
    position_rows: int = 0
    norm: Norm = RMS_NORM
    embedding_norm: bool = False
    final_norm: bool = True
    embedding_size: int | None = None
    head_bias: bool = False
    per_layer_embedding: PerLayerEmbedding | None = None
    others: tuple[Part, ...] = ()
    extras: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """What a model type fixes beyond its config.

    Attributes:
        read: from a config's fields to its decoder.
        defaults: counts that transformers assumes when the config is silent.
        tied: the same for tie_word_embeddings.
        draft: how a next-token module, where the config states one, is laid out.
    """

    read: Callable[[Fields], Decoder]
    defaults: Mapping[str, int] = field(default_factory=dict)
    tied: bool = False
    draft: Draft = "none"
