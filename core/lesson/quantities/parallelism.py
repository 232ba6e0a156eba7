"""The numbers of "Parallelism": what a token takes on one chip and on several, what is sent, what waits."""

from __future__ import annotations

from typing import Final

from core.analytic.collectives import Collective
from core.analytic.operators import forward_pass
from core.analytic.parallel import ParallelPlan
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.chip_plan import degree_up_to, token_s
from core.lesson.quantities.quantity import Quantity
from core.units import KB

#: What is shown while the visitor's plan is one chip.
_CHIPS: Final = 8
_STAGES: Final = 4
#: An all-reduce after attention and one after the MLP.
_REDUCES_A_LAYER: Final = 2


def _tensor(case: LessonCase) -> int:
    return degree_up_to(case, case.scenario.tp if case.scenario.tp > 1 else _CHIPS)


def _stages(case: LessonCase) -> int:
    asked = case.scenario.pp if case.scenario.pp > 1 else _STAGES
    return min(asked, case.model.num_layers)


def degree(case: LessonCase) -> Amount:
    """Chips that share every layer: the largest number up to the control's by which the model divides."""
    return Amount(_tensor(case))


def one_chip(case: LessonCase) -> Amount:
    """A token on one chip, in the middle of the answer."""
    return Amount(1e3 * token_s(case, ParallelPlan()), "ms")


def together(case: LessonCase) -> Amount:
    """The same with the layers shared."""
    return Amount(1e3 * token_s(case, ParallelPlan(tp=_tensor(case))), "ms")


def speed_up(case: LessonCase) -> Amount:
    """How many times as fast the chips are together."""
    return Amount(one_chip(case).value / together(case).value, "×")


def efficiency(case: LessonCase) -> Amount:
    """The share of the chips that is not lost."""
    return Amount(100 * speed_up(case).value / _tensor(case), "%")


def speed_up_as_share(case: LessonCase) -> Amount:
    """What comes out where the speed-up is not divided by the chips."""
    return Amount(100 * speed_up(case).value, "%")


def time_share(case: LessonCase) -> Amount:
    """What comes out where the two times are divided alone."""
    return Amount(100 * together(case).value / one_chip(case).value, "%")


# --- What is sent ---------------------------------------------------------------------------------


def layers(case: LessonCase) -> Amount:
    """Layers of the model."""
    return Amount(case.model.num_layers)


def hidden_size(case: LessonCase) -> Amount:
    """Numbers in a token's vector between layers."""
    return Amount(case.model.hidden_size)


def sequences(case: LessonCase) -> Amount:
    """Sequences that get a token in one step."""
    return Amount(case.scenario.batch)


def element_bytes(case: LessonCase) -> Amount:
    """Bytes of one number that is passed on."""
    return Amount(_vectors_bytes(case) / case.model.hidden_size / case.scenario.batch, "B")


def _vectors_bytes(case: LessonCase) -> float:
    scenario = case.scenario
    made = forward_pass(
        case.model, batch=scenario.batch, new_tokens=1, context=1, weights=scenario.weights, kv=scenario.kv
    )
    return float(made.moved(case.model.hidden_size))


def layer_traffic(case: LessonCase) -> Amount:
    """What each chip sends in a step for the sums of all layers, with a ring."""
    each = Collective("all_reduce", _tensor(case)).wire_bytes(_vectors_bytes(case))
    return Amount(_REDUCES_A_LAYER * case.model.num_layers * float(each) / KB, "kB")


def reduces(case: LessonCase) -> Amount:
    """Sums over all chips in one step, those of the layers."""
    return Amount(_REDUCES_A_LAYER * case.model.num_layers)


# --- What waits -----------------------------------------------------------------------------------


def stages(case: LessonCase) -> Amount:
    """Pipeline stages: the control's, four while that is 1."""
    return Amount(_stages(case))


def micro_batches(case: LessonCase) -> Amount:
    """Parts of the batch that follow each other: the setting "micro" where there is one."""
    asked = case.settings.get("micro")
    return Amount(min(_stages(case), case.scenario.batch) if asked is None else int(asked))


def bubble(case: LessonCase) -> Amount:
    """The share of a prefill in which a stage waits, with stages that take equally long."""
    parts, waits = micro_batches(case).value, _stages(case) - 1
    return Amount(100 * waits / (parts + waits), "%")


def bubble_of_one(case: LessonCase) -> Amount:
    """What comes out where the batch is not divided."""
    return Amount(100 * (_stages(case) - 1) / _stages(case), "%")


def bubble_by_work(case: LessonCase) -> Amount:
    """What comes out where the waiting is held against the work alone."""
    return Amount(100 * (_stages(case) - 1) / micro_batches(case).value, "%")


def busy(case: LessonCase) -> Amount:
    """What comes out where the work is taken for the waiting."""
    return Amount(100 - bubble(case).value, "%")


def pipeline_speed_up(case: LessonCase) -> Amount:
    """How many times as fast one token comes with the layers in stages."""
    return Amount(token_s(case, ParallelPlan()) / token_s(case, ParallelPlan(pp=_stages(case))), "×")


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        degree, one_chip, together, speed_up, efficiency, speed_up_as_share, time_share, layers, hidden_size,
        sequences, element_bytes, layer_traffic, reduces, stages, micro_batches, bubble, bubble_of_one,
        bubble_by_work, busy, pipeline_speed_up,
    )
}  # fmt: skip
