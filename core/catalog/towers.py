"""Vision encoders beside a text model: how many parameters they have, as far as a config tells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from core.catalog.fields import Fields
from core.catalog.model import Part

#: Where configs describe encoders.
_TABLES: Final = {"vision_config": "vision encoder", "audio_config": "audio encoder"}


def towers(config: Mapping[str, object], hidden_size: int, notes: list[str]) -> tuple[Part, ...]:
    """The encoders that a config describes; those whose layout is not known here have no size.

    Args:
        config: the whole config, around the text model's table.
        hidden_size: the text model's E, to which pictures are projected.
        notes: where it is said that an encoder is not counted.
    """
    outer, found = Fields(config, notes), []
    for key, name in _TABLES.items():
        table = outer.table(key)
        if table is None:
            continue
        size = _size(table, outer, hidden_size)
        found.append(Part(name, size))
        if size is None:
            notes.append(f"The {name}'s own parameters are not counted: its layout is not known here.")
    return tuple(found)


def tower_bytes(tower: Part, parameter_bytes: float, file_bytes: int | None = None) -> float | None:
    """What an encoder takes: its parameters where they can be counted, else the size of its file.

    None where neither is known: a guess would be worse than saying so.

    >>> tower_bytes(Part("vision encoder", 400), 2), tower_bytes(Part("vision encoder", None), 2, 900)
    (800, 900)
    """
    if tower.parameters is not None:
        return tower.parameters * parameter_bytes
    return file_bytes


def _size(table: Fields, outer: Fields, hidden_size: int) -> int | None:
    kind = table.text("model_type") or outer.text("model_type") or ""
    for beginning, (count, needed) in _KNOWN.items():
        if kind.startswith(beginning) and all(table.has(key) for key in needed):
            return count(table, outer, hidden_size)
    return None


def _plain_layer(width: int, inner: int) -> int:
    """Attention and an MLP without a gate, with biases, between two layer norms."""
    return 4 * (width + 1) * width + (2 * width + 1) * inner + width + 4 * width


def _siglip(table: Fields, outer: Fields, hidden_size: int) -> int:
    """SigLIP with the projection behind it: patches, positions, layers, a last norm."""
    width, inner = table.count("hidden_size"), table.count("intermediate_size")
    patch = table.count("patch_size")
    places = (table.count("image_size") // patch) ** 2
    embedding = (3 * patch**2 + 1) * width + places * width
    layers = table.count("num_hidden_layers") * _plain_layer(width, inner)
    pooling = _plain_layer(width, inner) - width if table.flag("vision_use_head", default=True) else 0
    return embedding + layers + 2 * width + _siglip_projection(width, outer, hidden_size) + pooling


def _siglip_projection(width: int, outer: Fields, hidden_size: int) -> int:
    """Gemma 3's has a norm, PaliGemma's a bias; of others it is said that theirs is not counted."""
    kind = outer.text("model_type") or ""
    if kind.startswith("gemma3"):
        return width * hidden_size + width
    if kind.startswith("paligemma"):
        return (width + 1) * hidden_size
    outer.notes.append("The projection from the vision encoder is not counted: its layout is not known here.")
    return 0


def _gemma4(table: Fields, _: Fields, hidden_size: int) -> int:
    """Gemma 4's encoder: gated MLPs, four RMS norms a layer, two tables of positions."""
    width, inner, dim = table.count("hidden_size"), table.count("intermediate_size"), table.count("head_dim")
    heads = table.count("num_attention_heads")
    kv_heads = table.optional_count("num_key_value_heads") or heads
    attention = 2 * width * (heads + kv_heads) * dim + 2 * dim
    layers = table.count("num_hidden_layers") * (attention + 3 * width * inner + 4 * width)
    positions = 2 * table.count("position_embedding_size") * width
    return 3 * table.count("patch_size") ** 2 * width + positions + layers + width * hidden_size


def _gemma4_audio(table: Fields, _: Fields, hidden_size: int) -> int:
    """Gemma 4's conformer: two MLPs, attention with relative positions and a convolution a layer.

    Sound comes in as 128 bands, of which two convolutions leave a quarter.
    """
    width, heads, taps = (
        table.count(key) for key in ("hidden_size", "num_attention_heads", "conv_kernel_size")
    )
    mlps = 2 * (2 * 4 * width**2 + 2 * width)
    attention = 5 * width**2 + width // heads + 2 * width
    layer = mlps + attention + 3 * width**2 + taps * width + 2 * width + width
    first, second = ([*(table.counts("subsampling_conv_channels", least=1) or []), 1, 1])[:2]
    convolutions = 10 * first + 9 * first * second + second + 128 // 4 * second * width
    out = table.count("output_proj_dims")
    layers = table.count("num_hidden_layers") * layer
    return convolutions + layers + (width + 1) * out + out * hidden_size


def _llama4(table: Fields, _: Fields, hidden_size: int) -> int:
    """Llama 4's encoder, the MLP that follows it, and the projection to the text model."""
    width, inner = table.count("hidden_size"), table.count("intermediate_size")
    patch = table.count("patch_size")
    places = (table.count("image_size") // patch) ** 2 + 1
    embedding = 3 * patch**2 * width + (places + 1) * width + 4 * width
    layers = table.count("num_hidden_layers") * _plain_layer(width, inner)
    middle, out = table.count("projector_input_dim"), table.count("projector_output_dim")
    return embedding + layers + inner * middle + out**2 + table.count("vision_output_dim") * hidden_size


def _qwen3(table: Fields, _: Fields, __: int) -> int:
    """Qwen3-VL's and Qwen3.5's encoder: patches in time, positions, layers, mergers of four patches."""
    width, inner = table.count("hidden_size"), table.count("intermediate_size")
    channels = table.optional_count("in_channels") or 3
    voxels = channels * table.count("temporal_patch_size") * table.count("patch_size") ** 2
    merged = width * table.count("spatial_merge_size") ** 2
    out = table.count("out_hidden_size")
    merger = merged * (merged + 1) + (merged + 1) * out
    deep = len(table.counts("deepstack_visual_indexes") or [])
    embedding = (voxels + 1) * width + table.count("num_position_embeddings") * width
    layers = table.count("depth") * _plain_layer(width, inner)
    return embedding + layers + merger + 2 * width + deep * (merger + 2 * merged)


def _pixtral(table: Fields, outer: Fields, hidden_size: int) -> int:
    """Pixtral: gated MLPs, no biases; Mistral's projection merges four patches."""
    width, inner = table.count("hidden_size"), table.count("intermediate_size")
    layers = table.count("num_hidden_layers") * (4 * width**2 + 3 * width * inner + 2 * width)
    merge = outer.optional_count("spatial_merge_size") or 2
    projection = width + merge**2 * width**2 + width * hidden_size + hidden_size**2
    bias = 2 * hidden_size if outer.flag("multimodal_projector_bias", default=False) else 0
    return 3 * table.count("patch_size") ** 2 * width + width + layers + projection + bias


def _qwen2(table: Fields, _: Fields, __: int) -> int:
    """Qwen2-VL's encoder: patches in time without a bias, layers, and a merger of four patches."""
    width, out = table.count("embed_dim"), table.count("hidden_size")
    inner = int(min(table.real("mlp_ratio", 4.0), 64.0) * width)
    layers = table.count("depth") * _plain_layer(width, inner)
    return _merged_patches(table, width, out) + layers + 2 * width


def _qwen2_5(table: Fields, _: Fields, __: int) -> int:
    """Qwen2.5-VL's encoder: the same with gated MLPs and RMS norms."""
    width, inner = table.count("hidden_size"), table.count("intermediate_size")
    layer = 4 * (width + 1) * width + 3 * width * inner + 2 * inner + width + 2 * width
    return (
        _merged_patches(table, width, table.count("out_hidden_size")) + table.count("depth") * layer + width
    )


def _merged_patches(table: Fields, width: int, out: int) -> int:
    """Patches of a few frames on the way in, and the merger's two matrices on the way out."""
    channels = table.optional_count("in_channels") or table.optional_count("in_chans") or 3
    voxels = channels * table.count("temporal_patch_size") * table.count("patch_size") ** 2
    merged = width * table.count("spatial_merge_size") ** 2
    return voxels * width + merged * (merged + 1) + (merged + 1) * out


def _kimi(table: Fields, _: Fields, hidden_size: int) -> int:
    """Kimi K2.5's encoder: a grid of learned positions, layers, and a merger of neighbouring patches."""
    names = {key: table.optional_count(f"vt_{key}") for key in (*_SIZES, "num_hidden_layers")}
    sized = table.over(names)
    width, inner = sized.count("hidden_size"), sized.count("intermediate_size")
    rows, columns = (
        sized.optional_count(f"init_{name}") or sized.count(name)
        for name in ("pos_emb_height", "pos_emb_width")
    )
    kernel = sized.counts("merge_kernel_size", least=1) or [2, 2]
    merged = width * math.prod(kernel)
    layers = sized.count("num_hidden_layers") * _plain_layer(width, inner)
    embedding = (3 * sized.count("patch_size") ** 2 + 1) * width + rows * columns * width
    return embedding + layers + 4 * width + merged * (merged + 1) + (merged + 1) * hidden_size


_Count = Callable[[Fields, Fields, int], int]
_SIZES: Final = ("hidden_size", "intermediate_size", "patch_size")
#: The beginning of an encoder's model_type -> its counter and the keys that it needs.
_KNOWN: Final[Mapping[str, tuple[_Count, tuple[str, ...]]]] = {
    "siglip_vision": (_siglip, (*_SIZES, "num_hidden_layers", "image_size")),
    "gemma4_vision": (_gemma4, (*_SIZES, "num_hidden_layers", "head_dim", "position_embedding_size")),
    "gemma4_audio": (
        _gemma4_audio,
        ("hidden_size", "num_attention_heads", "conv_kernel_size", "output_proj_dims", "num_hidden_layers"),
    ),
    "llama4_vision": (
        _llama4,
        (*_SIZES, "num_hidden_layers", "image_size", "projector_input_dim", "vision_output_dim"),
    ),
    "pixtral": (_pixtral, (*_SIZES, "num_hidden_layers")),
    "qwen2_vl": (_qwen2, ("embed_dim", "depth", "patch_size", "temporal_patch_size", "spatial_merge_size")),
    "qwen2_5_vl": (
        _qwen2_5,
        (*_SIZES, "depth", "out_hidden_size", "temporal_patch_size", "spatial_merge_size"),
    ),
    "kimi_k25": (_kimi, ("patch_size", "merge_kernel_size")),
    "qwen3": (
        _qwen3,
        (*_SIZES, "depth", "out_hidden_size", "num_position_embeddings", "temporal_patch_size"),
    ),
}
