"""Parts that families share: heads, windows, dense MLPs, and which layer has which."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from core.catalog.fields import Fields
from core.catalog.model import Attention, DenseMLP, Layer, Norm
from core.errors import ConfigError

Kind = TypeVar("Kind", bound=Hashable)

LAYER_NORM: Final = Norm("layer", bias=True)
#: Keys that may be lists with one entry a layer.
_PER_LAYER: Final = ("num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size")
#: What configs call a layer's kind -> the name used here.
KINDS: Final[dict[str, str]] = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "global_attention": "full",
    "sliding_attention": "sliding",
    "sliding_window_attention": "sliding",
    "sliding": "sliding",
    "local": "sliding",
    "local_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "mamba",
    "mamba2": "mamba",
    "conv": "conv",
    "moe": "moe",
    "mlp": "mlp",
}


def stack(fields: Fields, kinds: Sequence[Kind], build: Callable[[Fields, Kind], Layer]) -> tuple[Layer, ...]:
    """One layer for each kind, in order; equal kinds are built once, unless sizes differ by layer."""
    by_layer = {key: value for key in _PER_LAYER if isinstance(value := fields.value(key), list)}
    for key, value in by_layer.items():
        one_each(key, value, len(kinds))
    if by_layer or fields.has("per_layer_config"):
        return tuple(build(fields.at(index), kind) for index, kind in enumerate(kinds))
    made = {kind: build(fields, kind) for kind in dict.fromkeys(kinds)}
    return tuple(made[kind] for kind in kinds)


def num_layers(fields: Fields) -> int:
    """L."""
    return fields.count("num_hidden_layers")


# --- Attention ------------------------------------------------------------------------------------


def attention(
    fields: Fields,
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
    qk_norm: bool = False,
    rotary: bool = True,
) -> Attention:
    """Heads and their dimension, as most families state them; ``rotary`` pairs the halves of a head."""
    heads = fields.count("num_attention_heads")
    kv_heads = _kv_heads(fields, heads)
    if heads % kv_heads:
        raise ConfigError(
            f"num_attention_heads must be a multiple of num_key_value_heads; got {heads:,} and "
            f"{kv_heads:,}. Correct the config."
        )
    dim = head_dim(fields, heads)
    rotated = None if rotary else 0
    if rotary and dim % 2:
        raise ConfigError(
            f"The head dimension must be even, since rotary positions pair its halves; got {dim:,}. "
            "Correct the config."
        )
    return Attention(heads, kv_heads, dim, qkv_bias, output_bias, qk_norm, rotary_dim=rotated)


def _kv_heads(fields: Fields, heads: int) -> int:
    """Stated; or the model type's own number where that divides the heads; or as many as heads."""
    assumed = fields.defaults.get("num_key_value_heads")
    if fields.has("num_key_value_heads") or assumed is None or heads % assumed:
        return fields.optional_count("num_key_value_heads") or heads
    return fields.count("num_key_value_heads")


def head_dim(fields: Fields, heads: int) -> int:
    """The key where it is stated; the quotient otherwise, which must then be whole."""
    stated = fields.optional_count("head_dim")
    if stated is not None:
        return stated
    if "head_dim" in fields.defaults:
        return fields.count("head_dim")
    hidden = fields.count("hidden_size")
    if hidden % heads:
        raise ConfigError(
            f"hidden_size must be a multiple of num_attention_heads where head_dim is not stated; "
            f"got {hidden:,} and {heads:,}. Correct the config."
        )
    return hidden // heads


def spanned(fields: Fields, mixer: Attention, kind: str) -> Attention:
    """Attention with the window or the chunk that layers of this kind have."""
    if kind == "sliding":
        return replace(mixer, window=_window(fields))
    if kind == "chunked":
        return replace(mixer, chunk=fields.optional_count("attention_chunk_size"))
    if kind != "full":
        raise ConfigError(
            "layer_types must name kinds of attention for this model type; it names a layer of another "
            f"kind ({kind}). Correct the config."
        )
    return mixer


def _window(fields: Fields) -> int | None:
    """A window that is null is none; one that the file does not mention is the model type's."""
    if "sliding_window" in fields.values or "sliding_window" not in fields.defaults:
        return fields.optional_count("sliding_window")
    return fields.count("sliding_window")


def kinds(fields: Fields, default: Callable[[int], str]) -> list[str]:
    """Which kind each layer is: a list in the config, a pattern, or the default of the model type.

    ``layer_types`` comes first; then ``hybrid_layer_pattern`` (1 is sliding); then a
    ``sliding_window_pattern`` of p, where every p-th layer is global, or of letters ("LLLG").

    Args:
        fields: the config.
        default: the kind of the layer with this index where the config has no list.
    """
    layers = num_layers(fields)
    listed = fields.texts("layer_types")
    if listed is not None:
        # Some lists go on with the layers of a draft module.
        drafts = fields.quiet_number("num_nextn_predict_layers", 0)
        own = listed[:layers] if len(listed) == layers + drafts else listed
        return listed_kinds("layer_types", own, layers)
    flags = fields.counts("hybrid_layer_pattern")
    if flags is not None:
        one_each("hybrid_layer_pattern", flags, layers)
        return ["sliding" if flag else "full" for flag in flags]
    pattern = fields.value("sliding_window_pattern")
    if isinstance(pattern, str) and set(pattern) in ({"L", "G"}, {"L"}, {"G"}):
        return ["full" if pattern[i % len(pattern)] == "G" else "sliding" for i in range(layers)]
    if pattern is not None:
        every = fields.count("sliding_window_pattern")
        return [every_nth(every)(index) for index in range(layers)]
    return [default(index) for index in range(layers)]


def every_nth(every: int, other: str = "sliding") -> Callable[[int], str]:
    """Every n-th layer is global, the others are not."""
    return lambda index: other if (index + 1) % every else "full"


def all_full(_: int) -> str:
    """Each layer looks at everything."""
    return "full"


def all_sliding(_: int) -> str:
    """Each layer has the window, where one is stated."""
    return "sliding"


def listed_kinds(key: str, listed: Sequence[str], layers: int) -> list[str]:
    """Kinds as a config lists them, one a layer."""
    one_each(key, listed, layers)
    for name in listed:
        if name not in KINDS:
            raise ConfigError(
                f"{key} must name kinds of layers that can be counted ({', '.join(KINDS)}); "
                f"got {name[:60]!r}. Other kinds cannot be counted yet."
            )
    return [KINDS[name] for name in listed]


def one_each(key: str, values: Sequence[object], layers: int) -> None:
    """A list must have one entry a layer."""
    if len(values) != layers:
        raise ConfigError(
            f"{key} must have one entry a layer; got {len(values):,} for {layers:,} layers. "
            "Correct the config."
        )


def note_windows(fields: Fields, layers: Sequence[Layer]) -> None:
    """Say where a window or chunk bounds the cache."""
    mixers = [layer.mixer for layer in layers if isinstance(layer.mixer, Attention)]
    windows = [mixer.window for mixer in mixers if mixer.window]
    chunks = [mixer.chunk for mixer in mixers if mixer.chunk]
    if windows:
        fields.notes.append(
            f"{len(windows)} of {len(layers)} layers look back {windows[0]:,} tokens at most (sliding "
            "window); past that their cache stops growing."
        )
    if chunks:
        fields.notes.append(
            f"{len(chunks)} of {len(layers)} layers attend within chunks of {chunks[0]:,} tokens; past "
            "that their cache stops growing."
        )


# --- Feed-forward parts ---------------------------------------------------------------------------


def dense(
    fields: Fields, *, bias: bool = False, gated: bool = True, key: str = "intermediate_size"
) -> DenseMLP:
    """A dense MLP."""
    activation = fields.text("hidden_act") or "silu"
    return DenseMLP(fields.count(key), bias, gated, activation[:40])
