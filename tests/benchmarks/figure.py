"""One measured figure: a ratio where something is compared, always with its conditions."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of ``bench.json``.

    Attributes:
        name: what was measured. value: the median, in ``unit``; None where it could not be measured.
        target: what it should reach, in words ("at least 2.5"). conditions: everything needed to
            judge it: repeats, threads, sizes, versions, spread.
    """

    name: str
    value: float | None
    unit: str
    target: str
    conditions: str

    def line(self) -> str:
        """One line of the table."""
        value = "not measured" if self.value is None else f"{self.value:.3g} {self.unit}"
        return f"{self.name:58} {value:>16}   target: {self.target}\n    {self.conditions}"


def machine_in_words() -> str:
    """The host, for the conditions of a figure."""
    return f"{platform.machine()}, {os.cpu_count()} logical cores, Python {platform.python_version()}"


def report(measure: Callable[[], list[Figure]]) -> None:
    """Run one benchmark module: print its table, and write ``--out FILE`` when that is given."""
    parser = argparse.ArgumentParser(description="Measure, print, and optionally write the figures.")
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    args = parser.parse_args()
    figures = measure()
    for figure in figures:
        print(figure.line())
    if args.out:
        args.out.write_text(json.dumps([asdict(figure) for figure in figures], indent=2, allow_nan=False))
