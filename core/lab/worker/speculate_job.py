"""The experiment "speculate": the same text without and with guesses, several times in turn.

The first writing is in sight; the others are for the times. What guessing costs is timed apart, around
the engine's own speculator.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from core.engine.batch import Sequence
from core.engine.engine import Engine
from core.engine.records import Generation, TokenEvent
from core.engine.sampling import Sampling
from core.engine.speculation import Asked, Guess, ModelSpeculator, NGramSpeculator, Speculator
from core.lab.host import LoadProbe
from core.lab.speculate_record import SpeculateRecord, Written
from core.lab.speculate_request import SpeculateRequest
from core.lab.timing import spread
from core.lab.worker.engines import EngineShelf, Wanted
from core.lab.worker.loop import JobContext
from core.lab.worker.machine_info import host_record

#: Writings of each text, and the fewest where one takes long.
_WRITINGS: Final = 5
_FEWEST: Final = 1
#: Seconds for all writings together, as far as the first ones tell.
_BUDGET_S: Final = 40.0
_WARM_UP_TOKENS: Final = 8
#: Half of p10 to p90 over the median, of the times of one text, from which they are noisy.
_SCATTER: Final = 0.15


@dataclass(slots=True)
class _TimedSpeculator:
    """A speculator whose guessing is timed, one entry a round with guesses: seconds and guesses."""

    inner: Speculator
    rounds: list[tuple[float, int]] = field(default_factory=list)
    num_guesses: int = 0

    def __post_init__(self) -> None:
        self.num_guesses = self.inner.num_guesses

    def prepare(self, target: Engine, num_sequences: int, longest: int) -> None:
        """See ``Speculator``."""
        self.inner.prepare(target, num_sequences, longest)

    def guess(self, asked: list[Asked]) -> list[Guess]:
        """See ``Speculator``."""
        before = time.perf_counter()
        guesses = self.inner.guess(asked)
        seconds, made = time.perf_counter() - before, sum(len(guess.tokens) for guess in guesses)
        if made:
            self.rounds.append((seconds, made))
        return guesses

    def forget(self, sequence: Sequence) -> None:
        """See ``Speculator``."""
        self.inner.forget(sequence)


def speculate(context: JobContext, payload: dict[str, Any], shelf: EngineShelf) -> dict[str, Any]:
    """Do the experiment and return its record as JSON.

    Raises:
        StopRequestedError: it was cancelled.
        RequestError, FormatError, CheckpointError: a sentence on what does not hold.
    """
    request = SpeculateRequest.from_json(payload)
    run = request.run
    context.report("loading")
    engine = shelf.take(Wanted(run.model, run.weights, run.kv, "contiguous"))
    draft = _TimedSpeculator(_speculator(request, engine))
    ids = engine.encode(run.prompt, raw=run.raw)
    context.report("warming up")
    for speculator in (None, draft):
        _write(context, request, engine, ids, speculator, most=_WARM_UP_TOKENS)
    draft.rounds.clear()
    load = LoadProbe()
    plain, guessed = _writings(context, request, engine, ids, draft)
    host = load.stop()
    record = SpeculateRecord(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        host=host_record("cuda" if engine.device.type == "cuda" else "cpu"),
        request=request,
        model_name=engine.spec.name,
        prompt_tokens=len(ids),
        plain=_written(plain),
        guessed=_written(guessed, draft),
        noisy=(*host.reasons(), *_scatter(plain, "without guesses"), *_scatter(guessed, "with guesses")),
    )
    return record.to_json()


def _speculator(request: SpeculateRequest, engine: Engine) -> Speculator:
    if request.draft == "ngram":
        return NGramSpeculator(request.guesses)
    return ModelSpeculator(engine, request.guesses, layers=request.layers)


def _writings(
    context: JobContext, request: SpeculateRequest, engine: Engine, ids: list[int], draft: _TimedSpeculator
) -> tuple[list[Generation], list[Generation]]:
    """Both texts in turn, so that a change of the host's pace meets both."""
    plain: list[Generation] = []
    guessed: list[Generation] = []
    started, writings = time.perf_counter(), _WRITINGS
    while len(guessed) < writings:
        context.report("writing without guesses", 2 * len(plain) / (2 * writings))
        plain.append(_write(context, request, engine, ids, None, in_sight=not plain))
        context.report("writing with guesses", (2 * len(guessed) + 1) / (2 * writings))
        guessed.append(_write(context, request, engine, ids, draft))
        pair_s = (time.perf_counter() - started) / len(guessed)
        writings = max(min(_WRITINGS, int(_BUDGET_S / pair_s)), _FEWEST)
    return plain, guessed


def _write(
    context: JobContext,
    request: SpeculateRequest,
    engine: Engine,
    ids: list[int],
    speculator: Speculator | None,
    *,
    most: int | None = None,
    in_sight: bool = False,
) -> Generation:
    def stream(event: TokenEvent) -> None:
        context.step(event.text_delta, event.step)

    run = request.run
    generation = engine.generate(
        ids,
        Sampling(run.temperature, run.top_k, run.top_p, run.seed),
        max_tokens=run.max_tokens if most is None else min(most, run.max_tokens),
        on_token=stream if in_sight else None,
        should_stop=context.should_stop,
        end_tokens=frozenset(),  # both texts have the length that was asked for
        speculator=speculator,
    )
    context.check()
    return generation


def _written(generations: list[Generation], draft: _TimedSpeculator | None = None) -> Written:
    first = generations[0]
    decode = [step for one in generations for step in one.steps if step.kind == "decode"]
    return Written(
        token_ids=tuple(first.token_ids),
        text=first.text,
        steps=first.steps,
        answer_s=tuple(_answer_s(one) for one in generations),
        step_s=tuple(step.host_s for step in decode if not step.drafted_tokens),
        verify_s=tuple(step.host_s for step in decode if step.drafted_tokens),
        draft_s=() if draft is None else tuple(seconds / made for seconds, made in draft.rounds),
    )


def _answer_s(generation: Generation) -> float:
    return (generation.tpot_s or 0.0) * (len(generation.token_ids) - 1)


def _scatter(generations: list[Generation], words: str) -> list[str]:
    """A reason where the same text took now longer, now shorter."""
    scattered = spread([_answer_s(one) for one in generations]).relative
    return [f"writing {words} scattered by {scattered:.0%}"] if scattered > _SCATTER else []
