"""One request on its way: its sequence, its text, its times, and why it ends."""

from __future__ import annotations

import time

from core.analytic.step_record import StepRecord
from core.engine.batch import Sequence
from core.engine.files.text import TextCodec
from core.engine.pages import PageTable
from core.engine.records import Generation, Request, StopReason, TokenEvent
from core.engine.sampling import Chooser, Sampler
from core.engine.speculation import Guess, Verifier


class Run:
    """The state of one request.

    Attributes:
        sequence: its tokens. sampler: chooses them. limit: the length at which it must end.
        guess: what was last guessed. arrival: the step before which it came.
        preempted: it lost its pages and is computed again.
    """

    def __init__(
        self,
        request: Request,
        *,
        table: PageTable,
        sampler: Sampler,
        codec: TextCodec,
        end_tokens: frozenset[int],
        limit: int,
    ) -> None:
        self.sequence = Sequence(list(request.prompt_ids), table=table)
        self.sampler = sampler
        self.limit = limit
        self.arrival = request.arrival
        self.preempted = False
        self.guess = Guess([])
        self.steps: list[StepRecord] = []
        self.stop_reason: StopReason | None = None
        self._on_token = request.on_token
        self._prompt_tokens = len(request.prompt_ids)
        self._codec = codec
        self._stream = codec.stream()
        self._end_tokens = end_tokens
        self._text = ""
        self._started_s = self._first_s = self._last_s = time.perf_counter()

    def fork(self, table: PageTable, sampler: Sampler) -> Run:
        """A second answer that goes on from here, over pages that hold the same tokens."""
        request = Request(self.sequence.token_ids[: self._prompt_tokens], 1, arrival=self.arrival)
        other = Run(
            request,
            table=table,
            sampler=sampler,
            codec=self._codec,
            end_tokens=self._end_tokens,
            limit=self.limit,
        )
        other.sequence.num_cached = self.sequence.num_cached
        other.steps = list(self.steps)
        for token in self.generated:
            other.sequence.token_ids.append(token)
            other._text += other._stream.step(token)
        other._started_s, other._first_s, other._last_s = self._started_s, self._first_s, self._last_s
        return other

    def arrive(self, step: int) -> None:
        """It has come; its time begins."""
        self.arrival = step
        self._started_s = self._first_s = self._last_s = time.perf_counter()

    @property
    def is_reading(self) -> bool:
        """Its next tokens are a prompt's, or an answer's that has to be computed again."""
        return self.preempted or not self.generated

    @property
    def generated(self) -> list[int]:
        """The new tokens so far."""
        return self.sequence.token_ids[self._prompt_tokens :]

    @property
    def chooser(self) -> Chooser:
        """Chooses its next tokens; where there are guesses, it also says which of them hold."""
        return Verifier(self.sampler, self.guess) if self.sequence.num_drafted else self.sampler

    def add_guess(self, guess: Guess) -> None:
        """Put guesses behind its tokens, to be verified by the next step."""
        self.guess = guess
        self.sequence.token_ids += guess.tokens
        self.sequence.num_drafted = len(guess.tokens)

    def drop_pages(self) -> None:
        """Its pages are given to others; it will be computed again."""
        self.sequence.drop_guesses()
        self.sequence.num_cached = 0
        self.preempted = True

    def append(self, tokens: list[int]) -> None:
        """Take tokens that have reached the host, up to the last that is wanted."""
        self.preempted = self.preempted and not tokens
        for token in tokens:
            if self.stop_reason is None:
                self._append(token)

    def _append(self, token: int) -> None:
        self._last_s = time.perf_counter()
        if not self.generated:
            self._first_s = self._last_s
        self.sequence.token_ids.append(token)
        if token in self._end_tokens:
            self.stop_reason = "end"
        elif len(self.sequence.token_ids) >= self.limit:
            self.stop_reason = "length"
        delta = self._new_text(token)
        if self._on_token is not None:
            self._on_token(TokenEvent(token, delta, self.steps[-1]))

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
