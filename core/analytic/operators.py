"""The operators of one forward pass: what each computes, keeps and moves.

One row per operator and kind of layer, in execution order; identical layers are one row with
``repeats``. The engine has the same operators under the same names, so that a prediction and a
measurement meet row by row.

The letters are those of ``core.catalog.model``: B sequences, T new tokens each, S context each (the
new ones included), M = B * T rows. A linear operator with an ``[out, in]`` matrix does
``2 * M * out * in`` FLOPs; attention does ``2 * H * (D + Dv)`` per pair of a query and a token it sees,
``Dv`` being D in nearly every model.

Left out, in every row: FLOPs outside matrix products (norms, softmax, rotary, additions; under one
in a hundred, and never what limits), bytes of token ids and rotary tables, and the scratch memory
inside a fused kernel. Activations count once in and once out of each operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from core.analytic.attention_rows import attention_rows, compressed_rows, latent_rows
from core.analytic.feed_forward_rows import feed_forward_rows
from core.analytic.forward_pass import WHOLE, ForwardPass, LatentForm, LayerRows, Split, bytes_of, linear_row
from core.analytic.pairs import floats
from core.analytic.params import Weight, layer_kinds, layer_weights, outer_weights, weight_plan
from core.analytic.state_rows import (
    linear_attention_rows,
    mamba2_rows,
    mamba_rows,
    short_convolution_rows,
)
from core.analytic.table import Operators, Row
from core.catalog.formats import activation_format, number_format
from core.catalog.mixers import Attention, CompressedAttention, LatentAttention
from core.catalog.model import Layer, Mixer, ModelSpec
from core.catalog.state_mixers import LinearAttention, Mamba, Mamba2
from core.catalog.tensors import Weights
from core.errors import ScenarioError
from core.units import Number


def operators(
    model: ModelSpec,
    *,
    batch: Number,
    new_tokens: Number,
    context: Number,
    weights: str,
    kv: str,
    logit_rows: Number | None = None,
    latent: LatentForm = "absorbed",
    activations: str | None = None,
) -> Operators:
    """Build the operator table of one forward pass of ``batch`` equal sequences.

    A prefill from empty has ``context == new_tokens``, a later chunk more context; a decode step has
    ``new_tokens == 1``, one that verifies g drafts ``g + 1``. Counts may be arrays: a sweep is a call.

    Args:
        model: the decoder's shape.
        batch: sequences in the pass.
        new_tokens: tokens of each that go through the model.
        context: tokens of each that attention can look at, the new ones included.
        weights: id of the weight format.
        kv: id of the cache's format.
        logit_rows: rows that the head computes, over all sequences; one a sequence unless given.
        latent: how latent attention is computed; nothing else asks.
        activations: id of the format between operators; the one usual beside the weights unless given.

    Raises:
        FormatError: a format is unknown or not for this use.
        ScenarioError: a count is below one, or the context is shorter than the new tokens.

    >>> from core.catalog.models import model
    >>> formats = {"weights": "bf16", "kv": "bf16"}
    >>> step = operators(model("llama-3.1-8b"), batch=1, new_tokens=1, context=8192, **formats)
    >>> float(step.total("weight_streamed_bytes")), float(step.total("kv_read_bytes"))
    (15009857536.0, 1073741824.0)
    """
    forward = forward_pass(
        model,
        batch=batch,
        new_tokens=new_tokens,
        context=context,
        weights=weights,
        kv=kv,
        logit_rows=logit_rows,
        latent=latent,
        activations=activations,
    )
    return Operators.build(_rows(model, forward))


def _rows(model: ModelSpec, forward: ForwardPass) -> list[Row]:
    outer = outer_weights(model)
    rows = beginning_rows(model, outer, forward)
    for layer, repeats in layer_kinds(model):
        rows += layer_rows(layer, repeats, forward)
    return rows + ending_rows(model, outer, forward)


def forward_pass(
    model: ModelSpec,
    *,
    batch: Number,
    new_tokens: Number,
    context: Number,
    weights: str,
    kv: str,
    logit_rows: Number | None = None,
    latent: LatentForm = "absorbed",
    activations: str | None = None,
    split: Split = WHOLE,
) -> ForwardPass:
    """Check the counts of a pass and gather what its rows share; arguments as ``operators`` takes them.

    Raises:
        FormatError, ScenarioError: as ``operators``.
    """
    counts = {"batch": floats(batch), "new tokens": floats(new_tokens), "context": floats(context)}
    for name, value in counts.items():
        if not _everywhere(value >= 1):  # also false for a NaN
            raise ScenarioError(f"The {name} must be 1 or more; got {np.min(value):g}.")
    if not _everywhere(counts["context"] >= counts["new tokens"]):
        raise ScenarioError("The context must include the new tokens; it is shorter than they are.")
    plan = weight_plan(weights, model)
    between = activation_format(activations or plan.vector.id)
    return ForwardPass(
        plan=plan,
        kv=number_format(kv, "kv").id,
        hidden=model.hidden_size,
        batch=counts["batch"],
        new_tokens=counts["new tokens"],
        context=counts["context"],
        logit_rows=floats(batch if logit_rows is None else logit_rows),
        activation=between.id,
        element=int(between.vector_bytes(1)),
        latent=latent,
        split=split,
    )


def _everywhere(condition: bool | NDArray[np.bool_]) -> bool:
    """Whether it holds at every point of a sweep; one value needs no array, which takes longer."""
    return condition if isinstance(condition, bool) else bool(np.all(condition))


# --- Before and after the layers ------------------------------------------------------------------


def beginning_rows(model: ModelSpec, outer: Weights, forward: ForwardPass) -> list[Row]:
    """The lookups and what is done to their vectors before the first layer."""
    make = LayerRows(outer, 1, forward)
    (table,) = outer["embedding"]
    rows = [
        _lookup("embedding", table, forward),
        *make.exchange(
            "embedding_all_reduce", "all_reduce", forward.split.tensor, forward.moved(table.in_features)
        ),
        *make.linear("embedding_projection"),
    ]
    for name in ("positions", "per_layer_embedding"):
        rows += [_lookup(name, weight, forward) for weight in outer.get(name, ())]
    rows += make.linear("per_layer_projection")
    return rows + (make.norm("embedding_norm", model.hidden_size) if model.embedding_norm else [])


def _lookup(name: str, table: Weight, forward: ForwardPass) -> Row:
    """The whole table is kept, only the rows of the new tokens are read."""
    row_bytes = forward.plan.bytes_of(Weight("table", 1, table.in_features))
    read = np.minimum(forward.tokens / forward.split.tensor, table.out_features)
    return Row(
        name,
        "lookup",
        forward.plan.table.id,
        1,
        forward.tokens,
        weight_stored_bytes=forward.plan.bytes_of(table),
        weight_streamed_bytes=read * row_bytes,
        activation_bytes=forward.moved(table.in_features),
    )


def ending_rows(model: ModelSpec, outer: Weights, forward: ForwardPass) -> list[Row]:
    """The last norm, the head and the choice of a token; only the rows that need logits."""
    rows, vocab = forward.logit_rows, outer["lm_head"][0].out_features
    # These operators see the rows that need logits instead of all tokens.
    ends = replace(forward, batch=rows, new_tokens=1.0, context=1.0)
    make = LayerRows(outer, 1, ends)
    head = linear_row("lm_head", outer["lm_head"], 1, ends)
    if forward.plan.shared_table:
        # A tied head reads the embedding's matrix, which already counts the memory; a bias stays.
        head = head._replace(weight_stored_bytes=bytes_of(outer["lm_head"][1:], forward.plan))
    whole = vocab * forward.split.tensor
    return [
        *(make.norm("final_norm", model.hidden_size) if model.final_norm else []),
        *make.linear("head_projection"),
        *_others(make),
        head,
        *make.exchange("logits_gather", "all_gather", forward.split.tensor, ends.moved(whole)),
        make.simple("sample", "sample", whole),
    ]


# --- One layer ------------------------------------------------------------------------------------


def layer_rows(layer: Layer, repeats: int, forward: ForwardPass) -> list[Row]:
    """The rows of one kind of layer: a mixer, a feed-forward part, or both."""
    make = LayerRows(_layer_weights(layer, forward.hidden), repeats, forward)
    mixed: list[Row] = [] if layer.mixer is None else _mixer_rows(layer.mixer, make)
    fed: list[Row] = [] if layer.feed_forward is None else feed_forward_rows(layer.feed_forward, make)
    first, second = _norms_by_part(layer)
    rows = _part("attention", mixed, first, make) if mixed else []
    if layer.parallel and mixed:
        # Both parts read the layer's input; their sums are added, and reduced over chips, at once.
        shared = {"attention_all_reduce", "attention_all_gather", "attention_reduce_scatter"}
        rows = [row for row in rows if row.name not in shared]
    rows += _part("mlp", fed, second, make) if fed else []
    return rows + make.linear("stream_mixing", "per_layer_input") + _others(make)


@lru_cache(maxsize=1024)
def _layer_weights(layer: Layer, hidden_size: int) -> Weights:
    """The tensors of a kind of layer, remembered: every table of a model asks for them. Only to be read."""
    return layer_weights(layer, hidden_size)


def _norms_by_part(layer: Layer) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The norms around the mixer, and those around the feed-forward part."""
    if layer.feed_forward is None:
        return layer.norms, ()
    if layer.mixer is None:
        return (), layer.norms
    first = tuple(name for name in layer.norms if not name.startswith("mlp"))
    return first, tuple(name for name in layer.norms if name.startswith("mlp"))


def _part(name: str, rows: Sequence[Row], norms: tuple[str, ...], make: LayerRows) -> list[Row]:
    """A part between its norms and its residual; under tensor parallelism its sum goes to all chips.

    Under sequence parallelism a chip norms and adds its share of the tokens: they are gathered before the
    part, and its sum is scattered after it.
    """
    forward, split = make.forward, make.forward.split
    outside = make
    if split.sequence > 1:
        outside = replace(make, forward=replace(forward, batch=forward.batch / split.sequence))
    whole, ranks = forward.moved(forward.hidden), split.tensor
    if split.sequence == 1:
        gather: list[Row] = []
        reduce = make.exchange(f"{name}_all_reduce", "all_reduce", ranks, whole)
    else:
        gather = make.exchange(f"{name}_all_gather", "all_gather", ranks, whole)
        reduce = make.exchange(f"{name}_reduce_scatter", "reduce_scatter", ranks, whole)
    return [
        *(row for norm in norms if "post" not in norm for row in outside.norm(norm, forward.hidden)),
        *gather,
        *rows,
        *reduce,
        *(row for norm in norms if "post" in norm for row in outside.norm(norm, forward.hidden)),
        outside.simple(f"{name}_residual", "elementwise", 3 * forward.hidden),
    ]


def _mixer_rows(mixer: Mixer, make: LayerRows) -> list[Row]:  # noqa: PLR0911 - one return a kind of mixer
    if isinstance(mixer, Attention):
        return attention_rows(mixer, make)
    if isinstance(mixer, LatentAttention):
        return latent_rows(mixer, make)
    if isinstance(mixer, CompressedAttention):
        return compressed_rows(mixer, make)
    if isinstance(mixer, Mamba):
        return mamba_rows(mixer, make)
    if isinstance(mixer, Mamba2):
        return mamba2_rows(mixer, make)
    if isinstance(mixer, LinearAttention):
        return linear_attention_rows(mixer, make)
    return short_convolution_rows(mixer, make)


def _others(make: LayerRows) -> list[Row]:
    """Small tensors that belong to no operator (sinks, a scalar on the output): kept and read."""
    found = [name for name in ("sinks", "others") if name in make.weights]
    return [make.simple(name, "elementwise", 0) for name in found]
