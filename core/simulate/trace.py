"""A trace of requests, drawn from a seed: how long each prompt and answer is, and when it comes.

The same seed gives the same trace on every machine. Time is counted in steps of the server, so that a
trace makes the same batches wherever it is served.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

from core.errors import RequestError
from core.simulate.batching import Arrival

Spread = Literal["exponential", "fixed"]
SPREADS: Final[tuple[Spread, ...]] = ("exponential", "fixed")
MAX_REQUESTS: Final = 64
MAX_LENGTH: Final = 2048
MAX_SPACING: Final = 64
MAX_SEED: Final = 2**31 - 1
#: An exponential length is cut at so many times its mean.
_LONGEST: Final = 4


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests to be served.

    Attributes:
        requests: how many. prompt_tokens: the mean of their own prompts, which follow the shared beginning.
        answer_tokens: the mean of their answers. spread: "exponential", or "fixed" for all alike.
        spacing: mean steps between one arrival and the next; 0 for all at once.
        shared_tokens: tokens at the beginning of every prompt that are the same for all.
        answers: the lengths of the answers themselves, in order, where they are not drawn; then as
            many as there are requests.
        seed: of the draw.
    """

    requests: int = 8
    prompt_tokens: int = 24
    answer_tokens: int = 16
    spread: Spread = "exponential"
    spacing: int = 0
    shared_tokens: int = 0
    answers: tuple[int, ...] = ()
    seed: int = 0

    def validate(self) -> None:
        """Check each limit.

        Raises:
            RequestError: the first that does not hold, as a sentence.
        """
        _within("requests", self.requests, 1, MAX_REQUESTS)
        _within("prompt_tokens", self.prompt_tokens, 1, MAX_LENGTH)
        _within("answer_tokens", self.answer_tokens, 1, MAX_LENGTH)
        _within("spacing", self.spacing, 0, MAX_SPACING)
        _within("shared_tokens", self.shared_tokens, 0, MAX_LENGTH)
        _within("seed", self.seed, 0, MAX_SEED)
        if self.spread not in SPREADS:
            raise RequestError(f"The spread must be one of {', '.join(SPREADS)}; got {self.spread!r}.")
        if self.answers and len(self.answers) != self.requests:
            raise RequestError(
                f"There must be an answer for each of the {self.requests} requests; got {len(self.answers)} "
                "lengths. Give as many."
            )
        for length in self.answers:
            _within("answers", length, 1, MAX_LENGTH)

    def arrivals(self) -> list[Arrival]:
        """The requests, first come first.

        >>> Trace(requests=2, prompt_tokens=5, answer_tokens=3, spread="fixed", spacing=4).arrivals()
        [Arrival(prompt_tokens=5, new_tokens=3, step=0, shared_tokens=0), \
Arrival(prompt_tokens=5, new_tokens=3, step=4, shared_tokens=0)]
        """
        own = self._drawn("prompt", self.prompt_tokens)
        answers = self.answers or self._drawn("answer", self.answer_tokens)
        gaps = self._drawn("gap", self.spacing)
        return [
            Arrival(self.shared_tokens + prompt, answer, sum(gaps[:index]), self.shared_tokens)
            for index, (prompt, answer) in enumerate(zip(own, answers, strict=True))
        ]

    def _drawn(self, name: str, mean: int) -> list[int]:
        """A value for each request; only gaps may be 0. A name of its own is a stream of its own."""
        if self.spread == "fixed" or mean == 0:
            return [mean] * self.requests
        draw = random.Random(f"{name}/{self.seed}")  # noqa: S311 - a trace, not a secret
        least = 0 if name == "gap" else 1
        most = _LONGEST * mean
        return [min(max(round(draw.expovariate(1 / mean)), least), most) for _ in range(self.requests)]


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:,} to {high:,}; got {value:,}. Choose one in between.")
