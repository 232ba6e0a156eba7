"""Parameters: how many there are, in which format each is kept, and how many bytes that takes.

Every tensor of a model is listed once, under the operator that reads it. Counts and byte sizes
are sums over that list, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

from core.catalog.formats import FORMATS, NumberFormat, number_format
from core.catalog.model import Layer, ModelSpec

#: What a tensor is for, and so which format it is kept in.
Role = Literal["linear", "head", "table", "vector"]


@dataclass(frozen=True, slots=True)
class Weight:
    """One trained tensor: a matrix of ``[out_features, in_features]``, or a vector (one row)."""

    role: Role
    out_features: int
    in_features: int

    @property
    def count(self) -> int:
        """Its number of parameters."""
        return self.out_features * self.in_features


@dataclass(frozen=True, slots=True)
class WeightPlan:
    """Which format each role is kept in.

    Attributes:
        linear: the layers' matrices. head: the matrix that makes logits.
        table: the input embedding, read row by row. vector: norms and biases.
        shared_table: the head and the table are one tensor in memory.
    """

    linear: NumberFormat
    head: NumberFormat
    table: NumberFormat
    vector: NumberFormat
    shared_table: bool

    def bytes_of(self, weight: Weight) -> int:
        """Bytes that one tensor takes, scales included.

        A quantised table has one scale a row, like a quantised head.
        """
        return int(self.format_of(weight.role).matrix_bytes(weight.out_features, weight.in_features))

    def format_of(self, role: Role) -> NumberFormat:
        """The format of a role."""
        formats = {"linear": self.linear, "head": self.head, "table": self.table, "vector": self.vector}
        return formats[role]


#: The head is kept finer than the layers where they are very coarse: it decides the token.
_HEAD_FORMAT: Final[dict[str, str]] = {"int4": "int8"}
#: A head whose matrix is packed for a kernel cannot be read row by row, so the table is kept apart.
_TABLE_FORMAT: Final[dict[str, str]] = {"int8-dynamic": "int8"}


def weight_plan(weights: str, model: ModelSpec) -> WeightPlan:
    """Say in which format each tensor of a model is kept when its weights are in ``weights``.

    The layers' matrices are in the format itself. The head is too, except beside int4, where it is
    int8. The table has the head's format, and shares its memory where embeddings are tied, except
    beside int8-dynamic, whose head is packed: the table is then int8 rows of its own. Norms and
    biases are in the format of the activations.

    Args:
        weights: id of the weight format.
        model: whose embeddings may be tied.

    Raises:
        FormatError: the format is unknown, or not one for weights.

    >>> from core.catalog.models import model
    >>> plan = weight_plan("int4", model("smollm2-135m"))
    >>> plan.head.id, plan.vector.id, plan.shared_table
    ('int8', 'bf16', True)
    """
    linear = number_format(weights, "weights")
    head = FORMATS[_HEAD_FORMAT.get(weights, weights)]
    table = FORMATS[_TABLE_FORMAT.get(head.id, head.id)]
    return WeightPlan(
        linear=linear,
        head=head,
        table=table,
        vector=FORMATS[linear.activations],
        shared_table=model.tied_embeddings and table == head,
    )


def layer_weights(layer: Layer, hidden_size: int) -> dict[str, tuple[Weight, ...]]:
    """The tensors of one layer, by the operator that reads them; fused where the engine fuses them."""
    attention, mlp = layer.attention, layer.mlp
    width = mlp.intermediate_size
    weights = {
        "attention_norm": (_vector(hidden_size),),
        "qkv": _linear(attention.qkv_features, hidden_size, bias=attention.qkv_bias),
        "qk_norm": (_vector(attention.head_dim), _vector(attention.head_dim)),
        "output": _linear(hidden_size, attention.query_features, bias=attention.output_bias),
        "mlp_norm": (_vector(hidden_size),),
        "gate_up": _linear(2 * width, hidden_size, bias=mlp.bias),
        "down": _linear(hidden_size, width, bias=mlp.bias),
    }
    if not attention.qk_norm:
        del weights["qk_norm"]
    return weights


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


def outer_weights(model: ModelSpec) -> dict[str, tuple[Weight, ...]]:
    """The tensors outside the layers, by operator; a tied head is listed as a tensor of its own."""
    return {
        "embedding": (Weight("table", model.vocab_size, model.hidden_size),),
        "final_norm": (_vector(model.hidden_size),),
        "lm_head": (Weight("head", model.vocab_size, model.hidden_size),),
    }


def _vector(length: int) -> Weight:
    return Weight("vector", 1, length)


def _linear(out_features: int, in_features: int, *, bias: bool) -> tuple[Weight, ...]:
    matrix = Weight("linear", out_features, in_features)
    return (matrix, _vector(out_features)) if bias else (matrix,)


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """How many parameters a model has, each trained tensor once.

    Attributes:
        total: all of them. active: those touched for one token (all, in a dense model).
        embedding: the input table. head: the output matrix; 0 where it is the table.
        attention, mlp: the layers' projections with their biases. norms: all norm vectors.
    """

    total: int
    active: int
    embedding: int
    head: int
    attention: int
    mlp: int
    norms: int


def count(model: ModelSpec) -> ParameterCount:
    """Count a model's parameters from its shape.

    ``L * (E * (H + 2K) * D + H * D * E + 3 * E * F + 2E) + 2 * V * E + E`` without biases, in the
    letters of ``core.catalog.model``; ``V * E`` once where embeddings are tied. Left out: buffers
    that are computed (rotary frequencies), and a tied head that a file stores twice.

    >>> from core.catalog.models import model
    >>> count(model("llama-3.1-8b")).total
    8030261248
    """
    sums = dict.fromkeys(("attention", "mlp", "norms"), 0)
    for layer, repeats in layer_kinds(model):
        for operator, weights in layer_weights(layer, model.hidden_size).items():
            sums[_GROUPS[operator]] += repeats * sum(weight.count for weight in weights)
    outer = outer_weights(model)
    sums["norms"] += sum(weight.count for weight in outer["final_norm"])
    embedding = sum(weight.count for weight in outer["embedding"])
    head = 0 if model.tied_embeddings else sum(weight.count for weight in outer["lm_head"])
    total = embedding + head + sum(sums.values())
    return ParameterCount(total=total, active=total, embedding=embedding, head=head, **sums)


_GROUPS: Final[dict[str, str]] = {
    "attention_norm": "norms",
    "qkv": "attention",
    "qk_norm": "norms",
    "output": "attention",
    "mlp_norm": "norms",
    "gate_up": "mlp",
    "down": "mlp",
}


def stored_bytes(model: ModelSpec, weights: str) -> int:
    """Bytes that all parameters take in memory, scales included.

    >>> from core.catalog.models import model
    >>> stored_bytes(model("llama-3.1-8b"), "bf16")
    16060522496
    """
    plan = weight_plan(weights, model)
    outer = outer_weights(model)
    if plan.shared_table:
        del outer["lm_head"]
    total = sum(plan.bytes_of(weight) for weight in chain(*outer.values()))
    for layer, repeats in layer_kinds(model):
        weights_of_layer = chain(*layer_weights(layer, model.hidden_size).values())
        total += repeats * sum(plan.bytes_of(weight) for weight in weights_of_layer)
    return total
