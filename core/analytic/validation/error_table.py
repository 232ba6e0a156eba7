"""Errors of the predictor by what the runs are: groups of the command's table, families, formats, sources.

Every column is of ``|predicted / measured - 1|`` in percent, of predictions that have not seen the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.analytic.prediction_range import Conditions, outside
from core.analytic.validation.judged import JudgedRun
from core.analytic.validation.judging import GROUPS

_METRICS: Final = {
    "decode_tok_s_per_user": "tokens/s of one user",
    "output_tok_s_total": "output tokens/s in all",
    "output_tok_s_per_gpu": "output tokens/s of one GPU",
    "requests_per_s": "requests/s",
    "tpot_ms": "TPOT",
    "prefill_tok_s": "prefill tokens/s",
    "ttft_ms": "TTFT",
    "mbu": "MBU",
}
#: The metrics' units, as they were published.
UNITS: Final = {
    "decode_tok_s_per_user": "tokens/s",
    "output_tok_s_total": "tokens/s",
    "output_tok_s_per_gpu": "tokens/s",
    "requests_per_s": "requests/s",
    "tpot_ms": "ms",
    "prefill_tok_s": "tokens/s",
    "ttft_ms": "ms",
    "mbu": "of the bandwidth",
}
_FORMATS: Final = {
    "16": "16 bits",
    "w8": "8-bit weights, widened",
    "q4": "4-bit weights, widened",
    "packed4": "4-bit weights, tinygemm's layout",
    "fp8": "8-bit products (fp8, int8)",
    "fp4": "4-bit products",
}
_CHIPS: Final = {
    "hbm": "data-centre GPUs (HBM)",
    "gddr": "graphics cards (GDDR)",
    "amd": "AMD accelerators",
    "apple": "Apple chips",
    "lpddr": "small boards (LPDDR)",
    "cpu": "processors",
}
#: Batches from the first to the last of each class.
_BATCHES: Final = {"1": (1, 1), "2 to 8": (1.5, 8.5), "9 to 64": (8.5, 64.5), "above 64": (64.5, np.inf)}


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one class of runs.

    Attributes:
        name: of the class. rows, sources: how many. median, mean, p90: percent.
        in_range: share of measurements inside the 80 % range.
    """

    name: str
    rows: int
    sources: int
    median: float
    mean: float
    p90: float
    in_range: float


def metric_words(name: str) -> str:
    """A metric in words; an unknown one keeps its name.

    >>> metric_words("ttft_ms")
    'TTFT'
    """
    return _METRICS.get(name, name)


def source_words(url: str) -> str:
    """A source's address, short enough for a list.

    >>> source_words("https://github.com/pytorch/ao/blob/main/docs/source/workflows/inference.md")
    'github.com/pytorch/ao/docs/source/workflows/inference.md'
    """
    return re.sub(r"/blob/[^/]+/", "/", url.removeprefix("https://").removeprefix("www."))


def _batch(judged: JudgedRun) -> tuple[str, ...]:
    return tuple(name for name, (low, high) in _BATCHES.items() if low <= judged.batch <= high)


#: What the table can be split by, and the classes that a run belongs to; groups overlap.
FACETS: Final[Mapping[str, Callable[[JudgedRun], tuple[str, ...]]]] = {
    "group": lambda judged: judged.groups,
    "metric": lambda judged: (metric_words(judged.run.metric),),
    "family": lambda judged: (judged.run.model.model_type,),
    "batch": _batch,
    "format": lambda judged: (_FORMATS[judged.format],),
    "chip": lambda judged: (_CHIPS.get(judged.run.chip.kind, judged.run.chip.kind),),
    "engine": lambda judged: (judged.run.engine.name,),
    "source": lambda judged: (source_words(judged.run.source),),
}
#: Where weak regimes are looked for: what a visitor can tell of a deployment; and how many rows make one.
WEAK_IN: Final = ("group", "metric", "batch", "format")
FEWEST_ROWS: Final = 5
#: The order of classes that have one; the others come by how many rows they have.
_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {"group": GROUPS, "batch": tuple(_BATCHES)}


def classes(judged: Sequence[JudgedRun], facet: str) -> dict[str, list[JudgedRun]]:
    """The runs by class of a facet, every class with one run or more."""
    found: dict[str, list[JudgedRun]] = {name: [] for name in _ORDERS.get(facet, ())}
    for each in judged:
        for name in FACETS[facet](each):
            found.setdefault(name, []).append(each)
    kept = {name: runs for name, runs in found.items() if runs}
    if facet in _ORDERS:
        return kept
    return dict(sorted(kept.items(), key=lambda item: (-len(item[1]), item[0])))


def errors(name: str, judged: Sequence[JudgedRun]) -> Errors:
    """The errors of some runs, one or more."""
    percent = np.array([each.percent_error for each in judged])
    return Errors(
        name=name,
        rows=len(judged),
        sources=len({each.run.source for each in judged}),
        median=float(np.median(percent)),
        mean=float(percent.mean()),
        p90=float(np.quantile(percent, 0.9)),
        in_range=float(np.mean([each.in_range for each in judged])),
    )


def error_table(judged: Sequence[JudgedRun], facet: str) -> tuple[Errors, ...]:
    """The errors by class of a facet."""
    return tuple(errors(name, runs) for name, runs in classes(judged, facet).items())


def weakest(judged: Sequence[JudgedRun], most: int) -> tuple[Errors, ...]:
    """The classes with the largest median error, the worst first; of ``WEAK_IN``, with rows enough."""
    return tuple(sorted(_classes_with_rows(judged), key=lambda each: -each.median)[:most])


def longest_tails(judged: Sequence[JudgedRun], most: int) -> tuple[Errors, ...]:
    """The same by the error that one row in ten exceeds: mostly good, and now and then far off."""
    return tuple(sorted(_classes_with_rows(judged), key=lambda each: -each.p90)[:most])


def _classes_with_rows(judged: Sequence[JudgedRun]) -> list[Errors]:
    found = [each for facet in WEAK_IN for each in error_table(judged, facet)]
    return [each for each in found if each.rows >= FEWEST_ROWS]


def never_published() -> tuple[str, ...]:
    """What no published row, or hardly one, can say anything about; such ranges are widened."""
    beyond = Conditions(
        kind="other",
        announced=True,
        batch=np.inf,
        context=np.inf,
        chips=10**6,
        pipeline=2,
        format_class="fp4",
        experts=True,
        state=True,
    )
    return outside(beyond, "decode_batch")
