"""``python -m core validate``: the predictor against published measurements, whole sources left out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.validation.judging import GROUPS, Judgement, in_group, judge, judge_others
from core.analytic.validation.keeping import write_assets
from core.analytic.validation.runs import METRICS, PublishedRun, Skipped, published_runs
from core.analytic.validation.workload import Workload, workload
from core.catalog.plain_text import plain_text
from core.errors import ConfigError, UserError

#: A file of rows may say anything; so much of it is printed.
_LONGEST_TEXT: Final = 200
Mask = NDArray[np.bool_]


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--rows", type=Path, metavar="FILE.csv", help="measurements to predict instead of the published ones"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="fit all published rows and write the priors and ranges to assets/",
    )


def run(args: Namespace) -> dict[str, Any]:
    """Judge the predictor.

    Raises:
        ConfigError: the file of rows cannot be read, or has none that can be predicted.
    """
    known, skipped = _loads(None)
    if args.rows is None:
        found = judge(known)
    else:
        others, skipped = _loads(args.rows)
        if not others:
            reasons = "; ".join(dict.fromkeys(row.why for row in skipped[:5]))
            raise ConfigError(
                f"One row or more must be predictable; none is ({reasons}). See the columns' notes."
            )
        found = judge_others(others, known)
    if args.write:
        write_assets(known, judge(known) if args.rows else found)
    return report(found, skipped)


def _loads(path: Path | None) -> tuple[list[Workload], list[Skipped]]:
    """The rows that can be predicted with their sums, and the others."""
    published = published_runs(path)
    loads, skipped = [], list(published.skipped)
    for row in published.runs:
        try:
            loads.append(workload(row))
        except UserError as problem:
            skipped.append(Skipped(row.id, str(problem)))
    return loads, skipped


# --- The result -----------------------------------------------------------------------------------


def report(found: Judgement, skipped: list[Skipped]) -> dict[str, Any]:
    """The judgement as the command line prints it."""
    everything = np.ones(len(found.runs), bool)
    better = 1 - np.abs(found.log_errors).mean() / np.abs(found.baseline_log_errors).mean()
    return {
        "rows": len(found.runs),
        "sources": len({run.source for run in found.runs}),
        **_errors(found, everything),
        "coverage_of_80_pct_range": float(found.covered.mean()),
        "by_group": _by(found, GROUPS, in_group),
        "by_metric": _by(found, METRICS, lambda run, metric: run.metric == metric),
        "six_global_terms": {
            "mean_abs_log_error": float(np.abs(found.baseline_log_errors).mean()),
            "this_predictor": float(np.abs(found.log_errors).mean()),
            "lower_by": float(better),
            "by_group": {
                group: float(np.abs(found.baseline_log_errors[mask]).mean())
                for group in GROUPS
                if (mask := _mask(found, group, in_group)).any()
            },
        },
        "skipped": [{"id": row.id, "why": row.why} for row in skipped],
    }


def _errors(found: Judgement, mask: Mask) -> dict[str, float]:
    errors = found.percent_errors[mask]
    return {
        "mean_abs_pct_error": float(errors.mean()),
        "median_abs_pct_error": float(np.median(errors)),
        "p90_abs_pct_error": float(np.quantile(errors, 0.9)),
    }


def _mask(found: Judgement, name: str, belongs: Callable[[PublishedRun, str], bool]) -> Mask:
    return np.array([belongs(run, name) for run in found.runs])


def _by(
    found: Judgement, names: tuple[str, ...], belongs: Callable[[PublishedRun, str], bool]
) -> dict[str, dict[str, float]]:
    table = {}
    for name in names:
        mask = _mask(found, name, belongs)
        if not mask.any():
            continue
        table[name] = {
            "rows": int(mask.sum()),
            "sources": len({run.source for run, inside in zip(found.runs, mask, strict=True) if inside}),
            **_errors(found, mask),
            "coverage_of_80_pct_range": float(found.covered[mask].mean()),
            "mean_abs_log_error": float(np.abs(found.log_errors[mask]).mean()),
        }
    return table


def render(result: dict[str, Any]) -> str:
    """Write the same result for a person."""
    lines = [
        f"{result['rows']} published measurements of {result['sources']} sources, each predicted without "
        "its source.",
        "",
        _line("group", "rows", "sources", "mean", "median", "p90", "in range", "global"),
    ]
    alone = result["six_global_terms"]
    for name, row in {**result["by_group"], **result["by_metric"]}.items():
        baseline = alone["by_group"].get(name)
        lines.append(_row(name, row, baseline))
    lines += [
        "",
        "mean, median, p90: |predicted / measured - 1|. in range: measurements inside the 80 % range.",
        "global: mean log error of six global terms / that of this predictor.",
        f"Mean log error {alone['this_predictor']:.3f}, of six global terms "
        f"{alone['mean_abs_log_error']:.3f}: {alone['lower_by']:.0%} lower.",
    ]
    if result["skipped"]:
        lines += ["", f"Not predicted ({len(result['skipped'])}):"]
        lines += [f"  {why}: {ids}" for why, ids in _reasons(result["skipped"]).items()]
    return "\n".join(lines)


def _row(name: str, row: dict[str, float], baseline: float | None) -> str:
    return _line(
        name,
        str(row["rows"]),
        str(row["sources"]),
        f"{row['mean_abs_pct_error']:.1f} %",
        f"{row['median_abs_pct_error']:.1f} %",
        f"{row['p90_abs_pct_error']:.0f} %",
        f"{row['coverage_of_80_pct_range']:.0%}",
        "" if baseline is None else f"{baseline / row['mean_abs_log_error']:.2f}",
    )


def _line(name: str, *cells: str) -> str:
    return f"{name:48}" + "".join(f"{cell:>10}" for cell in cells)


def _reasons(skipped: list[dict[str, str]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for row in skipped:
        found.setdefault(row["why"], []).append(row["id"])
    return {
        plain_text(why, _LONGEST_TEXT): ", ".join(plain_text(row, _LONGEST_TEXT) for row in ids)
        for why, ids in found.items()
    }
