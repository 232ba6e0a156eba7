"""What came out of a sweep: predicted and measured, and bytes, speed and quality in one picture."""

from __future__ import annotations

import streamlit as st

from core.lab.sweep_cell import SweptCell
from core.lab.sweep_record import SweepRecord
from core.ui import picture
from core.ui.figures.speed_by_bytes import SpeedPoint, speed_by_bytes
from core.ui.lab import models
from core.ui.predictions import sweeps

#: More marks than this hide each other.
_MOST_POINTS = 12
_THOUSANDTHS = 1e3


def draw(record: SweepRecord, key: str) -> None:
    """Draw the record's cells, whole or not.

    Args:
        record: the sweep.
        key: of its elements.
    """
    sweeps.draw(record, key)
    if points := speed_points(record):
        left, _ = st.columns([3, 2], gap="medium")
        with left:
            picture.show(speed_by_bytes(points), key=f"{key}_speed")


def speed_points(record: SweepRecord) -> list[SpeedPoint]:
    """A mark for each pair of formats of the first model, at its largest batch and longest prompt."""
    done = [swept for swept in record.cells if swept.forecast and swept.samples]
    if not done:
        return []
    first = done[0].cell.model
    best: dict[tuple[str, str, str], SweptCell] = {}
    for swept in done:
        cell = swept.cell
        key = (cell.weights, cell.kv, cell.cache)
        if cell.model == first and (key not in best or _load(swept) > _load(best[key])):
            best[key] = swept
    most = max((_load(swept) for swept in best.values()), default=(0, 0))
    return [_point(swept, record) for swept in best.values() if _load(swept) == most][:_MOST_POINTS]


def _load(swept: SweptCell) -> tuple[int, int]:
    return swept.cell.batch, swept.cell.prompt_tokens


def _point(swept: SweptCell, record: SweepRecord) -> SpeedPoint:
    cell, made, taken = swept.cell, swept.forecast, swept.measured("tpot")
    if made is None or taken is None:
        raise ValueError("a cell without numbers has no mark")
    names = [cell.weights]
    if len(record.request.kv) > 1:
        names.append(f"KV {cell.kv}")
    if len(record.request.caches) > 1:
        names.append(cell.cache)
    if len(record.request.models) > 1:
        names.insert(0, models.short(cell.model))
    quality = swept.quality
    return SpeedPoint(
        name=", ".join(names),
        num_bytes=made.weight_bytes + made.kv_bytes,
        rate=cell.batch / taken.median_s,
        loss=quality.kl * _THOUSANDTHS if quality else None,
        agreement=quality.agreement if quality else None,
        perplexity=quality.perplexity if quality else None,
    )
