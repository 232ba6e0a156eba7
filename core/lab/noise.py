"""Whether a run was disturbed, and by what: each reason is a clause for a sentence.

A verdict is drawn from a quiet run only.
"""

from __future__ import annotations

from typing import Final

from core.lab.host import HostLoad
from core.lab.pace import Pace
from core.lab.record_parts import LoadRecord
from core.lab.timing import Spread
from core.units import format_gb, format_seconds

#: Bandwidth, or the time of a step or a call, that moved by more than this during a run.
DRIFT_LIMIT: Final = 0.2
#: Bandwidth that fell by more than this since the calibration: a prediction follows it to a half, no further.
FALL_LIMIT: Final = 0.4
#: Half of p10 to p90 over the median, of repeated steps.
SPREAD_LIMIT: Final = 0.15


def noise(
    load: LoadRecord, watched: Spread | None, repeats: Spread | None, calibrated: Pace
) -> tuple[str, ...]:
    """Every reason why a run is noisy; empty for a quiet one.

    Args:
        load: who else used the host, and its pace beside the run.
        watched: of the decode steps in sight; None where there were none.
        repeats: of the repeated decode steps; None where there were none.
        calibrated: what the same checks gave when the machine was calibrated.
    """
    reasons = HostLoad(load.others, load.steal, load.duration_s).reasons()
    slower, faster = sorted((load.before.read_bytes_per_s, load.after.read_bytes_per_s))
    if _apart(slower, faster):
        reasons.append(f"memory bandwidth moved between {_rate(slower)} and {_rate(faster)}")
    elif faster < (1 - FALL_LIMIT) * calibrated.read_bytes_per_s:
        reasons.append(
            f"memory reads {_rate(faster)}, and {_rate(calibrated.read_bytes_per_s)} when calibrated"
        )
    if _apart(load.before.call_s, load.after.call_s):
        shorter, longer = sorted((load.before.call_s, load.after.call_s))
        reasons.append(
            f"the same arithmetic took {format_seconds(shorter)} and {format_seconds(longer)} beside the run"
        )
    if repeats is not None and repeats.relative > SPREAD_LIMIT:
        reasons.append(f"repeated steps scattered by {repeats.relative:.0%}")
    if watched is not None and repeats is not None and _apart(watched.median_s, repeats.median_s):
        reasons.append(
            f"the steps in sight took {format_seconds(watched.median_s)} and the repeated ones "
            f"{format_seconds(repeats.median_s)}"
        )
    return tuple(reasons)


def _apart(one: float, other: float) -> bool:
    return min(one, other) < (1 - DRIFT_LIMIT) * max(one, other)


def _rate(bytes_per_s: float) -> str:
    return f"{format_gb(bytes_per_s)}/s"
