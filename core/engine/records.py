"""What goes into the engine and what comes out: requests, one event a token, whole generations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from core.analytic.step_record import StepRecord
from core.engine.sampling import GREEDY, Sampling
from core.errors import RequestError

StopReason = Literal["end", "length", "stopped"]


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One new token, on the host.

    Attributes:
        token_id: its id. text_delta: the text it completed; empty while a character is unfinished.
        step: the step that made it; for the first token the last step of the prefill.
    """

    token_id: int
    text_delta: str
    step: StepRecord


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt to continue.

    Attributes:
        prompt_ids: the prompt. sampling: how tokens are chosen. max_tokens: the most new tokens.
        end_tokens: tokens that end the answer; the model's own unless given, none if empty.
        arrival: the step before which it arrives. Time in a trace is counted in steps, so that it gives
            the same batches on every machine.
        on_token: called with each token as soon as it is on the host.
    """

    prompt_ids: list[int]
    max_tokens: int
    sampling: Sampling = GREEDY
    end_tokens: frozenset[int] | None = None
    arrival: int = 0
    on_token: Callable[[TokenEvent], None] | None = None

    def limit(self, max_context: int, vocab_size: int) -> int:
        """The length at which its sequence must end in a model.

        Raises:
            RequestError: the prompt is empty, has unknown ids, or fills the context; no token is asked for.
        """
        prompt_ids, max_tokens = self.prompt_ids, self.max_tokens
        if not prompt_ids:
            raise RequestError("The prompt must have one token or more; it is empty. Type a few words.")
        if len(prompt_ids) >= max_context:
            raise RequestError(
                f"The prompt must leave room in the model's context of {max_context:,} tokens; it has "
                f"{len(prompt_ids):,}. Shorten it."
            )
        if max_tokens < 1:
            raise RequestError(f"max_tokens must be 1 or more; got {max_tokens}.")
        if not all(0 <= token < vocab_size for token in prompt_ids):
            raise RequestError(
                f"Token ids must be from 0 to {vocab_size - 1:,}; the prompt has others. "
                "Encode it with this model's tokenizer."
            )
        return min(len(prompt_ids) + max_tokens, max_context)


@dataclass(frozen=True, slots=True)
class Generation:
    """A finished run.

    Attributes:
        token_ids: what was generated, an end token included. text: the same, without special tokens.
        prompt_tokens: tokens of the prompt. steps: every step, in order.
        ttft_s: from the call to the first token on the host.
        tpot_s: (last token - first token) / (n - 1); None for a single token.
        tokens_per_s: 1 / tpot_s; None likewise. The prompt is not in it.
        stop_reason: an end token came, the limit was reached, or the caller asked to stop.
    """

    token_ids: list[int]
    text: str
    prompt_tokens: int
    steps: tuple[StepRecord, ...]
    ttft_s: float | None
    tpot_s: float | None
    tokens_per_s: float | None
    stop_reason: StopReason


@dataclass(frozen=True, slots=True)
class Service:
    """What became of several requests: a generation for each, in their order, and every step."""

    generations: tuple[Generation, ...]
    steps: tuple[StepRecord, ...]
