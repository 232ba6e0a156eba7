"""The numbers of "Will it fit?": what a chip's memory holds beside the weights, in both kinds of gigabyte."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.memory import CHUNK_TOKENS, Footprint, footprint
from core.analytic.params import count, stored_bytes
from core.catalog.accelerators import accelerators
from core.catalog.mixers import Attention
from core.errors import FormatError
from core.lesson.amount import Amount, LessonCase, held_tokens
from core.lesson.quantities.quantity import Quantity
from core.units import GB, GIB, KIB, MB, MIB, Number

# --- The memory -----------------------------------------------------------------------------------


def capacity_bytes(case: LessonCase) -> float:
    """What the chip offers to software.

    Raises:
        FormatError: nobody has published it.
    """
    known = case.machine.capacity_bytes
    if known is None:
        raise FormatError(
            f"What {case.machine.name} offers to software must be known for this, and nobody has published "
            "it. Choose another chip in the line above."
        )
    return known


def budget_bytes(case: LessonCase) -> float:
    """The share of it that the engine may use."""
    return capacity_bytes(case) * case.number("share") / 100


def need(case: LessonCase, sequences: Number, context: Number) -> Footprint:
    """Everything that so many sequences of so many tokens keep on the chip."""
    scenario = case.scenario
    return footprint(
        case.model,
        case.machine,
        batch=sequences,
        context=context,
        weights=scenario.weights,
        kv=scenario.kv,
    )


def reserve_bytes(case: LessonCase, context: Number) -> NDArray[np.float64]:
    """What a full pass needs beside weights and cache: its activations, the driver and the framework.

    A full pass has ``CHUNK_TOKENS`` tokens, from one long prompt or from several short ones.
    """
    prompts = np.ceil(CHUNK_TOKENS / np.asarray(context, np.float64))
    full = need(case, prompts, context)
    return np.asarray(full.activation_bytes + full.overhead_bytes)


def conversations_that_fit(case: LessonCase, context: Number) -> NDArray[np.float64]:
    """How many sequences of so many tokens fit: ``floor((budget - weights - reserve) / cache of one)``."""
    one = need(case, 1, context)
    room = budget_bytes(case) - one.weights_bytes - reserve_bytes(case, context)
    return np.asarray(np.maximum(np.floor(room / one.kv_bytes), 0.0))


# --- Amounts --------------------------------------------------------------------------------------


def usable(case: LessonCase) -> Amount:
    """What the chip offers to software, in GiB as its tools print it."""
    return Amount(capacity_bytes(case) / GIB, "GiB")


def usable_gb(case: LessonCase) -> Amount:
    """The same in GB."""
    return Amount(capacity_bytes(case) / GB, "GB")


def usable_mib(case: LessonCase) -> Amount:
    """The same in MiB."""
    return Amount(float(round(capacity_bytes(case) / MIB)), "MiB")


def box(case: LessonCase) -> Amount:
    """The number on the box; makers call it GB whatever it counts."""
    sheet = accelerators().get(case.machine.id)
    if sheet is None or "memory" not in sheet.facts:
        return usable_gb(case)
    return Amount(sheet.facts["memory"].value, "GB")


def budget(case: LessonCase) -> Amount:
    """What the engine may use."""
    return Amount(budget_bytes(case) / GB, "GB")


def budget_gib(case: LessonCase) -> Amount:
    """The same in GiB."""
    return Amount(budget_bytes(case) / GIB, "GiB")


def parameters(case: LessonCase) -> Amount:
    """Parameters that are stored."""
    return Amount(float(count(case.model).total))


def weight_bytes(case: LessonCase) -> Amount:
    """Bytes of one weight in the chosen format, the mean over all tensors with their scales."""
    stored = float(stored_bytes(case.model, case.scenario.weights))
    return Amount(stored / count(case.model).total, "B")


def weights(case: LessonCase) -> Amount:
    """All weights."""
    return Amount(float(stored_bytes(case.model, case.scenario.weights)) / GB, "GB")


def half_the_weights(case: LessonCase) -> Amount:
    """Half of that."""
    return Amount(weights(case).value / 2, "GB")


def weights_gib(case: LessonCase) -> Amount:
    """The same in GiB."""
    return weights(case).in_unit("GiB")


def reserve(case: LessonCase) -> Amount:
    """Activations of a full pass, driver and framework."""
    return Amount(float(reserve_bytes(case, held_tokens(case))) / GB, "GB")


def one_cache(case: LessonCase) -> Amount:
    """The cache of one conversation at its longest."""
    return Amount(float(need(case, 1, held_tokens(case)).kv_bytes) / GB, "GB")


def token_cache_kib(case: LessonCase) -> Amount:
    """What one of its tokens keeps, as a mean."""
    return Amount(one_cache(case).value * GB / held_tokens(case) / KIB, "KiB")


def all_caches(case: LessonCase) -> Amount:
    """The caches of as many conversations as fit."""
    return Amount(conversations(case).value * one_cache(case).value, "GB")


def conversations(case: LessonCase) -> Amount:
    """Whole conversations that fit beside the weights."""
    return Amount(float(conversations_that_fit(case, held_tokens(case))))


def conversations_of_half_the_weights(case: LessonCase) -> Amount:
    """The same if the weights took half the room."""
    freed = weights(case).value / 2
    return Amount(float(_whole(case, _room_gb(case) + freed)))


def conversations_by_parameters(case: LessonCase) -> Amount:
    """What comes out where nothing but weights and cache is counted, on all of the memory."""
    return Amount(float(_whole(case, usable_gb(case).value - weights(case).value)))


def conversations_without_reserve(case: LessonCase) -> Amount:
    """What comes out where activations, driver and framework are forgotten."""
    return Amount(float(_whole(case, budget(case).value - weights(case).value)))


def conversations_of_mib_as_mb(case: LessonCase) -> Amount:
    """What comes out where the tool's MiB are read as MB, and the rest is right."""
    taken = usable_mib(case).value * MB / GB * case.number("share") / 100
    return Amount(float(_whole(case, taken - weights(case).value - reserve(case).value)))


def conversations_by_hidden_size(case: LessonCase) -> Amount:
    """What comes out where the hidden size is taken for the width of the keys."""
    mixer = case.model.layers[0].mixer
    factor = case.model.hidden_size / mixer.kv_features if isinstance(mixer, Attention) else 1.0
    return Amount(float(np.floor(_room_gb(case) / (one_cache(case).value * factor))))


def _room_gb(case: LessonCase) -> float:
    return budget(case).value - weights(case).value - reserve(case).value


def _whole(case: LessonCase, room_gb: float) -> float:
    return float(np.floor(max(room_gb, 0.0) / one_cache(case).value))


def share(case: LessonCase) -> Amount:
    """The share of the memory that the engine may use."""
    return Amount(case.number("share"), "%")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        usable, usable_gb, usable_mib, box, budget, budget_gib, parameters, weight_bytes, weights,
        half_the_weights, weights_gib, reserve, one_cache, token_cache_kib, all_caches, conversations,
        conversations_of_half_the_weights, conversations_by_parameters, conversations_without_reserve,
        conversations_of_mib_as_mb, conversations_by_hidden_size, share,
    )
}  # fmt: skip
