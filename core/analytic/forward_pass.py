"""What all rows of one operator table share, and the rows that most operators are.

The builders of mixers and feed-forward parts (``attention_rows``, ``state_rows``,
``feed_forward_rows``) take a ``ForwardPass`` and a layer's tensors and give back rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from core.analytic.collectives import Collective, CollectiveKind
from core.analytic.params import WeightPlan
from core.analytic.table import Kind, Row
from core.catalog.tensors import Weight, Weights
from core.units import FLOPS_PER_MAC, Number

#: Latent attention multiplies queries into the latent space ("absorbed"), or makes keys and values of
#: all heads from the latents of the whole context ("expanded").
LatentForm = Literal["absorbed", "expanded"]


@dataclass(frozen=True, slots=True)
class Split:
    """What one chip holds of a layer whose records are already its own share of the heads.

    Attributes:
        tensor: chips that share each matrix. expert: chips that share the experts.
        pooled: replicas whose tokens meet at the same experts.
        context: chips that share the tokens of a sequence's cache.
        sequence: chips that share the tokens of norms and residuals, 1 or as many as share a matrix.
        expert_spread: chips from the first to the last that share the experts.
    """

    tensor: int = 1
    expert: int = 1
    pooled: int = 1
    context: int = 1
    sequence: int = 1
    expert_spread: int = 1


#: One chip holds everything.
WHOLE: Final = Split()


@dataclass(frozen=True)
class ForwardPass:
    """What all rows of one table share; counts are floats or arrays of them.

    Attributes:
        plan: the format of each tensor. kv: the cache's format. hidden: E.
        batch, new_tokens, context, logit_rows: as ``operators`` takes them.
        activation: the format of everything between the matrices. element: bytes of one activation.
        latent: how latent attention is computed.
        split: what one chip holds.
    """

    plan: WeightPlan
    kv: str
    hidden: int
    batch: Number
    new_tokens: Number
    context: Number
    logit_rows: Number
    activation: str
    element: int
    latent: LatentForm = "absorbed"
    split: Split = WHOLE

    @cached_property
    def tokens(self) -> Number:
        """M: rows that go through the layers."""
        return self.batch * self.new_tokens

    def moved(self, features: float) -> Number:
        """Bytes of activations of ``features`` a token."""
        return self.tokens * (features * self.element)


@dataclass(frozen=True, slots=True)
class LayerRows:
    """Makes the rows of one kind of layer: its tensors, how often it comes, and the pass."""

    weights: Weights
    repeats: int
    forward: ForwardPass

    def linear(self, *names: str, rows: Number | None = None) -> list[Row]:
        """The matrix products of the named operators that the layer has."""
        return [
            linear_row(name, self.weights[name], self.repeats, self.forward, rows)
            for name in names
            if name in self.weights
        ]

    def simple(self, name: str, kind: Kind, features: float) -> Row:
        """An operator that moves ``features`` activations a token, and reads its tensors if it has any."""
        kept = bytes_of(self.weights.get(name, ()), self.forward.plan, name)
        return Row(
            name,
            kind,
            self.forward.activation,
            self.repeats,
            self.forward.tokens,
            weight_stored_bytes=kept,
            weight_streamed_bytes=kept,
            activation_bytes=self.forward.moved(features),
        )

    def norm(self, name: str, width: float) -> list[Row]:
        """A norm over ``width`` features, in and out."""
        return [self.simple(name, "norm", 2 * width)]

    def exchange(
        self, name: str, kind: CollectiveKind, ranks: int, message_bytes: Number, spread: int = 0
    ) -> list[Row]:
        """What chips send each other at this place; nothing where there is one."""
        collective = Collective(kind, ranks, spread)
        return exchange_rows(name, collective, self.repeats, self.forward, message_bytes)


def exchange_rows(
    name: str, collective: Collective, repeats: int, forward: ForwardPass, message_bytes: Number
) -> list[Row]:
    """The row of a collective; none where one chip is alone."""
    if collective.ranks == 1:
        return []
    sent = collective.wire_bytes(message_bytes)
    return [
        Row(
            name,
            "collective",
            forward.activation,
            repeats,
            forward.tokens,
            link_bytes=sent,
            collective=collective,
        )
    ]


def bytes_of(weights: Iterable[Weight], plan: WeightPlan, operator: str = "") -> int:
    """Bytes that some tensors of an operator take, scales included."""
    return sum(plan.bytes_of(weight, operator) for weight in weights)


def linear_row(
    name: str, weights: tuple[Weight, ...], repeats: int, forward: ForwardPass, rows: Number | None = None
) -> Row:
    """Matrix products of ``rows`` rows (M unless given); biases are read with their matrix.

    Where an operator has several matrices, each is one product of all rows.
    """
    count = forward.tokens if rows is None else rows
    matrices = [weight for weight in weights if weight.role != "vector"]
    kept = bytes_of(weights, forward.plan, name)
    features = sum(weight.copies * (weight.in_features + weight.out_features) for weight in matrices)
    return Row(
        name,
        "linear",
        forward.plan.format_of(matrices[0].role).id,
        repeats,
        count,
        flops=count * (FLOPS_PER_MAC * sum(weight.count for weight in matrices)),
        weight_stored_bytes=kept,
        weight_streamed_bytes=kept,
        activation_bytes=count * (features * forward.element),
    )
