"""Fits the ranges of predictions on computers to recorded sweeps: ``python docs/fit_ranges.py FILE...``.

Writes ``assets/lab_ranges.csv``. The sweeps must hold single requests and batches, and their predictions
were made before their runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from core.catalog.assets import FOLDER
from core.lab import ranges, sweep_record


def main(names: list[str]) -> None:
    """Fit and write."""
    records = [sweep_record.load(Path(name)) for name in names]
    rows = ranges.fit_ranges(records)
    (FOLDER / f"{ranges.FILE}.csv").write_text(ranges.written(rows), encoding="utf-8")
    print(ranges.written(rows))  # noqa: T201 - a script's answer


if __name__ == "__main__":
    main(sys.argv[1:])
