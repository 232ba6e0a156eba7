"""Choosing the next token from its logits, on the device, without asking the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose.

    Attributes:
        temperature: divides the logits; 0 takes the largest.
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
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(sampling.seed)

    @torch.inference_mode()
    def choose(self, logits: Tensor) -> Tensor:
        """Choose one token for each row of ``logits`` [B, V]; -1 where they are not finite. [B] int64."""
        best = greedy(logits)
        return best if self.is_greedy else torch.where(best < 0, best, self._draw(logits))

    @property
    def is_greedy(self) -> bool:
        """It takes the largest logit."""
        return self.sampling.temperature == 0

    def _draw(self, logits: Tensor) -> Tensor:
        numbers = logits.float()
        # Shifted first, so that no temperature, however small, makes the largest score infinite.
        shifted = numbers - numbers.amax(dim=-1, keepdim=True)
        scores = filtered(shifted / self.sampling.temperature, self.sampling)
        # The largest of p / e with e exponential is a draw from p, and needs no host to sum up.
        noise = torch.empty_like(scores).exponential_(generator=self._generator)
        return scores.softmax(dim=-1).div_(noise).argmax(dim=-1)


class Samplers:
    """Chooses for several sequences at once, each by its own rule and from its own seed.

    Args:
        samplers: one a sequence; None where nobody wants the token, so that nothing is drawn.
        rows: how many rows of the logits belong to each.
    """

    def __init__(self, samplers: list[Sampler | None], rows: list[int]) -> None:
        self._samplers, self._rows = samplers, rows

    def choose(self, logits: Tensor) -> Tensor:
        """See ``Sampler.choose``."""
        if all(sampler is None or sampler.is_greedy for sampler in self._samplers):
            return greedy(logits)
        parts = zip(self._samplers, logits.split_with_sizes(self._rows), strict=True)
        return torch.cat([sampler.choose(part) if sampler else greedy(part) for sampler, part in parts])


@torch.inference_mode()
def greedy(logits: Tensor) -> Tensor:
    """The largest of each row; -1 where they are not finite."""
    largest, best = logits.max(dim=-1)
    return torch.where(largest.isfinite(), best, -1)


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
