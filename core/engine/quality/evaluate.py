"""What rounding does to the model's answers: perplexity on a text, and how far the logits move.

A text is cut into windows that are read one by one, each from an empty cache; every token but the first
of a window is predicted from those before it. The reference is a run of the same windows whose logits are
kept: the same stored weights in fp32. The cache's own format takes part, because attention reads back what
it wrote there.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from core.catalog.formats import engine_format
from core.engine.batch import Batch
from core.engine.batch import Sequence as TokenSequence
from core.engine.cache_memory import CacheMemory
from core.engine.engine import Engine
from core.engine.kv_cache import KVPool
from core.errors import CheckpointError, RequestError

#: Tokens of a window: long enough that most tokens see some context, short enough for small machines.
WINDOW: Final = 256
#: Rows that are compared at a time.
_ROWS: Final = 32
#: Logits that differ by more are compared in 64 bits.
_FAR: Final = 60.0
#: Called before each window and after the last with how many are done; it may raise to stop.
OnWindow = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Reference:
    """What the others are compared with.

    Attributes:
        cut: the windows. logits: of each, [T, V]; they take ``tokens * V * 4`` bytes.
        nll: of every predicted token, in nats, all windows one after the other.
    """

    cut: list[list[int]]
    logits: list[Tensor]
    nll: Tensor

    @classmethod
    def read(cls, engine: Engine, cut: list[list[int]], on_window: OnWindow | None = None) -> Reference:
        """Read every window with the engine that is the reference."""
        kept = [logits(engine, window) for window in _told(cut, on_window)]
        nll = [token_nll(found, window) for found, window in zip(kept, cut, strict=True)]
        return cls(cut, kept, torch.cat(nll))


@dataclass(frozen=True, slots=True)
class TokenScores:
    """One number for each predicted token.

    Attributes:
        nll_change: what minus the log of its probability grew by, in nats.
        agrees: whether the likeliest token is the reference's.
        kl: ``sum p (log p - log q)`` in nats, p the reference's distribution.
    """

    nll_change: Tensor
    agrees: Tensor
    kl: Tensor


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How well a text is predicted, and how far from the reference.

    Attributes:
        tokens: predicted ones. nll: their mean in nats. kl: mean divergence from the reference in nats.
        nll_change, nll_change_error: mean of what each token's nll grew by, and its standard error.
        kl_error: standard error of the mean. kl_worst: the largest of a token.
        agreement: part of the tokens whose likeliest follower is the reference's, from 0 to 1.
    """

    tokens: int
    nll: float
    nll_change: float
    nll_change_error: float
    kl: float
    kl_error: float
    kl_worst: float
    agreement: float

    @property
    def perplexity(self) -> float:
        """``exp(nll)``: as if so many tokens were equally likely each time."""
        return math.exp(self.nll)


def windows(ids: Sequence[int], tokens: int, size: int = WINDOW) -> list[list[int]]:
    """The first ``tokens`` of a text in windows of ``size``; a last one of a single token is left out.

    Raises:
        RequestError: the text has too few tokens, or a window could not predict any.

    >>> windows(range(7), 7, 3)
    [[0, 1, 2], [3, 4, 5]]
    """
    if size < 2:
        raise RequestError(f"A window must have 2 tokens or more; got {size}. Choose a larger one.")
    if not 2 <= tokens <= len(ids):
        raise RequestError(
            f"The tokens to read must be 2 or more, and no more than the text's {len(ids):,}; got {tokens:,}."
        )
    cut = [list(ids[start : start + size]) for start in range(0, tokens, size)]
    cut[-1] = cut[-1][: tokens - size * (len(cut) - 1)]
    return [window for window in cut if len(window) > 1]


def beside_cache(engine: Engine, kv: str) -> Engine:
    """The same packed weights beside a cache of another format; nothing is packed again.

    Raises:
        FormatError: the engine has no such cache.
    """
    engine_format(kv, "kv")
    other = copy.copy(engine)
    other.kv, other.memory = kv, CacheMemory(engine.spec, kv, engine.device)
    return other


@torch.inference_mode()
def logits(engine: Engine, ids: Sequence[int]) -> Tensor:
    """The logits after every token of a sequence, read in one step; [T, V] in fp32.

    Raises:
        RequestError: it is longer than the model's context.
        CheckpointError: they are not finite.
    """
    if not 1 <= len(ids) <= engine.max_context:
        raise RequestError(
            f"A window must have 1 to {engine.max_context:,} tokens, the model's context; got {len(ids):,}."
        )
    pool = KVPool(engine.spec, len(ids), engine.kv, engine.device)
    batch = Batch.build([(TokenSequence(list(ids)), len(ids))], engine.device)
    every = torch.arange(len(ids), device=engine.device)
    found = engine.runner.run(replace(batch, logit_rows=every), pool).logits.float()
    if not torch.isfinite(found).all():
        raise CheckpointError(
            "The model's logits must be finite; some are not. Its weights are damaged, or too large for this "
            "format: try bf16 or fp32 weights."
        )
    return found


def evaluate(engine: Engine, reference: Reference, on_window: OnWindow | None = None) -> Evaluation:
    """Read the reference's windows and compare each prediction with its own.

    Args:
        engine: with the formats to judge.
        reference: what to compare with.
        on_window: told of the progress; what it raises ends the evaluation.
    """
    scores = [
        score(logits(engine, window), reference.logits[index], window)
        for index, window in enumerate(_told(reference.cut, on_window))
    ]
    change, kl = (torch.cat([getattr(part, name) for part in scores]) for name in ("nll_change", "kl"))
    return Evaluation(
        tokens=change.shape[0],
        nll=(reference.nll + change).mean().item(),
        nll_change=change.mean().item(),
        nll_change_error=_standard_error(change),
        kl=kl.mean().item(),
        kl_error=_standard_error(kl),
        kl_worst=kl.max().item(),
        agreement=torch.cat([part.agrees for part in scores]).double().mean().item(),
    )


def score(found: Tensor, reference: Tensor, window: Sequence[int]) -> TokenScores:
    """Compare the predictions of one window, both [T, V]; the last row predicts nothing that is known.

    With d the difference of the logits, ``log sum exp`` differs by ``z = log1p(sum p expm1(-d))``, the
    divergence is ``sum p d + z``, and a token's nll grows by its own d + z. Written so, two nearly equal
    distributions are told apart in 32-bit numbers.
    """
    parts = []
    for rows in _chunks(window):
        ours, theirs = found[rows], reference[rows]
        agrees = ours.argmax(dim=-1) == theirs.argmax(dim=-1)
        difference = theirs - ours
        if difference.abs().max() > _FAR:  # beyond what an exponential of 32 bits can hold
            difference, theirs = difference.double(), theirs.double()
        p = theirs.softmax(dim=-1)
        moved = torch.log1p((p * torch.expm1(-difference)).sum(dim=-1, dtype=torch.float64))
        kl = ((p * difference).sum(dim=-1, dtype=torch.float64) + moved).clamp_(min=0)
        parts.append(TokenScores(_picked(difference, window, rows) + moved, agrees, kl))
    names = ("nll_change", "agrees", "kl")
    return TokenScores(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def token_nll(found: Tensor, window: Sequence[int]) -> Tensor:
    """Minus the log probability of each token but the first, in nats; [T - 1]."""
    return torch.cat(
        [-_picked(found[rows].double().log_softmax(dim=-1), window, rows) for rows in _chunks(window)]
    )


def _chunks(window: Sequence[int]) -> list[slice]:
    """The rows that predict a token, some at a time."""
    last = len(window) - 1
    return [slice(start, min(start + _ROWS, last)) for start in range(0, last, _ROWS)]


def _picked(values: Tensor, window: Sequence[int], rows: slice) -> Tensor:
    """The value of each row's true follower."""
    followers = torch.tensor(window[rows.start + 1 : rows.stop + 1], device=values.device)
    return values.gather(1, followers.unsqueeze(1)).squeeze(1)


def _told(cut: Sequence[Sequence[int]], on_window: OnWindow | None) -> Iterator[Sequence[int]]:
    for index, window in enumerate(cut):
        if on_window is not None:
            on_window(index, len(cut))
        yield window
    if on_window is not None:
        on_window(len(cut), len(cut))


def _standard_error(values: Tensor) -> float:
    """``deviation / sqrt(count)``; 0 of a single value."""
    count = values.shape[0]
    return 0.0 if count < 2 else values.std().item() / math.sqrt(count)
