"""Parameters: how many there are, in which format each is kept, and how many bytes that takes.

Which tensors a model has is a fact of the catalogue (``core.catalog.tensors``); counts and byte sizes
are sums over that list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from core.catalog.formats import STORAGE_FORMATS, NumberFormat, number_format
from core.catalog.mixes import Finer, MixedPart, mixes
from core.catalog.model import Attention, Layer, ModelSpec, MoE
from core.catalog.tensors import Role, Weight, layer_weights, outer_weights

__all__ = [
    "ParameterCount",
    "Role",
    "Weight",
    "WeightPlan",
    "count",
    "layer_kinds",
    "layer_weights",
    "outer_weights",
    "stored_bytes",
    "weight_plan",
]


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """Which format each role is kept in.

    Attributes:
        linear: the layers' matrices. head: the matrix that makes logits.
        table: the input embedding, read row by row. vector: norms, biases, routers, convolutions.
        shared_table: the head and the table are one tensor in memory.
        expert: the experts' matrices; None where they are like the others.
        finer: of mixed files, operators part of whose matrices are in another format: that format, and its
            share over all layers.
    """

    linear: NumberFormat
    head: NumberFormat
    table: NumberFormat
    vector: NumberFormat
    shared_table: bool
    expert: NumberFormat | None = None
    finer: Mapping[str, tuple[NumberFormat, float]] = field(default_factory=dict)

    def bytes_of(self, weight: Weight, operator: str = "") -> int:
        """Bytes that one tensor of an operator takes, scales and all copies included.

        A quantised table has one scale a row, like a quantised head. In a mixed file it is the mean over
        the layers, to the byte.
        """
        one = int(self.format_of(weight.role).matrix_bytes(weight.out_features, weight.in_features))
        if operator in self.finer and weight.role in {"linear", "expert"}:
            record, share = self.finer[operator]
            other = int(record.matrix_bytes(weight.out_features, weight.in_features))
            one = round((1 - share) * one + share * other)
        return weight.copies * one

    def format_of(self, role: Role) -> NumberFormat:
        """The format of a role."""
        if role == "linear":
            return self.linear
        if role == "expert":
            return self.expert or self.linear
        if role == "head":
            return self.head
        return self.table if role == "table" else self.vector


#: The head is kept finer than the layers where they are very coarse: it decides the token.
_HEAD_FORMAT: Final[dict[str, str]] = {"int4": "int8", "fp8-weight-only": "bf16", "fp8-dynamic": "bf16"}
#: A head whose matrix is packed for a kernel cannot be read row by row, so the table is kept apart.
_TABLE_FORMAT: Final[dict[str, str]] = {"int8-dynamic": "int8"}
#: Formats of files that are quantised from end to end; serving formats leave head and table alone.
_EVERYWHERE: Final = ("q", "iq", "tq", "mlx")


def weight_plan(weights: str, model: ModelSpec) -> WeightPlan:
    """Say in which format each tensor of a model is kept when its weights are in ``weights``.

    The layers' matrices are in the format itself. Of the engine's formats, the head is too, except beside
    int4, where it is int8, and fp8, where it is bf16; the table has the head's format, and shares its memory
    where embeddings are tied, except beside int8-dynamic, whose head is packed: the table is then int8 rows
    of its own. GGUF and MLX formats hold for head and table as well; serving formats (GPTQ, fp8 and so on)
    leave both in the format of the activations. Where the publisher stores only the experts in this format,
    only they have it. A mixed file ("q4_k_m") follows its recipe. Norms, biases and routers are in the format
    of the activations.

    Args:
        weights: id of the weight format.
        model: whose embeddings may be tied, and whose experts may have a format of their own.

    Raises:
        FormatError: the format is unknown, or not one for weights.

    >>> from core.catalog.models import model
    >>> plan = weight_plan("int4", model("smollm2-135m"))
    >>> plan.head.id, plan.vector.id, plan.shared_table
    ('int8', 'bf16', True)
    """
    stated = number_format(weights, "weights")
    plain = STORAGE_FORMATS[stated.activations]
    if stated.engine:
        head = STORAGE_FORMATS[_HEAD_FORMAT.get(weights, weights)]
    else:
        head = stated if weights.startswith(_EVERYWHERE) else plain
    parts = {finer.part: finer for finer in mixes().get(weights, ())}
    if "head" in parts:
        head = STORAGE_FORMATS[parts["head"].format]
    # Of a mixed file the table is like most tensors, unless it is the head as well.
    apart = weights in mixes() and not model.tied_embeddings
    table = stated if apart else STORAGE_FORMATS[_TABLE_FORMAT.get(head.id, head.id)]
    only_experts = any(
        isinstance(layer.feed_forward, MoE) and layer.feed_forward.expert_format == weights
        for layer, _ in layer_kinds(model)
    )
    return WeightPlan(
        linear=plain if only_experts else stated,
        head=head,
        table=table,
        vector=plain,
        shared_table=model.tied_embeddings and table == head,
        expert=stated if only_experts else None,
        finer=_finer(parts, model),
    )


def _finer(parts: Mapping[MixedPart, Finer], model: ModelSpec) -> Mapping[str, tuple[NumberFormat, float]]:
    """The exceptions of a mix by the operator that reads them; values are a part of QKV."""
    found: dict[str, tuple[NumberFormat, float]] = {}
    if "down" in parts:
        down = parts["down"]
        share = down.share(model.num_layers)
        names = ("down", "shared_down", "experts_down")
        found |= dict.fromkeys(names, (STORAGE_FORMATS[down.format], share))
    mixers = [layer.mixer for layer in model.layers if isinstance(layer.mixer, Attention)]
    if "value" in parts and mixers and mixers[0].kv_projection == "separate":
        value, mixer = parts["value"], mixers[0]
        rows = mixer.value_features / mixer.qkv_features
        found["qkv"] = (STORAGE_FORMATS[value.format], rows * value.share(model.num_layers))
    return found


def layer_kinds(model: ModelSpec) -> list[tuple[Layer, int]]:
    """Each kind of layer and how many there are of it, in order; most models have one kind.

    >>> from core.catalog.models import model
    >>> [repeats for _, repeats in layer_kinds(model("llama-3.1-8b"))]
    [32]
    """
    kinds: list[Layer] = []
    repeats: list[int] = []
    for layer in model.layers:  # comparing is much cheaper than hashing, and there are few kinds
        if layer in kinds:
            repeats[kinds.index(layer)] += 1
        else:
            kinds.append(layer)
            repeats.append(1)
    return list(zip(kinds, repeats, strict=True))


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """How many parameters a model has, each trained tensor once.

    Attributes:
        total: all of them. active: those touched for one token of text: of the experts those that a
            token is sent to, and no towers.
        embedding: the input table. head: the output matrix; 0 where it is the table.
        attention: what moves information between tokens (attention, state spaces) with its biases.
        mlp: dense parts, experts and routers. norms: all norm vectors.
        other: tables of positions, second input tables, and small tensors of no operator.
        towers: vision and audio encoders with their projections.
    """

    total: int
    active: int
    embedding: int
    head: int
    attention: int
    mlp: int
    norms: int
    other: int = 0
    towers: int = 0


def count(model: ModelSpec) -> ParameterCount:
    """Count a model's parameters from its shape.

    For a Llama: ``L * (E * (H + 2K) * D + H * D * E + 3 * E * F + 2E) + 2 * V * E + E`` in the letters
    of ``core.catalog.model``; ``V * E`` once where embeddings are tied. Left out, and named in
    ``ModelSpec.extras``: draft modules, scales, computed buffers, a tied head that a file stores twice.

    >>> from core.catalog.models import model
    >>> count(model("llama-3.1-8b")).total
    8030261248
    """
    sums = dict.fromkeys(("embedding", "head", "attention", "mlp", "norms", "other"), 0)
    idle = 0
    for layer, repeats in layer_kinds(model):
        for operator, weights in layer_weights(layer, model.hidden_size).items():
            number = repeats * sum(weight.count for weight in weights)
            sums[_group(operator)] += number
            if operator.startswith("experts_") and isinstance(layer.feed_forward, MoE):
                experts = layer.feed_forward.num_experts
                idle += number // experts * (experts - layer.feed_forward.experts_per_token)
    for operator, weights in outer_weights(model).items():
        kept = weights[1:] if operator == "lm_head" and model.tied_embeddings else weights
        sums[_group(operator, _OUTER)] += sum(weight.count for weight in kept)
    towers = sum(tower.parameters or 0 for tower in model.towers)
    own = sum(sums.values())
    return ParameterCount(total=own + towers, active=own - idle, towers=towers, **sums)


#: Operator -> its part of the count, where the name does not say "norm"; in a layer, attention.
_INNER: Final[dict[str, str]] = {
    **dict.fromkeys(("gate_up", "up", "down", "router", "experts_gate_up", "experts_up"), "mlp"),
    **dict.fromkeys(("experts_down", "shared_gate_up", "shared_up", "shared_down", "shared_gate"), "mlp"),
    **dict.fromkeys(("latent_down", "latent_back"), "mlp"),
    **dict.fromkeys(("stream_mixing", "per_layer_input", "others"), "other"),
}
_OUTER: Final[dict[str, str]] = {"embedding": "embedding", "lm_head": "head"}


def _group(operator: str, names: dict[str, str] | None = None) -> str:
    if operator.endswith("norm"):
        return "norms"
    return _INNER.get(operator, "attention") if names is None else names.get(operator, "other")


def stored_bytes(model: ModelSpec, weights: str) -> int:
    """Bytes that all parameters take in memory, scales included; towers are in the format of the norms.

    >>> from core.catalog.models import model
    >>> stored_bytes(model("llama-3.1-8b"), "bf16")
    16060522496
    """
    plan = weight_plan(weights, model)
    outer = outer_weights(model)
    if plan.shared_table:
        outer["lm_head"] = outer["lm_head"][1:]  # a bias stays
    total = sum(plan.bytes_of(weight) for weight in chain(*outer.values()))
    for layer, repeats in layer_kinds(model):
        for operator, tensors in layer_weights(layer, model.hidden_size).items():
            total += repeats * sum(plan.bytes_of(weight, operator) for weight in tensors)
    towers = sum(tower.parameters or 0 for tower in model.towers)
    return total + int(plan.vector.vector_bytes(towers))
