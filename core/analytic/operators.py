"""The operators of one forward pass: what each computes, keeps and moves.

One row per operator and kind of layer, in execution order; identical layers are one row with
``repeats``. The engine has the same operators under the same names, so that a prediction and a
measurement meet row by row.

The letters are those of ``core.catalog.model``: B sequences, T new tokens each, S context each (the
new ones included), M = B * T rows. A linear operator with an ``[out, in]`` matrix does
``2 * M * out * in`` FLOPs; attention does ``4 * H * D`` per pair of a query and a token it sees.

Left out, in every row: FLOPs outside matrix products (norms, softmax, rotary, additions; under one
in a hundred, and never what limits), bytes of token ids and rotary tables, and the scratch memory
inside a fused kernel. Activations count once in and once out of each operator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from core.analytic.kv_cache import token_bytes
from core.analytic.pairs import causal_pairs, floats, visible_tokens
from core.analytic.params import Weight, WeightPlan, layer_kinds, layer_weights, outer_weights, weight_plan
from core.analytic.table import Kind, Operators, Row
from core.catalog.formats import number_format
from core.catalog.model import Attention, Layer, ModelSpec
from core.errors import ScenarioError
from core.units import FLOPS_PER_MAC, Number

#: Multiply-accumulates for each query-token pair and feature: one for the score, one for the value.
_ATTENTION_PRODUCTS: Final = 2


def operators(
    model: ModelSpec,
    *,
    batch: Number,
    new_tokens: Number,
    context: Number,
    weights: str,
    kv: str,
    logit_rows: Number | None = None,
) -> Operators:
    """Build the operator table of one forward pass of ``batch`` equal sequences.

    A prefill from empty has ``context == new_tokens``; a decode step has ``new_tokens == 1``. Any of
    batch, new tokens, context and logit rows may be arrays that broadcast: a sweep is one call.

    Args:
        model: the decoder's shape.
        batch: sequences in the pass.
        new_tokens: tokens of each that go through the model.
        context: tokens of each that attention can look at, the new ones included.
        weights: id of the weight format.
        kv: id of the cache's format.
        logit_rows: rows that the head computes, over all sequences; one a sequence unless given.

    Raises:
        FormatError: a format is unknown or not for this use.
        ScenarioError: a count is below one, or the context is shorter than the new tokens.

    >>> from core.catalog.models import model
    >>> formats = {"weights": "bf16", "kv": "bf16"}
    >>> step = operators(model("llama-3.1-8b"), batch=1, new_tokens=1, context=8192, **formats)
    >>> float(step.total("weight_streamed_bytes")), float(step.total("kv_read_bytes"))
    (15009857536.0, 1073741824.0)
    """
    _check(batch, new_tokens, context)
    plan = weight_plan(weights, model)
    pass_ = _Pass(
        plan=plan,
        kv=number_format(kv, "kv").id,
        hidden=model.hidden_size,
        batch=floats(batch),
        new_tokens=floats(new_tokens),
        context=floats(context),
        logit_rows=floats(batch if logit_rows is None else logit_rows),
        element=int(plan.vector.vector_bytes(1)),
    )
    rows = [_embedding(model, pass_)]
    for layer, repeats in layer_kinds(model):
        rows += _layer(layer, repeats, pass_)
    return Operators.build(rows + _ending(model, pass_))


@dataclass(frozen=True, slots=True)
class _Pass:
    """What all rows of one table share; counts are floats or arrays of them."""

    plan: WeightPlan
    kv: str
    hidden: int
    batch: Number
    new_tokens: Number
    context: Number
    logit_rows: Number
    element: int

    @property
    def tokens(self) -> Number:
        """M: rows that go through the layers."""
        return self.batch * self.new_tokens

    @property
    def activation(self) -> str:
        """The format of everything between the matrices."""
        return self.plan.vector.id

    def moved(self, features: int) -> Number:
        """Bytes of activations of ``features`` a token."""
        return self.tokens * (features * self.element)


def _check(batch: Number, new_tokens: Number, context: Number) -> None:
    for name, value in (("batch", batch), ("new tokens", new_tokens), ("context", context)):
        if not np.all(np.asarray(value) >= 1):  # also false for a NaN
            raise ScenarioError(f"The {name} must be 1 or more; got {np.min(value)}.")
    if np.any(np.asarray(context) < np.asarray(new_tokens)):
        raise ScenarioError("The context must include the new tokens; it is shorter than they are.")


def _bytes(weights: tuple[Weight, ...], plan: WeightPlan) -> int:
    return sum(plan.bytes_of(weight) for weight in weights)


def _embedding(model: ModelSpec, pass_: _Pass) -> Row:
    """The lookup: the whole table is kept, only the rows of the new tokens are read."""
    (table,) = outer_weights(model)["embedding"]
    row_bytes = pass_.plan.bytes_of(Weight("table", 1, table.in_features))
    return Row(
        "embedding",
        "lookup",
        pass_.plan.table.id,
        1,
        pass_.tokens,
        weight_stored_bytes=pass_.plan.bytes_of(table),
        weight_streamed_bytes=np.minimum(pass_.tokens, table.out_features) * row_bytes,
        activation_bytes=pass_.moved(pass_.hidden),
    )


def _layer(layer: Layer, repeats: int, pass_: _Pass) -> list[Row]:
    weights = layer_weights(layer, pass_.hidden)
    attention, width = layer.attention, layer.mlp.intermediate_size
    heads = attention.query_features + attention.kv_features

    def simple(name: str, kind: Kind, features: int) -> Row:
        kept = _bytes(weights.get(name, ()), pass_.plan)
        return Row(
            name,
            kind,
            pass_.activation,
            repeats,
            pass_.tokens,
            weight_stored_bytes=kept,
            weight_streamed_bytes=kept,
            activation_bytes=pass_.moved(features),
        )

    def linear(name: str) -> Row:
        return _linear(name, weights[name], repeats, pass_, pass_.tokens)

    return [
        simple("attention_norm", "norm", 2 * pass_.hidden),
        linear("qkv"),
        *([simple("qk_norm", "norm", 2 * heads)] if attention.qk_norm else []),
        simple("rope", "rope", 2 * heads),
        *_attention(attention, repeats, pass_),
        linear("output"),
        simple("attention_residual", "elementwise", 3 * pass_.hidden),
        simple("mlp_norm", "norm", 2 * pass_.hidden),
        linear("gate_up"),
        simple("activation", "elementwise", 3 * width),
        linear("down"),
        simple("mlp_residual", "elementwise", 3 * pass_.hidden),
    ]


def _linear(name: str, weights: tuple[Weight, ...], repeats: int, pass_: _Pass, rows: Number) -> Row:
    """One matrix product of ``rows`` rows; its bias, where it has one, is read with it."""
    matrix = weights[0]
    kept = _bytes(weights, pass_.plan)
    return Row(
        name,
        "linear",
        pass_.plan.format_of(matrix.role).id,
        repeats,
        rows,
        flops=rows * (FLOPS_PER_MAC * matrix.count),
        weight_stored_bytes=kept,
        weight_streamed_bytes=kept,
        activation_bytes=rows * ((matrix.in_features + matrix.out_features) * pass_.element),
    )


def _attention(attention: Attention, repeats: int, pass_: _Pass) -> list[Row]:
    """Keys and values into the cache, then scores and their weighted sum, fused (no S x S matrix)."""
    new_bytes = token_bytes(attention, pass_.kv)
    features = attention.query_features
    flops_per_pair = _ATTENTION_PRODUCTS * FLOPS_PER_MAC * features
    write = Row(
        "kv_write",
        "kv_write",
        pass_.kv,
        repeats,
        pass_.tokens,
        activation_bytes=pass_.moved(2 * attention.kv_features),
        kv_write_bytes=pass_.tokens * new_bytes,
    )
    attend = Row(
        "attention",
        "attention",
        pass_.kv,
        repeats,
        pass_.tokens,
        flops=pass_.batch * causal_pairs(pass_.new_tokens, pass_.context, attention.window) * flops_per_pair,
        activation_bytes=pass_.moved(2 * features),
        kv_read_bytes=pass_.batch
        * visible_tokens(pass_.new_tokens, pass_.context, attention.window)
        * new_bytes,
    )
    return [write, attend]


def _ending(model: ModelSpec, pass_: _Pass) -> list[Row]:
    """The last norm, the head and the choice of a token; only the rows that need logits."""
    weights = outer_weights(model)
    norm_bytes = _bytes(weights["final_norm"], pass_.plan)
    rows, hidden, vocab = pass_.logit_rows, model.hidden_size, model.vocab_size
    head = _linear("lm_head", weights["lm_head"], 1, pass_, rows)
    norm = Row(
        "final_norm",
        "norm",
        pass_.activation,
        1,
        rows,
        weight_stored_bytes=norm_bytes,
        weight_streamed_bytes=norm_bytes,
        activation_bytes=rows * (2 * hidden * pass_.element),
    )
    sample = Row(
        "sample", "sample", pass_.activation, 1, rows, activation_bytes=rows * (vocab * pass_.element)
    )
    if pass_.plan.shared_table:
        # A tied head reads the embedding's matrix, which already counts the memory.
        head = replace(head, weight_stored_bytes=0)
    return [norm, head, sample]
