"""The second half of a layer: one MLP for every token, or a router and its experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from core.engine.kernels import LinearKernel

if TYPE_CHECKING:
    from core.engine.transformer import Operator, Pass


class FeedForward(Protocol):
    """What stands between the second norm and the second residual."""

    def operators(self) -> list[Operator]:
        """Its operators in order; they read ``normed`` and leave their sum there."""

    def kernels(self) -> dict[str, list[LinearKernel]]:
        """The matrices of each operator."""

    def streamed_bytes(self, operator: str) -> int:
        """Bytes of an operator's matrices that a step of one token reads."""


@dataclass(slots=True)
class MLP:
    """Gate and up in one product, then down."""

    gate_up_linear: LinearKernel
    down_linear: LinearKernel

    def operators(self) -> list[Operator]:
        """See ``FeedForward``."""
        methods = (self.gate_up, self.activation, self.down)
        return [(method.__name__, method) for method in methods]

    def kernels(self) -> dict[str, list[LinearKernel]]:
        """See ``FeedForward``."""
        return {"gate_up": [self.gate_up_linear], "down": [self.down_linear]}

    def streamed_bytes(self, operator: str) -> int:
        """See ``FeedForward``."""
        return sum(kernel.num_bytes for kernel in self.kernels()[operator])

    def gate_up(self, x: Pass) -> None:
        """Gate and up projections, in one product."""
        x.wide = self.gate_up_linear(x.normed)

    def activation(self, x: Pass) -> None:
        """``silu(gate) * up``."""
        x.wide = gated(x.wide)

    def down(self, x: Pass) -> None:
        """Back to the width of the stream."""
        x.normed = self.down_linear(x.wide)


@dataclass(frozen=True, slots=True)
class Routing:
    """Which experts the T tokens of a pass go to, k each, sorted by expert.

    Attributes:
        order: [T * k], the place of each row in the unsorted list, in which token t has rows t * k to
            t * k + k - 1. shares: [T * k, 1], how much each row counts, in the sorted order.
        counts: rows of each expert.
    """

    order: Tensor
    shares: Tensor
    counts: list[int]


@dataclass(slots=True)
class Experts:
    """A router picks k of E experts for each token; only these are read.

    The rows of one expert are multiplied together, so an expert is read once for all its tokens. How many
    there are must be known on the host, so every layer waits for its router.

    Attributes:
        router_linear: [E, hidden]. gate_up_linears, down_linears: one for each expert.
        picked: k. normalised: the shares of the picked experts add up to one.
    """

    router_linear: LinearKernel
    gate_up_linears: list[LinearKernel]
    down_linears: list[LinearKernel]
    picked: int
    normalised: bool

    def operators(self) -> list[Operator]:
        """See ``FeedForward``."""
        methods = (
            self.router,
            self.experts_gate_up,
            self.experts_activation,
            self.experts_down,
            self.experts_sum,
        )
        return [(method.__name__, method) for method in methods]

    def kernels(self) -> dict[str, list[LinearKernel]]:
        """See ``FeedForward``."""
        return {
            "router": [self.router_linear],
            "experts_gate_up": self.gate_up_linears,
            "experts_down": self.down_linears,
        }

    def streamed_bytes(self, operator: str) -> int:
        """See ``FeedForward``; experts are of one size."""
        kernels = self.kernels()[operator]
        return sum(kernel.num_bytes for kernel in kernels[: self.picked])

    def router(self, x: Pass) -> None:
        """Softmax over the experts, of which the k largest are picked."""
        likely = torch.softmax(self.router_linear(x.normed).float(), dim=-1)
        shares, experts = likely.topk(self.picked, dim=-1)
        if self.normalised:
            shares = shares / shares.sum(dim=-1, keepdim=True)
        chosen = experts.flatten()
        order = chosen.argsort(stable=True)
        counts: list[int] = chosen.bincount(minlength=len(self.down_linears)).tolist()
        x.routing = Routing(order, shares.flatten()[order].unsqueeze(1).to(x.normed.dtype), counts)
        x.experts_read += sum(count > 0 for count in counts)

    def experts_gate_up(self, x: Pass) -> None:
        """Gate and up projections of each picked expert, on the tokens that picked it."""
        x.wide = _by_expert(self.gate_up_linears, x.normed[x.routing.order // self.picked], x)

    def experts_activation(self, x: Pass) -> None:
        """``silu(gate) * up``."""
        x.wide = gated(x.wide)

    def experts_down(self, x: Pass) -> None:
        """Back to the width of the stream, a row for each token and expert."""
        x.wide = _by_expert(self.down_linears, x.wide, x)

    def experts_sum(self, x: Pass) -> None:
        """A token's rows by their shares; always summed in one order, whatever the other tokens picked."""
        rows = torch.empty_like(x.wide)
        rows[x.routing.order] = x.wide * x.routing.shares
        x.normed = rows.view(-1, self.picked, rows.shape[1]).sum(dim=1)


def gated(wide: Tensor) -> Tensor:
    """``silu(gate) * up`` of [T, 2F]; [T, F]."""
    gate, up = wide.chunk(2, dim=-1)
    return functional.silu(gate).mul_(up)


def _by_expert(kernels: list[LinearKernel], rows: Tensor, x: Pass) -> Tensor:
    """Each expert's rows times its matrix; what is read is counted on the matrices that are used."""
    products = []
    for kernel, part in zip(kernels, torch.split_with_sizes(rows, x.routing.counts), strict=True):
        if part.shape[0]:
            products.append(kernel(part))
            x.expert_bytes += kernel.num_bytes
    return torch.cat(products)
