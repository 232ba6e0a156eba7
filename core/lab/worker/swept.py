"""Predict one cell of a sweep, run it, and put the two beside each other."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from core.engine.engine import Engine
from core.lab.host import LoadProbe
from core.lab.noise import noise
from core.lab.pace import Pace
from core.lab.sweep_cell import SweptCell
from core.lab.sweep_forecast import forecast, runs
from core.lab.sweep_request import Cell, SweepRequest
from core.lab.timing import AGREEMENT, spread
from core.lab.worker.loop import JobContext
from core.lab.worker.outlook import Checks
from core.lab.worker.request_times import Times, run_once
from core.lab.worker.steadiness import Repeated, repeated

#: New tokens of the runs that warm up, and the most runs of them.
_WARM_UP_TOKENS: Final = 8
_WARM_UPS: Final = 2
#: Runs for each that is wanted, at most: one beside which the cores changed their speed is made again.
_MOST_AGAIN: Final = 2
#: None is made again after so long, for a job has little more than a minute for its last cell.
_AGAIN_S: Final = 8.0


@dataclass(frozen=True, slots=True)
class CellWork:
    """Everything that one cell needs.

    Attributes:
        cell: its settings. engine: loaded with them. checks: made before the runs, with this machine's
            calibration. asked: the sweep. context: of the job, which may be cancelled between two steps.
    """

    cell: Cell
    engine: Engine
    checks: Checks
    asked: SweepRequest
    context: JobContext

    def do(self) -> SweptCell:
        """A warm-up, then a rehearsal, the pace, the prediction, the runs and the pace again.

        A cell that was noisy is done again, as often as the request allows; the last one stands.

        Raises:
            StopRequestedError: the job was cancelled.
            RequestError, FormatError: it cannot be predicted or run so.
        """
        prompts = _Prompts(self.cell, self.engine, self.asked.seed)
        self._warm_up(prompts)
        for tried in range(1, self.asked.tries + 1):
            swept = self._once(prompts, tried)
            if not swept.noisy:
                break
        return swept

    def _warm_up(self, prompts: _Prompts) -> None:
        """Short runs until two agree: they choose primitives and fill caches."""
        last_s = 0.0
        for _ in range(_WARM_UPS):
            now_s = self._run(prompts, _WARM_UP_TOKENS).end_to_end_s
            if abs(now_s - last_s) <= AGREEMENT * now_s:
                return
            last_s = now_s

    def _once(self, prompts: _Prompts, tried: int) -> SweptCell:
        probe, checks = LoadProbe(), self.checks
        seen = checks.outlook(self.cell, self.context)
        made = forecast(self.cell, self.engine.spec, seen.now, seen.rehearsed)
        found = self._runs(prompts, runs(made.times["end_to_end"].value_s, self.asked.repeats), seen.before)
        kept = found.kept(self.asked.repeats)
        after, host = checks.memory.pace(seen.before), probe.stop()
        load = seen.load(host, after)
        steps = spread([seconds for run in kept for seconds in run.decode_s])
        return SweptCell(
            cell=self.cell,
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            calibration=checks.calibration.id,
            forecast=made,
            samples={
                "ttft": tuple(run.ttft_s for run in kept),
                "tpot": tuple(run.tpot_s for run in kept),
                "end_to_end": tuple(run.end_to_end_s for run in kept),
            },
            load=load,
            noisy=noise(load, None, steps, checks.calibration.pace),
            tries=tried,
            unsteady=len(found.others),
        )

    def _runs(self, prompts: _Prompts, wanted: int, before: Pace) -> Repeated[Times]:
        """So many runs at the pace of the check before them; those beside which it changed are made again."""
        end_s = time.monotonic() + _AGAIN_S

        def may_go_on(made: int) -> bool:
            return made < wanted or (made < _MOST_AGAIN * wanted and time.monotonic() < end_s)

        steadiness = self.checks.memory.steadiness(before.call_s)
        return repeated(lambda: self._run(prompts), wanted, steadiness, may_go_on)

    def _run(self, prompts: _Prompts, new_tokens: int | None = None) -> Times:
        stops = self.context.should_stop
        times = run_once(self.cell, self.engine, prompts.take(), new_tokens, stops)
        self.context.check()
        return times


class _Prompts:
    """Seeded prompts of random tokens, others in each run: what they say does not change the time."""

    def __init__(self, cell: Cell, engine: Engine, seed: int) -> None:
        self._cell, self._vocabulary = cell, engine.spec.vocab_size
        self._random = random.Random(f"{seed} {cell.key}")  # noqa: S311 - no secret

    def take(self) -> list[list[int]]:
        """A prompt for each request of the batch."""
        return [
            self._random.choices(range(self._vocabulary), k=self._cell.prompt_tokens)
            for _ in range(self._cell.batch)
        ]
