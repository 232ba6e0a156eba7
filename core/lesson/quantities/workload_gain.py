"""What a later chip does for a workload: the same answers predicted on two chips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.analytic.answer import speed
from core.analytic.memory import footprint
from core.lesson.amount import LessonCase
from core.lesson.quantities.chip_pair import chip

#: Name -> users served at once, prompt tokens and answer tokens of each.
WORKLOADS: Final[dict[str, tuple[int, int, int]]] = {
    "one user chats": (1, 1024, 256),
    "64 users chat": (64, 1024, 256),
    "long prompts": (1, 32_768, 16),
}
YOURS: Final = "your scenario"


@dataclass(frozen=True, slots=True)
class Gain:
    """One workload on the two chips.

    Attributes:
        name: of the workload. users, input_tokens, output_tokens: what it is.
        earlier_s, later_s: until the last token, on each chip. prefill_share: of the time on the earlier.
        fits: whether the later chip's memory holds it; None where that is not known.
    """

    name: str
    users: int
    input_tokens: int
    output_tokens: int
    earlier_s: float
    later_s: float
    prefill_share: float
    fits: bool | None

    @property
    def factor(self) -> float:
        """How many times as fast the later chip is."""
        return self.earlier_s / self.later_s


def gains(case: LessonCase) -> list[Gain]:
    """Each workload, and the visitor's own, predicted on both chips with the scenario's model and formats.

    Raises:
        FormatError: one of the chips cannot compute in the scenario's formats.
    """
    scenario = case.scenario
    own = (scenario.batch, scenario.input_tokens, scenario.output_tokens)
    return _gains(case, {**WORKLOADS, YOURS: own})


def _gains(case: LessonCase, workloads: Mapping[str, tuple[int, int, int]]) -> list[Gain]:
    """All workloads in one sweep: a large model's table costs the same for one as for all."""
    users, prompts, answers = np.array(list(workloads.values()), np.float64).T
    weights, kv = case.scenario.weights, case.scenario.kv
    earlier, later = (
        speed(
            case.model,
            chip(case, setting),
            batch=users,
            input_tokens=prompts,
            output_tokens=answers,
            weights=weights,
            kv=kv,
        )
        for setting in ("earlier", "later")
    )
    need = footprint(
        case.model, chip(case, "later"), batch=users, context=prompts + answers, weights=weights, kv=kv
    )
    share = earlier.ttft_s / earlier.end_to_end_s
    return [
        Gain(
            name=name,
            users=sizes[0],
            input_tokens=sizes[1],
            output_tokens=sizes[2],
            earlier_s=float(earlier.end_to_end_s[index]),
            later_s=float(later.end_to_end_s[index]),
            prefill_share=float(share[index]),
            fits=None if need.fits is None else bool(need.fits[index]),
        )
        for index, (name, sizes) in enumerate(workloads.items())
    ]


def named_gain(case: LessonCase, name: str) -> float:
    """How many times as fast the later chip is at one of the workloads."""
    return _gains(case, {name: WORKLOADS[name]})[0].factor
