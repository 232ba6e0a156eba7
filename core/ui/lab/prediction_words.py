"""How a run was predicted, in words: the pace that checks showed, the rehearsal, and what both changed."""

from __future__ import annotations

from core.catalog.model import ModelSpec
from core.errors import UserError
from core.lab.pace import FARTHEST
from core.lab.predict import predict
from core.lab.record import RunRecord
from core.ui.lab import models
from core.units import format_gb, format_seconds


def how_predicted(record: RunRecord) -> str:
    """At which pace of the machine the run was predicted, after which rehearsal, and what that changed."""
    known = record.request.model in models.known_ids()
    alone = _alone(record, models.spec(record.request.model)) if known else ""
    return " ".join(filter(None, [_pace(record), _rehearsal(record), alone]))


def _pace(record: RunRecord) -> str:
    then = record.calibration.pace
    now = record.load.predicted_at(then)
    checks = (
        "halfway between the calibration and a check just before the run"
        if record.load.followed is None
        else "that checks before the run showed"
    )
    return (
        f"Predicted for the pace {checks}: memory reads {format_gb(now.read_bytes_per_s)}/s, and arithmetic "
        f"on a million numbers takes {format_seconds(now.call_s)}. Beside the calibration these were "
        f"{format_gb(then.read_bytes_per_s)}/s and {format_seconds(then.call_s)}."
    )


def _rehearsal(record: RunRecord) -> str:
    """What was rehearsed, and how far the prediction follows it; empty where nothing was."""
    found = record.load.rehearsal
    if found is None:
        return ""
    told = (
        "Just before the run it was rehearsed: the made-up model that this computer was calibrated with "
        "answered short requests in the same formats. Its first token took "
        f"{found.prefill:.2f} times what is predicted of it at that pace, each later one {found.decode:.2f} "
        "times."
    )
    if not found.is_followed:
        return (
            f"{told} More than a factor of {FARTHEST:g} is no pace: something disturbed the rehearsal, and "
            "the prediction leaves it out."
        )
    return (
        f"{told} A rehearsal is short and noisy, so the prediction goes half of the way: times "
        f"{found.followed.prefill:.2f} and {found.followed.decode:.2f}, the square roots."
    )


def _alone(record: RunRecord, model: ModelSpec) -> str:
    """What the calibration alone says, which is what a page shows before a run."""
    machine, tokens = record.calibration.machine(record.request.weights), record.prediction.prompt_tokens
    try:
        alone = predict(record.request, tokens, model, machine)
    except UserError:  # a calibration without what its request needs: the worked number says what is missing
        return ""
    tpot = "" if alone.tpot_s is None else f" and TPOT {format_seconds(alone.tpot_s)}"
    return f"By the calibration alone, without these, TTFT is {format_seconds(alone.ttft_s)}{tpot}."
