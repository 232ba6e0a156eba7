"""The scenario in words: its line, and the labels of its fields and choices."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from core.analytic.params import count
from core.analytic.planner_room import Case
from core.catalog.accelerator import Accelerator
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.model import ModelSpec
from core.catalog.scenario import LIMITS, Scenario
from core.units import format_count, format_gib, format_si

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


def chips_sentence(wanted: int, now: Scenario) -> str:
    """Why a change of the split changed the number of chips.

    Args:
        wanted: chips that were set last.
        now: the scenario with its new split.

    >>> chips_sentence(2, Scenario(tp=4, count=4))
    '2 chips are no whole number of replicas of 4 (tp 4), so there are 4 chips now: one replica.'
    >>> chips_sentence(2, Scenario(tp=2, count=2))
    'There are 2 chips again, as set before: the split divides them.'
    """
    share, most = now.tp * now.pp, LIMITS["count"][1]
    if now.count == wanted:
        return f"There {_are_chips(wanted)} again, as set before: the split divides them."
    if share > most:
        return f"One replica would take {share:,} chips, and a scenario holds {most:,} at most."
    verb = "chip is" if wanted == 1 else "chips are"
    return (
        f"{wanted:,} {verb} no whole number of replicas of {share:,}{_degrees(now)}, so there "
        f"{_are_chips(now.count)} now: one replica."
    )


def split_sentence(now: Scenario) -> str:
    """How a scenario splits its model.

    >>> split_sentence(Scenario(tp=4, pp=2, count=8)), split_sentence(Scenario(ep=8))
    ('The model is split over 8 chips: tp 4, pp 2.', 'The experts of the model are split over 8 chips: ep 8.')
    """
    share = now.tp * now.pp
    what = "The model is" if share > 1 else "The experts of the model are"
    over = share if share > 1 else now.ep
    return f"{what} split over {over:,} chips: {_split(now).removeprefix(', ')}."


def _are_chips(count: int) -> str:
    return f"{'is' if count == 1 else 'are'} {format_count(count, 'chip')}"


def _degrees(now: Scenario) -> str:
    degrees = {"tp": now.tp, "pp": now.pp}
    said = " × ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1)
    return f" ({said})" if said else ""


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
    """A number format in a list: its id, as links and the command line have it, and what that means.

    >>> format_label("fp8"), format_label("bf16"), format_label("q4_1")
    ('fp8 · W8A8, one scale a tensor', 'bf16', 'q4_1 · GGUF Q4_1')
    """
    if id not in STORAGE_FORMATS:
        return id
    name = STORAGE_FORMATS[id].name
    if name.casefold().startswith(id):  # the id is not said twice
        name = name[len(id) :].strip(" ,()")
    return f"{id} · {name}" if name else id


def changes(before: Scenario, after: Scenario) -> tuple[str, ...]:
    """The fields in which two scenarios differ."""
    return tuple(name for name in LABELS if getattr(before, name) != getattr(after, name))
