"""What came of writing one text without and with guesses: tokens, steps, times, and what follows from them.

Summaries are computed from the rows. The steps with guesses stand beside those of the simulator
(``core.simulate.speculation``), the measured speed-up beside the formula's (``core.analytic.speculative``)
with the acceptance and the costs that were measured here.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from core.analytic.speculative import acceptance_rate, expected_tokens, round_cost
from core.analytic.step_record import StepRecord
from core.errors import RecordError, UserError
from core.lab.checked_json import Reader, utc_time
from core.lab.record_parts import HostRecord
from core.lab.speculate_request import SpeculateRequest
from core.lab.step_json import step_from_json, step_to_json
from core.lab.timing import Spread, spread
from core.simulate.speculation import Answer, SimulatedRound, replayed, same_counts

_WHAT: Final = "A record of speculation"


@dataclass(frozen=True, slots=True)
class Written:
    """One text, written several times with the same steps.

    Attributes:
        token_ids: new tokens. text: the same in words. steps: one row a step, of the first writing.
        answer_s: seconds from the first token to the last, of each writing, guessing included.
        step_s: seconds of every decode step of every writing, those that verify guesses left out.
        verify_s: of every step that verified guesses. draft_s: of every round's guessing, for one guess.
    """

    token_ids: tuple[int, ...]
    text: str
    steps: tuple[StepRecord, ...]
    answer_s: tuple[float, ...]
    step_s: tuple[float, ...]
    verify_s: tuple[float, ...] = ()
    draft_s: tuple[float, ...] = ()

    @property
    def later_tokens(self) -> int:
        """Tokens after the first, which belongs to the prefill."""
        return len(self.token_ids) - 1

    @property
    def decode_steps(self) -> tuple[StepRecord, ...]:
        """Steps after the prompt was read."""
        return tuple(step for step in self.steps if step.kind == "decode")

    @property
    def token_s(self) -> Spread:
        """Seconds a token after the first, over the writings."""
        return spread([seconds / self.later_tokens for seconds in self.answer_s])

    @classmethod
    def from_reader(cls, reader: Reader) -> Written:
        """Read it back, or raise a RecordError."""
        try:
            steps = tuple(step_from_json(item.data) for item in reader.objects("steps"))
        except ValueError as error:
            raise RecordError(f"{_WHAT} must hold whole steps, but {error}. Run it again.") from error
        times = {name: reader.numbers(name, 0, 1e6) for name in ("answer_s", "step_s", "verify_s", "draft_s")}
        ids = tuple(int(value) for value in reader.numbers("token_ids", 0, 1e9))
        return cls(token_ids=ids, text=reader.text("text"), steps=steps, **times)


@dataclass(frozen=True, slots=True)
class Costs:
    """What a round's parts take, in steps of one token; measured, as medians.

    Attributes:
        step_s: a step without guesses. verify: a step that verifies, over it. draft: one guess, over it.
    """

    step_s: float
    verify: float
    draft: float


@dataclass(frozen=True, slots=True)
class SpeculateRecord:
    """One experiment.

    Attributes:
        created_at: ISO time, UTC. plain, guessed: the text without and with guesses.
        noisy: why the times are not to be trusted; empty on a quiet host.
    """

    created_at: str
    host: HostRecord
    request: SpeculateRequest
    model_name: str
    prompt_tokens: int
    plain: Written
    guessed: Written
    noisy: tuple[str, ...] = ()

    @property
    def first_difference(self) -> int | None:
        """The number of tokens before the texts part; None where they are equal."""
        one, other = self.plain.token_ids, self.guessed.token_ids
        if one == other:
            return None
        pairs = enumerate(zip(one, other, strict=False))
        return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))

    @property
    def rounds(self) -> list[SimulatedRound]:
        """The steps of the simulator, given which guesses were right."""
        answer = Answer(
            prompt_tokens=self.prompt_tokens,
            most_tokens=self.request.run.max_tokens,
            num_guesses=self.request.guesses,
            written_tokens=len(self.guessed.token_ids),
            shared_tokens=self.guessed.steps[0].shared_tokens,
        )
        return replayed(answer, self.guessed.steps)

    @property
    def steps_agree(self) -> bool:
        """Whether the engine's steps are the simulator's, count for count."""
        return same_counts(self.rounds, self.guessed.steps)

    @property
    def drafted(self) -> int:
        """Guesses that were verified."""
        return sum(step.drafted_tokens for step in self.guessed.steps)

    @property
    def accepted(self) -> int:
        """Guesses that were right."""
        return sum(step.accepted_tokens for step in self.guessed.steps)

    @property
    def acceptance(self) -> float | None:
        """The chance that a guess which is looked at is right; None where nothing was guessed."""
        steps = self.guessed.decode_steps
        return acceptance_rate(
            [step.drafted_tokens for step in steps], [step.accepted_tokens for step in steps]
        )

    @property
    def tokens_a_step(self) -> float:
        """Tokens that a decode step with guesses brought."""
        return self.guessed.later_tokens / len(self.guessed.decode_steps)

    @property
    def speed_up(self) -> tuple[float, float, float]:
        """How many times as fast: the median, and the least and the most over the writings."""
        plain = [seconds / self.plain.later_tokens for seconds in self.plain.answer_s]
        guessed = [seconds / self.guessed.later_tokens for seconds in self.guessed.answer_s]
        ratios = [one / other for one, other in zip(plain, guessed, strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)

    @property
    def costs(self) -> Costs | None:
        """What verifying and guessing cost here; None where nothing was guessed."""
        if not self.guessed.verify_s or not self.guessed.draft_s:
            return None
        step_s = statistics.median(self.plain.step_s)
        verify_s, draft_s = map(statistics.median, (self.guessed.verify_s, self.guessed.draft_s))
        return Costs(step_s, verify_s / step_s, draft_s / step_s)

    @property
    def formula_tokens(self) -> float | None:
        """Tokens a step by the formula, with the acceptance and the guesses of the rounds here."""
        acceptance = self.acceptance
        if acceptance is None:
            return None
        drafted = np.array([step.drafted_tokens for step in self.guessed.decode_steps])
        return float(expected_tokens(acceptance, drafted).mean())

    @property
    def formula_speed_up(self) -> float | None:
        """The formula's speed-up over the rounds here: their expected tokens over what they cost."""
        tokens, costs = self.formula_tokens, self.costs
        if tokens is None or costs is None:
            return None
        drafted = [step.drafted_tokens for step in self.guessed.decode_steps]
        spent = sum(float(round_cost(made, costs.draft, costs.verify)) if made else 1.0 for made in drafted)
        return tokens * len(drafted) / spent

    def to_json(self) -> dict[str, Any]:
        """A plain object."""
        plain, guessed = (
            {**asdict(part), "steps": [step_to_json(step) for step in part.steps]}
            for part in (self.plain, self.guessed)
        )
        content = {
            "created_at": self.created_at,
            "host": asdict(self.host),
            "request": self.request.to_json(),
            "model_name": self.model_name,
            "prompt_tokens": self.prompt_tokens,
            "plain": plain,
            "guessed": guessed,
            "noisy": list(self.noisy),
        }
        whole: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return whole

    @classmethod
    def from_json(cls, data: object) -> SpeculateRecord:
        """Read a record back and check that it holds together.

        Raises:
            RecordError: a value is missing or out of bounds, or its rows contradict each other.
        """
        reader = Reader(data, _WHAT)
        try:
            request = SpeculateRequest.from_json(reader.inner("request").data)
        except UserError as mistake:
            raise RecordError(f"{_WHAT} must hold a request that could be made. {mistake}") from mistake
        record = cls(
            created_at=utc_time(reader, "created_at"),
            host=HostRecord.from_reader(reader.inner("host")),
            request=request,
            model_name=reader.text("model_name"),
            prompt_tokens=reader.whole("prompt_tokens", 1, 10**7),
            plain=Written.from_reader(reader.inner("plain")),
            guessed=Written.from_reader(reader.inner("guessed")),
            noisy=reader.texts("noisy"),
        )
        if problem := _contradiction(record):
            raise RecordError(f"{_WHAT} must add up, but {problem}. Run it again.")
        return record


def _contradiction(record: SpeculateRecord) -> str:
    """The first thing that cannot be, as a clause; empty where all of it can."""
    plain, guessed = record.plain, record.guessed
    for text, words in ((plain, "without guesses"), (guessed, "with guesses")):
        brought = sum(1 + step.accepted_tokens for step in text.decode_steps)
        if text.later_tokens < 1 or not text.decode_steps or not text.answer_s or min(text.answer_s) <= 0:
            return f"its text {words} has no steps or no times after the first token"
        if brought < text.later_tokens or len(text.token_ids) > record.request.run.max_tokens:
            return f"its text {words} has {len(text.token_ids)} tokens, and its steps brought others"
    if len(plain.answer_s) != len(guessed.answer_s) or any(step.drafted_tokens for step in plain.steps):
        return "its two texts were not written in the same way"
    if not plain.step_s or min(plain.step_s) <= 0:
        return "its steps without guesses have no times"
    return ""
