"""The models that the lab offers, and what a page calls them."""

from __future__ import annotations

from core.catalog.model import ModelSpec
from core.catalog.models import model, runnable_ids
from core.errors import UserError
from core.lab.request import EMBEDDED_MODEL, SHAPE_PREFIX


def spec(model_id: str) -> ModelSpec:
    """The shape behind an id of the lab, with or without real weights."""
    return model(model_id.removeprefix(SHAPE_PREFIX))


def known_ids() -> tuple[str, ...]:
    """Every id that a link may name: the embedded model and each shape that the engine can run."""
    return (EMBEDDED_MODEL, *(SHAPE_PREFIX + name for name in runnable_ids()))


def label(model_id: str) -> str:
    """The name on the page; it says where the weights are random."""
    name = spec(model_id).name
    if model_id.startswith(SHAPE_PREFIX):
        return f"{name} (random weights)"
    return name


def short(model_id: str) -> str:
    """The name alone, for tables and for records whose model this catalogue may not know."""
    try:
        return spec(model_id).name
    except UserError:
        return model_id
