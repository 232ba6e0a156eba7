"""What a model's files may hold beside the model itself: draft modules, a head stored twice, scales.

None of it is in a count of parameters; a published total may contain some of it, so each part is named
with its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from core.catalog.families.family import Family
from core.catalog.fields import Fields
from core.catalog.model import CompressedAttention, Layer, ModelSpec, Part
from core.catalog.tensors import Weight, layer_weights, outer_weights

DRAFT: Final = "draft module (MTP)"
DRAFT_COPIES: Final = "the draft module's copies of the input table and the head"
SCALES: Final = "fp8 block scales"
DRAFT_SCALES: Final = "fp8 block scales of the draft module"
TIED_COPY: Final = "the stored copy of the tied head"
ROTARY: Final = "rotary frequency buffers"


def extras(spec: ModelSpec, family: Family, fields: Fields, config: Mapping[str, object]) -> tuple[Part, ...]:
    """The parts that can be told from a config; a size of None where it does not tell the size."""
    return (
        *_tied_copy(spec),
        *_rotary(spec),
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


def _draft(spec: ModelSpec, family: Family, fields: Fields) -> tuple[Part, ...]:
    """Modules that guess further tokens: a layer each, and the matrix that joins their two inputs."""
    modules = fields.quiet_number("num_nextn_predict_layers", 0)
    if not modules:
        return ()
    if family.draft == "none":
        return (Part(DRAFT, None),)
    hidden = spec.hidden_size
    head = sum(part.parameters or 0 for part in spec.others)  # each module ends like the model
    size = sum(weight.count for weight in _tensors(_draft_layer(spec), hidden)) + head
    draft = Part(DRAFT, modules * (size + 2 * hidden**2 + 3 * hidden))
    if family.draft == "qwen":
        return (draft,)
    return (draft, Part(DRAFT_COPIES, 2 * modules * spec.vocab_size * hidden))


def _draft_layer(spec: ModelSpec) -> Layer:
    """The layer of a draft module: like the last that keeps a cache, without compression."""
    layer = next(
        (layer for layer in reversed(spec.layers) if layer.mixer is not None and layer.mixer.cache_vectors),
        spec.layers[-1],
    )
    if isinstance(layer.mixer, CompressedAttention):
        return replace(layer, mixer=replace(layer.mixer, ratio=0, series=1, indexer=None))
    return layer


def _tensors(layer: Layer, hidden: int) -> Iterable[Weight]:
    return (weight for group in layer_weights(layer, hidden).values() for weight in group)


def _scales(
    spec: ModelSpec, family: Family, fields: Fields, config: Mapping[str, object]
) -> tuple[Part, ...]:
    """One scale a block of the matrices that the publisher stores in fp8."""
    table = Fields(config).table("quantization_config")
    block = table.counts("weight_block_size", least=1) if table else None
    if table is None or table.text("quant_method") != "fp8" or block is None or len(block) != 2:
        return ()
    rows, columns = block
    hidden = spec.hidden_size

    def scales(weights: Iterable[Weight]) -> int:
        return sum(
            weight.copies * -(-weight.out_features // rows) * -(-weight.in_features // columns)
            for weight in weights
            if weight.role in {"linear", "expert"}
        )

    own = {layer: scales(_tensors(layer, hidden)) for layer in dict.fromkeys(spec.layers)}
    parts = [Part(SCALES, sum(own[layer] for layer in spec.layers))]
    modules = fields.quiet_number("num_nextn_predict_layers", 0)
    if modules and family.draft == "deepseek":
        layer = _draft_layer(spec)
        # The joining matrix is stored in 16 bits, except where it is two matrices (hyper-connections).
        joining = [Weight("linear", hidden, hidden, copies=2)] if layer.streams > 1 else []
        parts.append(Part(DRAFT_SCALES, modules * scales([*_tensors(layer, hidden), *joining])))
    return tuple(parts)
