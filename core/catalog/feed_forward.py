"""What a layer computes for each token by itself: a dense MLP, or experts of which a few are used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DenseMLP:
    """An MLP with F intermediate features: three matrices if gated (gate, up, down), else two."""

    intermediate_size: int
    bias: bool = False
    gated: bool = True
    activation: str = "silu"

    @property
    def input_features(self) -> int:
        """Output features of the first product: gate and up together where there is a gate."""
        return (2 if self.gated else 1) * self.intermediate_size


@dataclass(frozen=True, slots=True)
class MoE:
    """A mixture of experts: a router picks ``experts_per_token`` of ``num_experts`` for each token.

    Attributes:
        num_experts, experts_per_token: E and k of the expert formulas.
        expert: one expert.
        shared: the MLP that every token passes beside the experts, as one of their summed width;
            None is none.
        shared_gate: a learned weight on the shared part, one value a token.
        router_values: trained values of the router besides its matrix (biases, scales).
        latent_size: width that the experts work in where it is not E (each token is projected down
            before them, and up after); None is E.
        expert_format: the format in which the publisher stores the experts' matrices ("mxfp4"),
            None where it is that of the rest.
        normalised: the shares of the picked experts are divided by their sum. No count depends on it.
    """

    num_experts: int
    experts_per_token: int
    expert: DenseMLP
    shared: DenseMLP | None = None
    shared_gate: bool = False
    router_values: int = 0
    latent_size: int | None = None
    expert_format: str | None = None
    normalised: bool = False


FeedForward = DenseMLP | MoE
