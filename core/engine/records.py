"""What a run tells its caller: one event a token, and the whole generation at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.analytic.step_record import StepRecord

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
