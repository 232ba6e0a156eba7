"""The conditions of a recorded run: the machine, its software, its calibration, and who else used it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.lab.calibration import Calibration
from core.lab.record import RunRecord
from core.lab.record_parts import HostRecord
from core.lab.sweep_record import SweepRecord
from core.ui import table
from core.ui.lab.files import clock
from core.ui.table import Cell
from core.units import format_gb, format_gib

Rows = Sequence[tuple[str, Cell]]


def draw(host: HostRecord | None, others: Rows, key: str) -> None:
    """A table of conditions in the current container.

    Args:
        host: the machine; None where it is not known.
        others: further conditions, names and values.
        key: of the table.
    """
    with st.container(key=f"{key}_conditions"):
        table.show(("condition", "value"), [*others, *of_host(host)], "Conditions")


def of_host(host: HostRecord | None) -> Rows:
    """The machine and its software."""
    if host is None:
        return []
    rows = [
        ("device", host.device_name or host.device),
        ("processor", f"{host.cpu}, {host.cores} cores, {host.threads} threads used"),
        ("memory", format_gib(host.memory_bytes)),
        ("software", f"torch {host.torch_version}, Python {host.python_version}, {host.system}"),
    ]
    return [*rows, ("driver", host.driver)] if host.driver else rows


def of_run(record: RunRecord) -> Rows:
    """When a run was made, after which calibration, and how quiet the machine was."""
    return [
        ("when", clock(record.created_at)),
        ("calibrated", _calibration(record.calibration)),
        (
            "others' use of the processors",
            f"{record.load.others:.0%}, stolen by the host {record.load.steal:.0%}",
        ),
        ("noisy", "; ".join(record.noisy) or "no"),
    ]


def of_sweep(record: SweepRecord) -> Rows:
    """The same of a sweep."""
    noisy = [swept for swept in record.cells if swept.noisy]
    reasons = dict.fromkeys(reason for swept in noisy for reason in swept.noisy)
    said = f"{len(noisy)} of {len(record.cells)} cells" + (f": {'; '.join(reasons)}" if reasons else "")
    return [
        ("when", clock(record.created_at)),
        ("calibrated", "; ".join(_calibration(each) for each in record.calibrations) or "none"),
        ("noisy", said if noisy else "no cell"),
    ]


def _calibration(made: Calibration) -> str:
    read = format_gb(made.bandwidths[-1].read_bytes_per_s)
    return f"{made.depth}, {clock(made.measured_at)}, memory read {read}/s with {made.threads} threads"
