"""Speculation: guess the next tokens cheaply, and let one step of the model verify them all.

A step reads every weight once however many tokens it works on, so verifying a few guesses costs little
more than one token. A guess from certainty (a text that occurred before) is right when the model,
choosing as ever, chooses it. A guess drawn from a distribution q is kept with probability ``p / q``, else
the token is drawn from what p has beyond q: the answer is distributed as if nobody had guessed
(https://arxiv.org/abs/2211.17192).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import torch
from torch import Tensor

from core.engine.batch import Batch, Sequence
from core.engine.cache_memory import CacheMemory
from core.engine.pages import PageAllocator, PageTable
from core.engine.runner import make_runner
from core.engine.sampling import Sampler, draw, greedy
from core.engine.transformer import Transformer
from core.errors import CheckpointError, RequestError

if TYPE_CHECKING:
    from core.engine.engine import Engine

#: Guesses a step unless another number is asked for.
NUM_GUESSES: Final = 4


@dataclass(frozen=True, slots=True)
class Guess:
    """Tokens that may come next.

    Attributes:
        tokens: their ids. chances: the distribution from which each was drawn, [k, V]; None where each was
            certain.
    """

    tokens: list[int]
    chances: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose next tokens are to be guessed, how they would be drawn, and how many at most."""

    sequence: Sequence
    sampler: Sampler
    most: int


class Speculator(Protocol):
    """Guesses for the sequences of one server."""

    num_guesses: int

    def prepare(self, target: Engine, num_sequences: int, longest: int) -> None:
        """Make room for so many sequences of so many tokens.

        Raises:
            RequestError: the guesses would be of another vocabulary, or do not fit into memory.
        """

    def guess(self, asked: list[Asked]) -> list[Guess]:
        """Guess for each; a guess may be empty."""

    def forget(self, sequence: Sequence) -> None:
        """A sequence is done."""


class NGramSpeculator:
    """Looks for the last few tokens further up and guesses what followed them there (prompt lookup).

    It costs nothing and is right where an answer repeats its prompt: summaries, edits, code
    (https://github.com/apoorvumang/prompt-lookup-decoding).
    """

    def __init__(self, num_guesses: int = NUM_GUESSES, longest: int = 3) -> None:
        self.num_guesses, self._longest = num_guesses, longest

    def prepare(self, target: Engine, num_sequences: int, longest: int) -> None:
        """See ``Speculator``; it needs no room."""

    def guess(self, asked: list[Asked]) -> list[Guess]:
        """See ``Speculator``."""
        return [Guess(self._followers(one.sequence.token_ids, one.most)) for one in asked]

    def forget(self, sequence: Sequence) -> None:
        """See ``Speculator``; it keeps nothing."""

    def _followers(self, ids: list[int], most: int) -> list[int]:
        for length in range(min(self._longest, len(ids) - 1), 0, -1):
            tail = ids[-length:]
            for end in range(len(ids) - 1, length - 1, -1):
                if ids[end - 1] == tail[-1] and ids[end - length : end] == tail:
                    return ids[end : end + most]
        return []


class ModelSpeculator:
    """A smaller model writes the guesses: another checkpoint, or the first layers of the same one."""

    def __init__(self, draft: Engine, num_guesses: int = NUM_GUESSES, *, layers: int | None = None) -> None:
        """Draft with ``draft``, or with its first ``layers`` layers and its own head.

        Raises:
            RequestError: it has not so many layers.
        """
        if layers is not None and not 1 <= layers <= draft.spec.num_layers:
            raise RequestError(
                f"A draft of first layers must have from 1 to {draft.spec.num_layers} of them; got {layers}."
            )
        self.num_guesses = num_guesses
        self._draft = draft
        self._spec = replace(draft.spec, layers=draft.spec.layers[:layers])
        whole = draft.model
        model = Transformer(
            whole.table, whole.blocks[:layers], whole.rope, whole.final_norm_weight, whole.eps, whole.head
        )
        self._runner = make_runner(model, draft.device)
        self._memory = CacheMemory(self._spec, draft.kv, draft.device)
        self._own: dict[int, Sequence] = {}

    def prepare(self, target: Engine, num_sequences: int, longest: int) -> None:
        """See ``Speculator``."""
        require_same_words(target, self._draft)
        if longest > self._draft.max_context:
            raise RequestError(
                f"A draft model must have the context that a request may need, {longest:,} tokens; it has "
                f"{self._draft.max_context:,}. Ask for fewer tokens, or take another draft."
            )
        self._own.clear()
        self._pages = PageAllocator(num_sequences, longest)
        self._pool = self._memory.reserve(num_sequences * longest)

    def guess(self, asked: list[Asked]) -> list[Guess]:
        """See ``Speculator``; every pass of the draft works on all sequences."""
        self._keep_only(asked)
        pairs = [(self._caught_up(one.sequence), one) for one in asked]
        tokens: list[list[int]] = [[] for _ in asked]
        chances: list[list[Tensor]] = [[] for _ in asked]
        for position in range(self.num_guesses):
            active = [index for index, one in enumerate(asked) if one.most > position]
            if not active:
                break
            logits = self._logits([pairs[index][0] for index in active])
            for row, index in zip(logits.unsqueeze(1).unbind(), active, strict=True):
                own, one = pairs[index]
                token = self._choose(row, one.sampler, chances[index])
                tokens[index].append(token)
                own.token_ids.append(token)
        return [
            Guess(ids, torch.cat(rows) if rows else None) for ids, rows in zip(tokens, chances, strict=True)
        ]

    def forget(self, sequence: Sequence) -> None:
        """See ``Speculator``."""
        own = self._own.pop(id(sequence), None)
        if own is not None:
            self._pages.truncate(own.table, 0)

    def _keep_only(self, asked: list[Asked]) -> None:
        """Others were preempted: they give their place to those that write, and catch up later."""
        writing = {id(one.sequence) for one in asked}
        for key in self._own.keys() - writing:
            self._pages.truncate(self._own.pop(key).table, 0)

    def _caught_up(self, sequence: Sequence) -> Sequence:
        """The draft's own view of a sequence: what both agree on stays in its cache."""
        own = self._own.get(id(sequence))
        if own is None:
            own = self._own[id(sequence)] = Sequence([], table=PageTable(self._pages.page_tokens))
            self._pages.extend(own.table, 0, 1)
        known = min(own.num_cached, len(sequence.token_ids) - 1)
        while own.token_ids[:known] != sequence.token_ids[:known]:
            known -= 1
        own.token_ids, own.num_cached = list(sequence.token_ids), known
        return own

    def _logits(self, sequences: list[Sequence]) -> Tensor:
        plan = [(own, own.num_pending) for own in sequences]
        logits = self._runner.run(Batch.build(plan, self._draft.device), self._pool).logits
        for own, count in plan:
            own.num_cached += count
        return logits

    def _choose(self, row: Tensor, sampler: Sampler, chances: list[Tensor]) -> int:
        likeliest = int(greedy(row))
        if likeliest < 0:
            raise CheckpointError(
                f"The logits of a draft must be finite; those of {self._spec.name} are not. Its weights are "
                "damaged, or too large for this format: take another draft."
            )
        if sampler.is_greedy:
            return likeliest
        chances.append(sampler.chances(row))
        return int(draw(chances[-1], sampler.generator))


class Verifier:
    """Chooses the tokens of one sequence behind its guesses; where it chooses the guess, that one holds."""

    def __init__(self, sampler: Sampler, guess: Guess) -> None:
        self._sampler, self._guess = sampler, guess

    @property
    def is_greedy(self) -> bool:
        """It takes the largest logit."""
        return self._sampler.is_greedy

    @torch.inference_mode()
    def choose(self, logits: Tensor) -> Tensor:
        """Ids for the ``k + 1`` rows behind the last sure token and each guess; -1 where not finite."""
        guessed, generator = self._guess.chances, self._sampler.generator
        if guessed is None or self.is_greedy:
            return self._sampler.choose(logits)
        chances = self._sampler.chances(logits)
        ids = torch.tensor([*self._guess.tokens, 0], device=logits.device).unsqueeze(1)
        below = torch.cat((guessed, torch.zeros_like(chances[-1:])))  # nobody guessed behind the last
        luck = torch.rand(ids.shape, generator=generator, device=logits.device)
        keep = luck * below.gather(1, ids) < chances.gather(1, ids)
        keep[-1] = False
        drawn = draw((chances - below).clamp_(min=0), generator)
        return torch.where(greedy(logits) < 0, -1, torch.where(keep, ids, drawn.unsqueeze(1)).squeeze(1))


def require_same_words(target: Engine, draft: Engine) -> None:
    """Refuse a draft whose ids mean other words.

    Raises:
        RequestError: they do.
    """
    size = target.spec.vocab_size
    sample = range(0, size, max(size // 256, 1))
    if size != draft.spec.vocab_size or any(target.decode([i]) != draft.decode([i]) for i in sample):
        raise RequestError(
            f"A draft must have the vocabulary of its model, {target.spec.name} ({size:,} tokens); "
            f"{draft.spec.name} has another ({draft.spec.vocab_size:,}). Choose a draft of the same family."
        )
