"""What a model's files may hold beside the model itself: draft modules, a head stored twice, scales.

None of it is in a count of parameters; a published total may contain some of it, so each part is named
with its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from core.catalog.families.family import Family
from core.catalog.families.parts import dense
from core.catalog.fields import Fields
from core.catalog.model import CompressedAttention, Layer, ModelSpec, Part
from core.catalog.tensors import Weight, Weights, layer_weights, outer_weights

DRAFT: Final = "draft module (MTP)"
DRAFT_COPIES: Final = "the draft module's copies of the input table and the head"
SCALES: Final = "fp8 block scales"
DRAFT_SCALES: Final = "fp8 block scales of the draft module"
TIED_COPY: Final = "the stored copy of the tied head"
ROTARY: Final = "rotary frequency buffers"
SHARDS: Final = "the training program's copies on eight devices"

#: Devices over which GPT-J's training program split a replica; each kept whole norms and output biases, and
#: the input table had a bias. https://github.com/kingoflolz/mesh-transformer-jax, read 2026-11-29
_SHARDS: Final = 8
#: Parts in which MiMo's Q, K and V were quantised; no block reaches into the next. Inferred from the
#: total of its files: its keys of 192 features end within a block.
_FUSED_PARTS: Final = 4


def extras(spec: ModelSpec, family: Family, fields: Fields, config: Mapping[str, object]) -> tuple[Part, ...]:
    """The parts that can be told from a config; a size of None where it does not tell the size."""
    return (
        *_tied_copy(spec),
        *_rotary(spec),
        *_shards(spec),
        *_draft(spec, family, fields),
        *_scales(spec, family, fields, config),
    )


def _tied_copy(spec: ModelSpec) -> tuple[Part, ...]:
    """Some files store the input table again as the head, though the two are tied."""
    return (Part(TIED_COPY, outer_weights(spec)["lm_head"][0].count),) if spec.tied_embeddings else ()


def _rotary(spec: ModelSpec) -> tuple[Part, ...]:
    """Early Llama files hold half a head's dimension of frequencies in every layer."""
    if spec.model_type != "llama":
        return ()
    return (Part(ROTARY, sum(layer.attention.head_dim // 2 for layer in spec.layers)),)


def _shards(spec: ModelSpec) -> tuple[Part, ...]:
    """What the total of GPT-J's card counts more than once: it is that of the program, not of the files."""
    if spec.model_type != "gptj":
        return ()
    hidden = spec.hidden_size
    whole = spec.num_layers * (spec.norm.values(hidden) + hidden) + spec.norm.values(hidden)
    return (Part(SHARDS, (_SHARDS - 1) * whole + _SHARDS * hidden),)


def _draft(spec: ModelSpec, family: Family, fields: Fields) -> tuple[Part, ...]:
    """Modules that guess further tokens: a layer each, and the matrix that joins their two inputs."""
    modules = fields.quiet_number("num_nextn_predict_layers", 0)
    if not modules:
        return ()
    if family.draft == "none":
        return (Part(DRAFT, None),)
    hidden = spec.hidden_size
    head = sum(part.parameters or 0 for part in spec.others)  # each module ends like the model
    layer = _draft_layer(spec, family, fields)
    size = sum(weight.count for weight in _tensors(layer_weights(layer, hidden))) + head
    draft = Part(DRAFT, modules * (size + 2 * hidden**2 + 3 * hidden))
    if family.draft != "deepseek":  # the model's own table and head are used
        return (draft,)
    return (draft, Part(DRAFT_COPIES, 2 * modules * spec.vocab_size * hidden))


def _draft_layer(spec: ModelSpec, family: Family, fields: Fields) -> Layer:
    """The layer of a draft module: like the last that keeps a cache, without compression.

    MiMo's have a window and no experts.
    """
    cached = [layer for layer in spec.layers if layer.mixer is not None and layer.mixer.cache_vectors]
    if family.draft == "mimo":
        windowed = next((layer for layer in cached if layer.mixer and layer.mixer.span), spec.layers[-1])
        return replace(windowed, feed_forward=dense(fields))
    layer = cached[-1] if cached else spec.layers[-1]
    if isinstance(layer.mixer, CompressedAttention):
        return replace(layer, mixer=replace(layer.mixer, ratio=0, series=1, indexer=None))
    return layer


def _tensors(weights: Weights) -> Iterable[Weight]:
    return (weight for group in weights.values() for weight in group)


def _scales(
    spec: ModelSpec, family: Family, fields: Fields, config: Mapping[str, object]
) -> tuple[Part, ...]:
    """One scale a block of the matrices that the publisher stores in fp8."""
    table = Fields(config).table("quantization_config")
    block = table.counts("weight_block_size", least=1) if table else None
    if table is None or table.text("quant_method") != "fp8" or block is None or len(block) != 2:
        return ()
    hidden, without = spec.hidden_size, _sixteen_bit(table, family)
    parts = _FUSED_PARTS if family.draft == "mimo" else 1

    def scales(layer: Layer) -> int:
        weights = layer_weights(layer, hidden)
        return sum(
            _blocks(weight, block, parts if name == "qkv" else 1)
            for name, group in weights.items()
            if name not in without
            for weight in group
        )

    own = {layer: scales(layer) for layer in dict.fromkeys(spec.layers)}
    found = [Part(SCALES, sum(own[layer] for layer in spec.layers))]
    modules = fields.quiet_number("num_nextn_predict_layers", 0)
    if modules and family.draft in {"deepseek", "mimo"}:
        layer = _draft_layer(spec, family, fields)
        # The joining matrix is stored in 16 bits, except where it is two matrices (hyper-connections).
        joining = Weight("linear", hidden, hidden, copies=2 if layer.streams > 1 else 0)
        found.append(Part(DRAFT_SCALES, modules * (scales(layer) + _blocks(joining, block, 1))))
    return tuple(found)


def _sixteen_bit(table: Fields, family: Family) -> set[str]:
    """Operators whose matrices the config names as left in 16 bits, in every layer; only one is in use.

    Copies of MiMo's config often lack the list.
    """
    names = table.texts("ignored_layers") or []
    named = any(name.endswith("self_attn.o_proj") for name in names)
    return {"output"} if named or family.draft == "mimo" else set()


def _blocks(weight: Weight, block: list[int], parts: int) -> int:
    """Blocks of a matrix whose rows are cut into so many parts first; none of what is kept in 16 bits."""
    if weight.role not in {"linear", "expert"}:
        return 0
    rows, columns = block
    return (
        weight.copies * parts * -(-weight.out_features // (parts * rows)) * -(-weight.in_features // columns)
    )
