"""Calibrations on disk: one file for each machine, in the user's cache folder."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from core.errors import RecordError
from core.lab.calibration import Calibration, Fingerprint
from core.lab.checked_json import parse
from core.lab.host import cpu_name, usable_cores
from core.storage import cache_folder, keep, lasting_folder
from core.units import MB

#: A machine drifts with its system's updates and its neighbours; an older file is not used.
MOST_AGE: Final = timedelta(days=30)
#: Of a full disk or a folder that may not be written; the host's log names it.
NOT_KEPT: Final = (
    "This calibration could not be kept on the disk, so this computer is measured anew at the next start. "
    "The host's log says why."
)
_MOST_BYTES: Final = MB
_LAB: Final = Path(__file__).parent
_ENGINE: Final = _LAB.parent / "engine"
#: What times its operators, and what makes rates of the times.
_TIMING: Final = (
    *(_LAB / f"{name}.py" for name in ("fit", "measured_rate", "pace")),
    *(
        _LAB / "worker" / f"{name}.py"
        for name in (
            "calibrate",
            "calibration_model",
            "calibration_turn",
            "ceilings",
            "effort",
            "operator_clock",
            "steadiness",
        )
    ),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A calibration that holds here and now, or why there is none."""

    calibration: Calibration | None
    reason: str


def fingerprint(device: str, device_name: str) -> Fingerprint:
    """This machine, as its calibration knows it; torch is looked up and not loaded."""
    try:
        torch_version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch_version = "none"
    return Fingerprint(cpu_name(), usable_cores(), device, device_name, torch_version, _engine())


@functools.cache
def _engine() -> str:
    """A digest of the engine's source, and of what times it: another kernel takes another time."""
    digest = hashlib.blake2b(digest_size=6)
    for path in (*sorted(_ENGINE.rglob("*")), *_TIMING):
        if path.suffix in {".py", ".cpp", ".h"}:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def path_for(fingerprint: Fingerprint) -> Path:
    """Where the calibration of a machine is kept."""
    return cache_folder() / "calibrations" / f"{fingerprint.device}-{fingerprint.id}.json"


def save(calibration: Calibration) -> str:
    """Write a calibration in place of the machine's older one; a sentence where the next start lacks it."""
    text = json.dumps(calibration.to_json(), allow_nan=False, indent=1)
    kept = keep(path_for(calibration.fingerprint), lambda path: path.write_text(text))
    if kept and cache_folder() == lasting_folder():
        return ""
    return NOT_KEPT


def load(fingerprint: Fingerprint, now: datetime | None = None) -> Stored:
    """Read a machine's calibration; a file that does not hold is left alone and explained."""
    path = path_for(fingerprint)
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        return Stored(None, "This machine was not calibrated yet.")
    except OSError as problem:
        return Stored(None, f"The stored calibration could not be read ({problem.strerror}).")
    try:
        calibration = Calibration.from_json(parse(raw, "A calibration", _MOST_BYTES).data)
    except RecordError as error:
        return Stored(None, f"The stored calibration was not used. {error}")
    difference = fingerprint.difference(calibration.fingerprint)
    if difference:
        return Stored(None, f"The stored calibration does not hold here: {difference}.")
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(calibration.measured_at)
    if not timedelta(minutes=-5) < age < MOST_AGE:
        return Stored(
            None, f"The stored calibration is of {calibration.measured_at[:10]}, too far from today."
        )
    return Stored(calibration, "")
