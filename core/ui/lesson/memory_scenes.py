"""The pictures of "Will it fit?", drawn from a lesson's scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from core.lesson.amount import held_tokens
from core.lesson.quantities.will_it_fit import (
    budget_bytes,
    capacity_bytes,
    conversations_that_fit,
    need,
    reserve_bytes,
)
from core.ui.figures.chip_memory import ChipMemory, chip_memory
from core.ui.figures.conversations_by_context import conversations_by_context
from core.ui.lesson.one_token_scenes import marks
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene

#: Lengths of the line: powers of two.
_CONTEXTS: Final = tuple(2**power for power in range(9, 18))


def _chip_memory(scene: Scene) -> Picture:
    """The bar; before the prediction it holds one conversation, whatever the control says."""
    case = scene.case
    context, sequences = held_tokens(case), case.scenario.batch if scene.answered else 1
    taken = need(case, sequences, context)
    memory = ChipMemory(
        capacity_bytes=capacity_bytes(case),
        budget_bytes=budget_bytes(case),
        weights_bytes=float(taken.weights_bytes),
        kv_bytes=float(taken.kv_bytes),
        reserve_bytes=float(reserve_bytes(case, context)),
        conversations=sequences,
    )
    return chip_memory(memory, case.machine.name)


def _conversations_by_context(scene: Scene) -> Picture:
    context = held_tokens(scene.case)
    many = conversations_that_fit(scene.case, np.array([*_CONTEXTS, context], np.float64))
    counts = [int(value) for value in many]
    asked = marks(scene)
    shown = asked if counts[-1] else replace(asked, now=asked.true)  # nothing has no place on a log scale
    return conversations_by_context(_CONTEXTS, counts[:-1], context, counts[-1], shown)


PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "chip_memory": _chip_memory,
    "conversations_by_context": _conversations_by_context,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "chip_memory": (chip_memory,),
    "conversations_by_context": (conversations_by_context,),
}
