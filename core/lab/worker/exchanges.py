"""Time what processes of this machine exchange, for a full calibration."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import numpy as np

from core.engine.parallel.exchange_times import ExchangeTask
from core.engine.parallel.launch import launch
from core.errors import UserError
from core.lab.local_link import KINDS, ExchangeSample, LocalLink, fit_link
from core.lab.timing import spread

#: Two processes: more would need more cores than every machine has.
RANKS: Final = 2
#: Hundreds of bytes are a small model's token, megabytes a prompt's.
MESSAGE_BYTES: Final = (256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304)
#: Seconds for the processes to start, load torch and exchange.
_LIMIT_S: Final = 90.0


def local_link(
    message_bytes: tuple[int, ...], rounds: int, repeats: int, should_stop: Callable[[], bool]
) -> LocalLink:
    """Start processes, let them exchange messages, and fit a link to what that took.

    Args:
        message_bytes: of the exchanges.
        rounds: how often all sizes take their turn.
        repeats: of each size in a round.
        should_stop: asked a few times a second; what it raises ends the processes, too.

    Raises:
        UserError, OSError, RuntimeError: the processes could not be started, or did not finish.
    """
    task = ExchangeTask(RANKS, message_bytes, rounds, repeats)
    found = launch(task, limit_s=_LIMIT_S, should_stop=should_stop)
    return fit_link(
        [
            _sample(kind, size, [times[kind, size] for times in found])
            for kind in KINDS
            for size in message_bytes
        ],
        ranks=RANKS,
        backend=task.backend,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def not_measured(problem: Exception) -> str:
    """A sentence for a calibration that goes on without a link."""
    why = str(problem) if isinstance(problem, UserError) else f"{type(problem).__name__}: {problem}"
    return (
        "What processes of this computer exchange could not be measured, so no plan that splits a model over "
        f"them has a time. {why[:300]}"
    )


def _sample(kind: str, size: int, times_s: list[list[float]]) -> ExchangeSample:
    taken = spread(np.concatenate(times_s).tolist())
    return ExchangeSample(
        next(known for known in KINDS if known == kind), size, taken.median_s, taken.p10_s, taken.p90_s
    )
