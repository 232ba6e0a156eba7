"""Published measurements: one run a row, its conditions read once, or the reason why it cannot be used."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from core.analytic.validation.names import Engine, chip_id, engine, model
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import accelerator
from core.catalog.assets import read_csv
from core.catalog.model import ModelSpec
from core.errors import ConfigError

Metric = Literal[
    "decode_tok_s_per_user",
    "output_tok_s_total",
    "output_tok_s_per_gpu",
    "requests_per_s",
    "tpot_ms",
    "prefill_tok_s",
    "ttft_ms",
    "mbu",
]
METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
#: Metrics of the first pass; the others are of the tokens after it, or of whole answers.
PREFILL_METRICS: Final = ("prefill_tok_s", "ttft_ms")
#: Columns that a file of measurements must have.
COLUMNS: Final = (
    *("id", "model", "hardware", "num_devices", "weight_bits", "batch", "input_len", "output_len"),
    *("framework", "metric", "value"),
)
#: Columns that it may have.
OTHER_COLUMNS: Final = ("hf_id", "kv_bits", "tp", "pp", "source_url", "source_date", "notes", "kept_out")
#: The largest believable number of some of them.
_MOST: Final = {
    **{"num_devices": 1024, "tp": 64, "weight_bits": 64, "kv_bits": 64, "batch": 65_536},
    **{"input_len": 2e6, "output_len": 2e6, "value": 1e12},
}
#: Dates that are not stated count as this year.
_USUAL_YEAR: Final = 2024.5


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One published number with its conditions.

    Attributes:
        id: of the row. model, chip, engine: what ran where.
        devices: chips that share the model, by tensor parallelism.
        weight_bits: effective bits of a weight, scales included. kv_bits: of a cached element.
        batch: sequences at once; None means as many as fit. input_tokens, output_tokens: of each.
        serving: requests arrive at a server one after another; the batch is their concurrency.
        metric, value: what was measured. source: its address. year: when, as a decimal.
        note: what the row says about itself.
    """

    id: str
    model: ModelSpec
    chip: Accelerator
    engine: Engine
    devices: int
    weight_bits: float
    kv_bits: float
    batch: float | None
    input_tokens: float
    output_tokens: float
    serving: bool
    metric: Metric
    value: float
    source: str
    year: float
    note: str
    engine_text: str

    @property
    def prefill(self) -> bool:
        """Whether the number is about the first pass."""
        return self.metric in PREFILL_METRICS


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that is not used, and why."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Published:
    """The rows that can be predicted, and the others."""

    runs: tuple[PublishedRun, ...]
    skipped: tuple[Skipped, ...]


def published_runs(path: Path | None = None) -> Published:
    """Read ``assets/benchmarks.csv``, or another file with its columns.

    Raises:
        ConfigError: the file cannot be read, or columns are missing.
    """
    return parse(read_csv("benchmarks") if path is None else _read(path))


def _read(path: Path) -> list[dict[str, str]]:
    if path.exists() and not path.is_file():  # reading a pipe would wait for ever
        raise ConfigError(
            f"The rows must be a regular file; {path.name[:80]!r} is a folder, a pipe or a device. Save them "
            "to a CSV file and give its path."
        )
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise ConfigError(
            f"The rows must be a CSV file in UTF-8; {path.name[:80]!r} cannot be read ({problem})."
        ) from problem
    missing = [name for name in COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise ConfigError(
            f"The file must have the columns {', '.join(COLUMNS)} and at least one row; "
            f"missing: {', '.join(missing)}. See assets/benchmarks.csv."
        )
    return rows


def parse(rows: Iterable[Mapping[str, str]]) -> Published:
    """Read rows; each is a run, or a reason."""
    runs: list[PublishedRun] = []
    skipped: list[Skipped] = []
    for cells in rows:
        row = {name: cells.get(name) or "" for name in (*COLUMNS, *OTHER_COLUMNS)}
        found = _run(row)
        if isinstance(found, PublishedRun):
            runs.append(found)
        else:
            skipped.append(Skipped(row["id"] or "?", found))
    return Published(tuple(runs), tuple(skipped))


def _run(row: Mapping[str, str]) -> PublishedRun | str:
    """The run of a row, or why there is none."""
    shape = model(row["model"], row["hf_id"])
    chip, frame = chip_id(row["hardware"]), engine(row["framework"])
    reason = _unusable(row)
    if reason:
        return reason
    if shape is None:
        return f"the shape of {row['model'][:60]} is not in the catalogue"
    if chip is None:
        return f"no data sheet of {row['hardware'][:60]}"
    if frame is None:
        return f"the framework {row['framework'][:60]} is not one of those known"
    return _built(row, shape, accelerator(chip), frame)


def _unusable(row: Mapping[str, str]) -> str:
    """Why a row's conditions do not tell what was measured; empty where they do."""
    if row["kept_out"]:
        return row["kept_out"]
    checks = {
        "its own notes keep it out": "exclude from fits" in row["notes"],
        "speculative decoding: its acceptance is not stated": "speculative" in row["framework"].lower(),
        f"the metric {row['metric'][:40]} is not predicted": row["metric"] not in METRICS,
        "pipeline parallelism: no published row of it is known": (_number(row["pp"]) or 1) > 1,
        "the value is not a number above zero": not _positive(row["value"]),
        "the width of the weights is not stated": not _positive(row["weight_bits"]),
    }
    found = next((reason for reason, holds in checks.items() if holds), "")
    return found or _batch(row["batch"].strip(), row) or _lengths(row) or _beyond(row)


def _beyond(row: Mapping[str, str]) -> str:
    """Which number no deployment has; empty where all are within reason."""
    beyond = [name for name, most in _MOST.items() if (_number(row[name]) or 0) > most]
    return f"no deployment has such numbers: {', '.join(beyond)}" if beyond else ""


def _batch(text: str, row: Mapping[str, str]) -> str:
    """Why the batch is not known; empty where it is."""
    if text.startswith("<"):
        return f"only a bound of the batch is stated ({text[:20]})"
    if text == "max":
        stated = _number(row["input_len"]) and _number(row["output_len"])
        return "" if stated else "the batch and the lengths are not stated"
    return "" if _positive(text) else f"the batch is not a number ({text[:20] or 'empty'})"


def _lengths(row: Mapping[str, str]) -> str:
    """Why the lengths do not suffice; empty where they do."""
    first = row["metric"] in PREFILL_METRICS
    if first and not _number(row["input_len"]):
        return "the length of the prompt is not stated"
    if not first and not _number(row["output_len"]):
        return "the length of the answer is not stated"
    return ""


def _number(text: str) -> float | None:
    """A number of zero or more; None where it is empty, a range, or no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _positive(text: str) -> bool:
    return bool(_number(text))


def _built(row: Mapping[str, str], shape: ModelSpec, chip: Accelerator, frame: Engine) -> PublishedRun:
    bits = float(row["weight_bits"])
    kv_bits = _number(row["kv_bits"]) or (8.0 if bits == 8 and frame.style == "cpp" else 16.0)
    return PublishedRun(
        id=row["id"],
        model=shape,
        chip=chip,
        engine=frame,
        devices=int(_number(row["tp"]) or _number(row["num_devices"]) or 1),
        weight_bits=bits,
        kv_bits=kv_bits,
        batch=None if row["batch"].strip() == "max" else float(row["batch"]),
        input_tokens=_number(row["input_len"]) or 0.0,
        output_tokens=_number(row["output_len"]) or 0.0,
        serving=frame.name == "nim",
        metric=next(metric for metric in METRICS if metric == row["metric"]),
        value=float(row["value"]),
        source=row["source_url"] or "unknown",
        year=_year(row["source_date"]),
        note=row["notes"],
        engine_text=row["framework"],
    )


def _year(date: str) -> float:
    """A date as a decimal year: 2024-07 is 2024.5; the middle of a year where no month is stated."""
    year, month = _number(date[:4]), _number(date[5:7])
    if not year:
        return _USUAL_YEAR
    return year + (((month or 7) - 1) / 12)
