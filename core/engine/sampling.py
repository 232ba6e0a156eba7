"""Choosing the next token from its logits, on the device, without asking the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import torch
from torch import Tensor

#: One divided by less than this is infinite in fp32.
_SMALLEST_DIVISOR: Final = torch.finfo(torch.float32).tiny


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose.

    Attributes:
        temperature: divides the logits; 0, or too little to divide by, takes the largest.
        top_k: only the k largest may be chosen; 0 is off.
        top_p: only the fewest tokens that together have this probability; 1 is off.
        seed: of the run's own generator.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0


#: Takes the largest logit.
GREEDY: Final = Sampling()


class Sampler:
    """Draws the tokens of one run; the same seed draws the same tokens."""

    def __init__(self, sampling: Sampling, device: torch.device) -> None:
        self.sampling = sampling
        self.generator = torch.Generator(device=device)
        self.generator.manual_seed(sampling.seed)

    @torch.inference_mode()
    def choose(self, logits: Tensor) -> Tensor:
        """Choose one token for each row of ``logits`` [B, V]; -1 where they are not finite. [B] int64."""
        best = greedy(logits)
        if self.is_greedy:
            return best
        return torch.where(best < 0, best, draw(self.chances(logits), self.generator))

    @property
    def is_greedy(self) -> bool:
        """It takes the largest logit."""
        return self.sampling.temperature < _SMALLEST_DIVISOR

    @torch.inference_mode()
    def chances(self, logits: Tensor) -> Tensor:
        """The distribution from which each row's token is drawn, [B, V] in fp32."""
        numbers = logits.float()
        # Shifted first, so that no temperature, however small, makes the largest score infinite.
        shifted = numbers - numbers.amax(dim=-1, keepdim=True)
        return filtered(shifted / self.sampling.temperature, self.sampling).softmax(dim=-1)


class Chooser(Protocol):
    """Chooses a token for each row of the logits."""

    @property
    def is_greedy(self) -> bool:
        """It takes the largest logit."""

    def choose(self, logits: Tensor) -> Tensor:
        """Ids [B], -1 where the logits are not finite."""


class Samplers:
    """Chooses for several sequences at once, each by its own rule and from its own seed.

    Args:
        choosers: one a sequence; None where nobody wants the token, so that nothing is drawn.
        rows: how many rows of the logits belong to each.
    """

    def __init__(self, choosers: list[Chooser | None], rows: list[int]) -> None:
        self._choosers, self._rows = choosers, rows

    @property
    def is_greedy(self) -> bool:
        """All of them take the largest logit."""
        return all(chooser is None or chooser.is_greedy for chooser in self._choosers)

    def choose(self, logits: Tensor) -> Tensor:
        """See ``Sampler.choose``."""
        if self.is_greedy:
            return greedy(logits)
        parts = zip(self._choosers, logits.split_with_sizes(self._rows), strict=True)
        return torch.cat([chooser.choose(part) if chooser else greedy(part) for chooser, part in parts])


@torch.inference_mode()
def draw(weights: Tensor, generator: torch.Generator) -> Tensor:
    """One draw from each row of ``weights`` [B, V], which need not sum to one.

    The largest of w / e with e exponential is a draw from w, and needs no host to sum up.
    """
    noise = torch.empty_like(weights).exponential_(generator=generator)
    return (weights / noise).argmax(dim=-1)


@torch.inference_mode()
def greedy(logits: Tensor) -> Tensor:
    """The largest of each row; -1 where one of them is not finite.

    What is no number is both the largest and the smallest, and nothing masks a logit with minus infinity.
    """
    largest, best = logits.max(dim=-1)
    return torch.where(largest.isfinite() & logits.amin(dim=-1).isfinite(), best, -1)


def filtered(scores: Tensor, sampling: Sampling) -> Tensor:
    """Put minus infinity where top-k or top-p forbids a token; ``scores`` are [B, V].

    Equal scores at the edge of top-k all stay. Top-p keeps a token while those before it have less
    than p together, so the most likely one always stays.
    """
    if 0 < sampling.top_k < scores.shape[-1]:
        edge = scores.topk(sampling.top_k, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < edge, -torch.inf)
    if sampling.top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        chances = ordered.softmax(dim=-1)
        before = chances.cumsum(dim=-1) - chances
        ordered = ordered.masked_fill(before >= sampling.top_p, -torch.inf)
        scores = torch.empty_like(scores).scatter_(-1, order, ordered)
    return scores
