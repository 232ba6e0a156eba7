"""The record of a sweep on another machine, with a cell that could not be run, for tests to bend."""

from dataclasses import replace

from core.lab.record_parts import HostRecord
from core.lab.sweep_record import SweepRecord
from core.units import GB
from tests.lab.sweep_example import REQUEST, sweep

__all__ = ["HOST", "REQUEST", "sweep_record"]

HOST = HostRecord("cuda", "NVIDIA H200", "580.1", "A processor", 16, 128 * GB, "Linux", "3.11.7", "2.13.0", 8)


def sweep_record(off: float = 1.1, noisy: tuple[str, ...] = ()) -> SweepRecord:
    """Every cell predicted ``off`` times what it took; the last cell could not be run."""
    whole = sweep(REQUEST, slowness=1 / off, host=HOST)
    *done, last = (replace(swept, noisy=noisy) for swept in whole.cells)
    failed = replace(
        last, problem="It did not fit into the memory.", forecast=None, samples=None, load=None, noisy=()
    )
    return replace(whole, cells=(*done, failed))
