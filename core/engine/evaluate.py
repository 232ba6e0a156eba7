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
#: Rows whose distributions are held in 64-bit numbers at a time.
_ROWS: Final = 32
#: Called before each window and after the last with how many are done; it may raise to stop.
OnWindow = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TokenScores:
    """One number for each predicted token.

    Attributes:
        nll: minus the log of the probability that the token had, in nats. agrees: whether the likeliest token
            is the reference's. kl: ``sum p (log p - log q)`` in nats, p the reference's distribution.
    """

    nll: Tensor
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


def reference_logits(
    engine: Engine, cut: Sequence[Sequence[int]], on_window: OnWindow | None = None
) -> list[Tensor]:
    """The logits of every window, to be compared with; they take ``tokens * V * 4`` bytes."""
    return [logits(engine, window) for window in _told(cut, on_window)]


def evaluate(
    engine: Engine,
    cut: Sequence[Sequence[int]],
    reference: Sequence[Tensor],
    on_window: OnWindow | None = None,
) -> Evaluation:
    """Read the windows and compare each prediction with the reference's.

    Args:
        engine: with the formats to judge.
        cut: the windows.
        reference: logits of each, [T, V].
        on_window: told of the progress; what it raises ends the evaluation.
    """
    scores: list[TokenScores] = []
    before: list[Tensor] = []
    for index, window in enumerate(_told(cut, on_window)):
        scores.append(score(logits(engine, window), reference[index], window))
        before.append(token_nll(reference[index], window))
    nll, kl = torch.cat([part.nll for part in scores]), torch.cat([part.kl for part in scores])
    change = nll - torch.cat(before)
    return Evaluation(
        tokens=nll.shape[0],
        nll=nll.mean().item(),
        nll_change=change.mean().item(),
        nll_change_error=_standard_error(change),
        kl=kl.mean().item(),
        kl_error=_standard_error(kl),
        kl_worst=kl.max().item(),
        agreement=torch.cat([part.agrees for part in scores]).double().mean().item(),
    )


def score(found: Tensor, reference: Tensor, window: Sequence[int]) -> TokenScores:
    """Compare the predictions of one window, both [T, V]; the last row predicts nothing that is known."""
    parts = []
    for start in range(0, len(window) - 1, _ROWS):
        rows = slice(start, min(start + _ROWS, len(window) - 1))
        ours, theirs = (part[rows].double().log_softmax(dim=-1) for part in (found, reference))
        agrees = found[rows].argmax(dim=-1) == reference[rows].argmax(dim=-1)
        # A divergence is never negative; rounding of its sum may make it so by 1e-17.
        kl = (theirs.exp() * (theirs - ours)).sum(dim=-1).clamp_(min=0)
        parts.append(TokenScores(_picked(ours, window, rows), agrees, kl))
    return TokenScores(
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("nll", "agrees", "kl"))
    )


def token_nll(found: Tensor, window: Sequence[int]) -> Tensor:
    """Minus the log probability of each token but the first, in nats; [T - 1]."""
    chunks = [slice(start, min(start + _ROWS, len(window) - 1)) for start in range(0, len(window) - 1, _ROWS)]
    return torch.cat([_picked(found[rows].double().log_softmax(dim=-1), window, rows) for rows in chunks])


def _picked(log_probabilities: Tensor, window: Sequence[int], rows: slice) -> Tensor:
    followers = torch.tensor(window[rows.start + 1 : rows.stop + 1], device=log_probabilities.device)
    return -log_probabilities.gather(1, followers.unsqueeze(1)).squeeze(1)


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
