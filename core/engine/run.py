"""One generation on its way: its sequence, its text, its times, and why it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

from core.analytic.step_record import StepRecord
from core.engine.batch import Sequence
from core.engine.records import Generation, StopReason, TokenEvent
from core.engine.step import StepLabel
from core.engine.text import TextCodec


class Run:
    """The state of one call of ``Engine.generate``."""

    def __init__(self, prompt_ids: list[int], codec: TextCodec, end_tokens: frozenset[int]) -> None:
        self.sequence = Sequence(list(prompt_ids))
        self.steps: list[StepRecord] = []
        self.stop_reason: StopReason | None = None
        self._prompt_tokens = len(prompt_ids)
        self._codec = codec
        self._stream = codec.stream()
        self._end_tokens = end_tokens
        self._text = ""
        self._started_s = time.perf_counter()
        self._first_s = self._last_s = self._started_s

    @property
    def label(self) -> StepLabel:
        """What the next step is: it reads the prompt until there is a first token."""
        return StepLabel(len(self.steps), "decode" if self.generated else "prefill")

    @property
    def generated(self) -> list[int]:
        """The new tokens so far."""
        return self.sequence.token_ids[self._prompt_tokens :]

    def append(self, token: int, limit: int, on_token: Callable[[TokenEvent], None] | None) -> None:
        """Take a token that has reached the host, and see whether it is the last."""
        self._last_s = time.perf_counter()
        if not self.generated:
            self._first_s = self._last_s
        self.sequence.token_ids.append(token)
        if token in self._end_tokens:
            self.stop_reason = "end"
        elif len(self.sequence.token_ids) >= limit:
            self.stop_reason = "length"
        delta = self._new_text(token)
        if on_token is not None:
            on_token(TokenEvent(token, delta, self.steps[-1]))

    def _new_text(self, token: int) -> str:
        """The text that this token completes; with the last token, also what was held back."""
        delta = "" if token in self._end_tokens else self._stream.step(token)
        self._text += delta
        if self.stop_reason is None:
            return delta
        whole = self._codec.decode(self.generated)
        return delta + whole[len(self._text) :] if whole.startswith(self._text) else delta

    def finish(self) -> Generation:
        """The record of the finished run."""
        generated = self.generated
        later = len(generated) - 1
        tpot_s = (self._last_s - self._first_s) / later if later > 0 else None
        return Generation(
            token_ids=generated,
            text=self._codec.decode(generated),
            prompt_tokens=self._prompt_tokens,
            steps=tuple(self.steps),
            ttft_s=self._first_s - self._started_s if generated else None,
            tpot_s=tpot_s,
            tokens_per_s=1 / tpot_s if tpot_s else None,
            stop_reason=self.stop_reason or "stopped",
        )
