"""What a model's files hold beside the model itself: draft modules, a head stored twice, scales.

None of it is in a count of parameters; a published total may contain some of it, so each part is named
with its size.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.catalog.families.family import Family
from core.catalog.fields import Fields
from core.catalog.model import CompressedAttention, Layer, ModelSpec, Part
from core.catalog.tensors import layer_weights, outer_weights


def extras(spec: ModelSpec, family: Family, fields: Fields, config: Mapping[str, object]) -> tuple[Part, ...]:
    """The parts that can be told from a config."""
    return (*_draft(spec, family, fields), *_scales(spec, Fields(config, [])))


def _draft(spec: ModelSpec, family: Family, fields: Fields) -> tuple[Part, ...]:
    """Modules that guess further tokens (MTP): a layer each, with the matrix that joins two inputs."""
    modules = fields.number_or("num_nextn_predict_layers", 0)
    if not modules:
        return ()
    if family.draft == "none":
        return (Part("draft module (MTP)", None),)
    size = _size(draft_layer(spec), spec.hidden_size) + 2 * spec.hidden_size**2 + 3 * spec.hidden_size
    return (Part("draft module (MTP)", modules * size),)


def draft_layer(spec: ModelSpec) -> Layer:
    """The layer of a draft module: like the last that attends, without compression."""
    for layer in reversed(spec.layers):
        mixer = layer.mixer
        if isinstance(mixer, CompressedAttention):
            continue
        if mixer is not None and mixer.cache_vectors:
            return layer
    return spec.layers[-1]


def _size(layer: Layer, hidden: int) -> int:
    return sum(weight.count for group in layer_weights(layer, hidden).values() for weight in group)


def _scales(spec: ModelSpec, fields: Fields) -> tuple[Part, ...]:
    """One scale a block of the matrices that the publisher stores in fp8."""
    table = fields.table("quantization_config")
    block = table.counts("weight_block_size", least=1) if table else None
    if table is None or table.text("quant_method") != "fp8" or block is None or len(block) != 2:
        return ()
    rows, columns = block
    number = sum(
        weight.copies * -(-weight.out_features // rows) * -(-weight.in_features // columns)
        for layer in spec.layers
        for group in layer_weights(layer, spec.hidden_size).values()
        for weight in group
        if weight.role in {"linear", "expert"}
    )
    return (Part("fp8 block scales", number),)


def tied_copy(spec: ModelSpec) -> Part:
    """The copy of the input table that some files store as the head, where the two are tied."""
    return Part("the stored copy of the tied head", outer_weights(spec)["lm_head"][0].count)
