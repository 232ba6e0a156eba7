"""Writes what a fit found where the app reads it: priors with their provenance, ranges, judged rows."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np

from core.analytic.prediction_range import half_width
from core.analytic.validation.fitting import Design, design, fit
from core.analytic.validation.judged import JUDGED
from core.analytic.validation.judging import Judgement, regimes
from core.analytic.validation.terms import Array
from core.analytic.validation.workload import Workload
from core.catalog.assets import FOLDER

_SOURCE: Final = "fit of assets/benchmarks.csv by python -m core validate --write"


def write_assets(
    loads: Sequence[Workload], judgement: Judgement, folder: Path = FOLDER
) -> tuple[Path, Path, Path]:
    """Fit all runs and write priors, ranges and the judged rows; gives the paths of the three files."""
    of = design(loads)
    effects = fit(of, np.ones(len(loads), bool))
    return (
        _write(folder / "priors.csv", _prior_rows(of, effects, _errors(of))),
        _write(folder / "prediction_ranges.csv", _range_rows(judgement)),
        write_judged(judgement, folder),
    )


def write_judged(judgement: Judgement, folder: Path = FOLDER) -> Path:
    """Write ``judged_runs.csv``: each run as it was predicted without its source, and what with."""
    return _write(folder / f"{JUDGED}.csv", _judged_rows(judgement))


def _errors(of: Design) -> Array:
    """Standard errors by the jackknife over sources: how much each effect moves when one is left out."""
    sources = np.unique(of.sources)
    fits = np.array([fit(of, of.sources != source) for source in sources])
    share = (len(sources) - 1) / len(sources)
    return np.asarray(np.sqrt(share * ((fits - fits.mean(axis=0)) ** 2).sum(axis=0)))


def _prior_rows(of: Design, effects: Array, errors: Array) -> list[dict[str, str]]:
    today = date.today().isoformat()
    used = {
        name: sum(weights[:, i].any() for weights in of.weights.values()) for i, name in enumerate(of.names)
    }
    rows = []
    for index, name in enumerate(of.names):
        quantity = name.partition("|")[0]
        runs = int(np.count_nonzero(of.weights[quantity][:, index]))
        if used[name]:
            rows.append(
                {
                    "effect": name,
                    "value": f"{effects[index]:.5f}",
                    "spread": f"{errors[index]:.5f}",
                    "runs": str(runs),
                    "source": _SOURCE,
                    "date": today,
                }
            )
    return sorted(rows, key=lambda row: row["effect"])


def _range_rows(judgement: Judgement) -> list[dict[str, str]]:
    today = date.today().isoformat()
    sources: Mapping[str, int] = {
        regime: len(
            {
                run.source
                for run, error in zip(judgement.runs, judgement.log_errors, strict=True)
                if error in errors
            }
        )
        for regime, errors in regimes(judgement).items()
    }
    return [
        {
            "regime": regime,
            "half_width": f"{half_width(errors, judgement.log_errors):.4f}",
            "runs": str(len(errors)),
            "sources": str(sources[regime]),
            "source": _SOURCE,
            "date": today,
        }
        for regime, errors in regimes(judgement).items()
    ]


def _judged_rows(judgement: Judgement) -> list[dict[str, str]]:
    today = date.today().isoformat()
    widths = np.exp(judgement.half_widths)
    return [
        {
            "id": load.run.id,
            "predicted": _written(judgement.predicted[row]),
            "low": _written(judgement.predicted[row] / widths[row]),
            "high": _written(judgement.predicted[row] * widths[row]),
            "batch": _written(load.batch),
            "format": load.setting.format,
            **{name: _written(numbers[row]) for name, numbers in judgement.quantities.items()},
            "source": _SOURCE,
            "date": today,
        }
        for row, load in enumerate(judgement.loads)
    ]


def _written(number: float) -> str:
    """Enough digits that the page's arithmetic gives the same result."""
    return f"{number:.7g}"


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path
