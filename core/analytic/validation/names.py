"""What a published table calls a chip, an engine or a model, and what the catalogue calls it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from core.catalog.assets import read_csv, read_toml
from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue


@dataclass(frozen=True, slots=True)
class Engine:
    """A framework: how it runs a model, and its name.

    Attributes:
        style: "compiled" (one compiled step), "cpp" (a C++ server), "python" (a Python server), "local"
            (a runtime for one user) or "eager" (launched operator by operator).
        name: "vllm", "llama.cpp", ...
    """

    style: str
    name: str


@cache
def _patterns(what: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = read_csv("benchmark_names")
    return tuple((re.compile(row["pattern"]), row["id"]) for row in rows if row["what"] == what)


def _first(what: str, text: str) -> str | None:
    lower = text.lower()
    return next((key for pattern, key in _patterns(what) if pattern.search(lower)), None)


def chip_id(text: str) -> str | None:
    """The catalogue's id of a chip as a table names it; None where it is not known.

    A name that leaves the form factor open is taken as the server board (SXM), which most tables use.

    >>> chip_id("A100 PCIe 80GB (memory size inferred)"), chip_id("H100 (form factor not stated)")
    ('a100-pcie-80gb', 'h100-sxm-80gb')
    """
    return _first("chip", re.sub(r"\(inferred:.*", "", text))


def engine(text: str) -> Engine | None:
    """The framework; None where it is not known.

    >>> engine("TensorRT-LLM v0.6.1"), engine("NVIDIA NIM 1.8.0").style
    (Engine(style='cpp', name='tensorrt-llm'), 'cpp')
    """
    found = _first("engine", text)
    return None if found is None else Engine(*found.split(":"))


def model(name: str, hub_id: str = "") -> ModelSpec | None:
    """The shape that a table's model has; None where it is not known.

    >>> model("Llama-3-8B").id, model("no such model")
    ('llama-3.1-8b', None)
    """
    known = _models()
    for text in (name, hub_id.rpartition("/")[2]):
        key = _first("model", text) or _plain(text)
        if key in known:
            return known[key]
    return None


def _plain(text: str) -> str:
    """A name in lower case without what says how the model was tuned."""
    return re.sub(r"[-_](hf|chat|instruct|base|it|fp8|bf16|awq|gptq)\b.*$", "", text.lower())


@cache
def _models() -> Mapping[str, ModelSpec]:
    """The catalogue, and the shapes that only published measurements name."""
    others = {
        key: read_config(table, id=key, name=table["name"], source=table["source"])
        for key, table in read_toml("benchmark_models").items()
    }
    return MappingProxyType({**others, **catalogue()})
