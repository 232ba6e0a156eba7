"""Among what the page searches: every chip on sale or brought, and splits that suit the model's size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from core.analytic.cost import HourlyPrice
from core.analytic.parallel import ParallelPlan
from core.analytic.params import count, layer_kinds
from core.analytic.search.request import USUAL_PLANS, Choices
from core.catalog.accelerator import Accelerator
from core.catalog.feed_forward import MoE
from core.catalog.formats import STORAGE_FORMATS, Use
from core.catalog.model import ModelSpec
from core.errors import ScenarioError

WEIGHTS: Final = ("bf16", "fp8", "int8", "w4a16-g128")
CACHES: Final = ("bf16", "fp8_e4m3")
#: What chips compute that have no bf16.
_OLDER: Final = "fp16"
BATCHES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 320, 384, 512)
#: Several servers of eight, for models that one server hardly holds.
_SERVERS: Final = (ParallelPlan(tp=8, pp=2), ParallelPlan(tp=8, pp=4))
_EXPERTS_APART: Final = ParallelPlan(tp=8, ep=8)
#: The time of a search grows with the different layers of a model. Above the first number only the scenario's
#: formats are looked at, above the second only plans without stages, above the third nothing.
_FEW_KINDS, _MANY_KINDS, _MOST_KINDS = 8, 64, 192
_LARGE_PARAMETERS: Final = 300e9
#: What the smallest storage format takes for a weight, about; a plan that even so is too small needs no look.
_LEAST_BYTES_A_WEIGHT: Final = 0.19


def groups(
    model: ModelSpec,
    chips: Iterable[Accelerator],
    formats: tuple[str, str],
    prices: Mapping[str, HourlyPrice] | None = None,
) -> tuple[Choices, ...]:
    """The candidates, in one group of chips that have bf16 and one of those that have fp16 instead.

    Args:
        model: what is served.
        chips: the catalogue and what the visitor brought; announced ones are left out.
        formats: of weights and cache, which take part beside the usual ones.
        prices: by chip id, where they replace the list's.

    Raises:
        ScenarioError: the model has too many different layers.
    """
    on_sale = [chip for chip in chips if not chip.announced]
    newer = tuple(chip for chip in on_sale if "bf16" in chip.peak_flops_per_s)
    older = tuple(chip for chip in on_sale if "bf16" not in chip.peak_flops_per_s)
    plans = plans_for(model, on_sale)
    if is_narrow(model):
        chips = (*newer, *older)
        return (Choices(chips, plans, formats[:1], formats[1:], BATCHES, prices or {}),) if chips else ()
    found = []
    if newer:
        weights, caches = _with(WEIGHTS, formats[0], "weights"), _with(CACHES, formats[1], "kv")
        found.append(Choices(newer, plans, weights, caches, BATCHES, prices or {}))
    if older:
        found.append(Choices(older, plans, (_OLDER,), (_OLDER,), BATCHES, prices or {}))
    return tuple(found)


def is_narrow(model: ModelSpec) -> bool:
    """Whether only the scenario's formats are looked at, for the model has many different layers."""
    return len(layer_kinds(model)) > _FEW_KINDS


def plans_for(model: ModelSpec, chips: Iterable[Accelerator]) -> tuple[ParallelPlan, ...]:
    """Splits up to a server of eight, or several servers where the model is large.

    A plan is left out where the weights in the smallest format are already more than the largest chips hold;
    the last one always stays, so that it can be said that nothing fits.

    Raises:
        ScenarioError: the model has too many different layers.

    >>> from core.catalog.accelerators import accelerators
    >>> from core.catalog.models import model
    >>> [plan.chips for plan in plans_for(model("llama-3.1-8b"), accelerators().values())]
    [1, 2, 4, 8, 2, 4, 8]
    >>> [plan.chips for plan in plans_for(model("kimi-k3"), accelerators().values())]
    [2, 4, 8, 2, 4, 8, 8, 16, 32]
    """
    weights = count(model).total
    kinds = len(layer_kinds(model))
    if kinds > _MOST_KINDS:
        raise ScenarioError(
            f"A search takes models of up to {_MOST_KINDS} different kinds of layers; {model.name} has "
            f"{kinds:,}. Open it in the planner, which looks at one deployment."
        )
    if kinds > _MANY_KINDS:
        return tuple(plan for plan in USUAL_PLANS if plan.pp == 1)
    plans = USUAL_PLANS
    if any(isinstance(layer.feed_forward, MoE) for layer in model.layers):
        plans = (*plans, _EXPERTS_APART)
    if weights > _LARGE_PARAMETERS:
        plans = (*plans, *_SERVERS)
    largest = max((chip.capacity_bytes or 0.0 for chip in chips), default=0.0)
    enough = [plan for plan in plans if weights * _LEAST_BYTES_A_WEIGHT <= plan.chips * largest]
    return tuple(enough) or plans[-1:]


def _with(usual: tuple[str, ...], mine: str, use: Use) -> tuple[str, ...]:
    """The usual formats and one more, where it is another one."""
    known = STORAGE_FORMATS.get(mine)
    if mine in usual or known is None or use not in known.uses:
        return usual
    return (*usual, mine)
