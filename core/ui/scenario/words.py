"""The scenario in words: its line, and the labels of its fields and choices."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from core.analytic.params import count
from core.analytic.planner_room import Case
from core.catalog.accelerator import Accelerator
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.units import format_gib, format_si

LABELS: Final[dict[str, str]] = {
    "model": "Model",
    "accelerator": "Accelerator",
    "count": "Accelerators",
    "weights": "Weight format",
    "kv": "KV format",
    "batch": "Batch",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "tp": "Tensor parallel",
    "pp": "Pipeline stages",
    "ep": "Expert parallel",
}

HELP: Final[dict[str, str]] = {
    "model": "Its shape: layers, heads, widths. Bring your own below.",
    "accelerator": "What it runs on, by form factor and memory.",
    "count": "Chips without a split are independent copies of the model.",
    "weights": "How each weight is stored. Fewer bits mean fewer bytes to read for every token.",
    "kv": "How keys and values are stored.",
    "batch": "Requests that are served at once.",
    "input_tokens": "Tokens of each prompt. A token is a piece of a word.",
    "output_tokens": "Tokens of each answer.",
    "tp": "Chips that share every matrix of a layer.",
    "pp": "Stages in a row, each with some of the layers.",
    "ep": "Chips over which the experts of a layer are spread.",
}


def line(case: Case) -> str:
    """The scenario on one line, as plain text.

    >>> from core.analytic.datasheet import machine_from
    >>> from core.catalog.accelerators import accelerator
    >>> from core.catalog.models import model
    >>> line(Case(Scenario(), model("llama-3.1-8b"), machine_from(accelerator("t4"))))
    'Llama 3.1 8B · 1 × NVIDIA T4 · bf16 weights, bf16 KV · batch 1 · 2,048 in, 256 out'
    """
    now = case.scenario
    return " · ".join(
        (
            case.model.name,
            f"{now.count:,} × {case.machine.name}{_split(now)}",
            f"{now.weights} weights, {now.kv} KV",
            f"batch {now.batch:,}",
            f"{now.input_tokens:,} in, {now.output_tokens:,} out",
        )
    )


def _split(now: Scenario) -> str:
    degrees = {"tp": now.tp, "pp": now.pp, "ep": now.ep}
    said = ", ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1)
    return f", {said}" if said else ""


@lru_cache(maxsize=128)
def model_label(model: ModelSpec) -> str:
    """A model in a list: its name and its size."""
    return f"{model.name} ({format_si(count(model).total)} parameters)"


def chip_label(chip: Accelerator) -> str:
    """A chip in a list: its name and what software can use of its memory."""
    if chip.capacity_bytes is None:
        return f"{chip.name} (usable memory unknown)"
    return f"{chip.name} ({format_gib(chip.capacity_bytes)} usable)"


def format_label(id: str) -> str:
    """A number format in a list."""
    return STORAGE_FORMATS[id].name if id in STORAGE_FORMATS else id


def changes(before: Scenario, after: Scenario) -> tuple[str, ...]:
    """The fields in which two scenarios differ."""
    return tuple(name for name in LABELS if getattr(before, name) != getattr(after, name))
