"""Rehearse a run with the calibration's model; see ``core.lab.rehearsal``."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import Final

from core.catalog.model import ModelSpec
from core.engine.engine import Engine
from core.lab.calibration import Calibration
from core.lab.predict import predict_shape
from core.lab.rehearsal import Rehearsal
from core.lab.sweep_request import Cell
from core.lab.worker.calibration_model import calibration_engine, calibration_spec
from core.lab.worker.effort import FULL
from core.lab.worker.loop import JobContext
from core.lab.worker.request_times import Times, run_once

#: Its entries: the head of a small vocabulary takes little of the time, as in a large model.
_VOCABULARY: Final = 2048
_NEW_TOKENS: Final = 6
#: A rehearsal is short: requests, tokens of the prompt of each, and of all prompts together.
_MOST_BATCH: Final = 16
_MOST_PROMPT: Final = 64
_MOST_TOKENS: Final = 256
#: Without a cache, where each step computes all tokens again: new tokens, and all of the prompts.
_RECOMPUTED: Final = 2
_MOST_RECOMPUTED: Final = 64
#: So many times, for so long; fewer where those take longer still.
_LEAST: Final = 3
_MOST: Final = 9
_FOR_S: Final = 0.5
_LONGEST_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a rehearsal took: its cell, the shape of its model, and the median seconds."""

    cell: Cell
    spec: ModelSpec
    ttft_s: float
    tpot_s: float

    def beside(self, now: Calibration) -> Rehearsal:
        """How many times as long that is as a calibration predicts.

        Raises:
            FormatError: the calibration has no rate for a format.
        """
        predicted = predict_shape(self.cell.shape, self.spec, now.machine(self.cell.weights))
        return Rehearsal(self.ttft_s / predicted.ttft_s, self.tpot_s / (predicted.tpot_s or predicted.ttft_s))


class Rehearsals:
    """Keeps the calibration's model in the format of weights that was asked for last: 30 to 300 MB.

    Args:
        device: where runs are. pairs: of layers; together they should be larger than the caches.
    """

    def __init__(self, device: str, pairs: int = FULL.pairs) -> None:
        self._device = device
        self._spec = calibration_spec(pairs, _VOCABULARY)
        self._kept: tuple[str, Engine] | None = None

    def of(self, cell: Cell, context: JobContext) -> Rehearsed | None:
        """Rehearse a cell in short; None on a GPU, which nobody shares.

        Args:
            cell: what will be run.
            context: of the job.

        Raises:
            StopRequestedError: the job was cancelled.
            FormatError: this device has no kernel for a format.
        """
        if self._device == "cuda":
            return None
        short, engine = in_short(cell), self._engine(cell)
        prompts = [[1] * short.prompt_tokens for _ in range(short.batch)]
        began_s = time.monotonic()
        found: list[Times] = []
        while not found or _goes_on(len(found), time.monotonic() - began_s):
            context.check()
            found.append(run_once(short, engine, prompts, should_stop=context.should_stop))
        context.check()
        return Rehearsed(
            short,
            self._spec,
            statistics.median(times.ttft_s for times in found),
            statistics.median(times.tpot_s for times in found),
        )

    def clear(self) -> None:
        """Drop the model, for example after memory ran out."""
        self._kept = None

    def _engine(self, cell: Cell) -> Engine:
        if self._kept is None or self._kept[0] != cell.weights:
            self._kept = None  # its memory is needed
            self._kept = cell.weights, calibration_engine(self._spec, cell.weights, cell.kv, self._device)
        _, kept = self._kept
        engine = kept if cell.kv == kept.kv else kept.with_cache(cell.kv)
        engine.cache = cell.cache
        return engine


def in_short(cell: Cell) -> Cell:
    """Requests like a cell's, few and short.

    >>> in_short(Cell("smollm2-135m", "int4", "bf16", "paged", 32, 512, 128)).key
    'smollm2-135m int4 bf16 paged 16 16 6'
    >>> in_short(Cell("smollm2-135m", "int4", "bf16", "none", 1, 512, 128)).key
    'smollm2-135m int4 bf16 none 1 64 2'
    """
    cached = cell.cache != "none"
    batch = min(cell.batch, _MOST_BATCH)
    prompt = min(cell.prompt_tokens, _MOST_PROMPT, (_MOST_TOKENS if cached else _MOST_RECOMPUTED) // batch)
    new = _NEW_TOKENS if cached else _RECOMPUTED
    return replace(cell, batch=batch, prompt_tokens=prompt, new_tokens=new)


def _goes_on(made: int, since_s: float) -> bool:
    """Whether there is one more after so many.

    >>> _goes_on(2, 1.9), _goes_on(3, 1.9), _goes_on(8, 0.4), _goes_on(9, 0.4), _goes_on(1, 2.1)
    (True, False, True, False, False)
    """
    return since_s < (_LONGEST_S if made < _LEAST else _FOR_S) and made < _MOST
