"""The numbers of "PagedAttention": reserved and empty slots, by the simulator of the engine."""

from __future__ import annotations

from typing import Final

from core.lab.serve_request import ServeRequest
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.quantity import Quantity
from core.lesson.quantities.served_trace import CACHE_TOKENS, paging_request, simulated
from core.simulate.batching import SimulatedStep
from core.simulate.waste import Slots, all_slots

PAGED, CONTIGUOUS = 0, 1  # places in ``ServeRequest.ways``
#: The numbers of the question and of the example, where a case has none of its own.
_QUESTION: Final = {"reserved": 2048, "in_use": 600, "token": 37}
_TABLE: Final = "7, 2, 9"


def steps_of(request: ServeRequest, way: int) -> tuple[SimulatedStep, ...]:
    """The steps of the page's trace, in blocks or in one piece."""
    return simulated(request, request.ways[way])


def slots_of(case: LessonCase, way: int) -> Slots:
    """The slots that are held, summed over all steps."""
    request = paging_request(case)
    page_tokens = request.batching(request.ways[way]).page_tokens
    return all_slots(steps_of(request, way), request.arrivals(), page_tokens)


def mean_sequences(case: LessonCase, way: int) -> float:
    """Requests that hold memory, the mean over all steps."""
    steps = steps_of(paging_request(case), way)
    return sum(len(step.tables) for step in steps) / len(steps)


# --- Reserving ahead --------------------------------------------------------------------------------


def reserved_slots(case: LessonCase) -> Amount:
    """Slots that are reserved for each request, whatever it will need."""
    return Amount(_setting(case, "reserved"), "tokens")


def used_slots(case: LessonCase) -> Amount:
    """Slots that it uses, on average."""
    return Amount(_setting(case, "in_use"), "tokens")


def reserved_waste(case: LessonCase) -> Amount:
    """The share of the reserved slots that nothing lies in: 1 - used / reserved."""
    return Amount(100 * (1 - _setting(case, "in_use") / _setting(case, "reserved")), "%")


def used_share(case: LessonCase) -> Amount:
    """The share of the reserved slots that is used."""
    return Amount(100 * _setting(case, "in_use") / _setting(case, "reserved"), "%")


def overcommitted(case: LessonCase) -> Amount:
    """How many times as many requests fit where only what is used is held."""
    return Amount(_setting(case, "reserved") / _setting(case, "in_use"), "×")


# --- Blocks -----------------------------------------------------------------------------------------


def block_tokens(case: LessonCase) -> Amount:
    """Tokens of a block."""
    return Amount(int(case.word("block")), "tokens")


def tail_waste(case: LessonCase) -> Amount:
    """Empty slots behind the last token of a request, on average: its last block ends anywhere alike."""
    return Amount((int(case.word("block")) - 1) / 2, "tokens")


def half_block(case: LessonCase) -> Amount:
    """A wrong average: half a block."""
    return Amount(int(case.word("block")) / 2, "tokens")


def all_but_one(case: LessonCase) -> Amount:
    """The worst case: a last block with one token."""
    return Amount(int(case.word("block")) - 1, "tokens")


def block_of_token(case: LessonCase) -> Amount:
    """The physical block of a token, by the block table."""
    return Amount(_table(case)[int(_setting(case, "token")) // int(case.word("block"))])


def logical_block(case: LessonCase) -> Amount:
    """The place of its block in the table, the first being 0."""
    return Amount(int(_setting(case, "token")) // int(case.word("block")))


def offset(case: LessonCase) -> Amount:
    """The token's place in its block, the first being 0."""
    return Amount(int(_setting(case, "token")) % int(case.word("block")))


def slot(case: LessonCase) -> Amount:
    """The token's slot in memory: physical block x block size + offset."""
    return Amount(block_of_token(case).value * int(case.word("block")) + offset(case).value)


def slot_without_table(case: LessonCase) -> Amount:
    """A wrong slot: the block's place in the table taken for its place in memory."""
    return Amount(_setting(case, "token"))


def slot_of_the_block(case: LessonCase) -> Amount:
    """A wrong slot: the first of the right block."""
    return Amount(block_of_token(case).value * int(case.word("block")))


def slot_of_the_next(case: LessonCase) -> Amount:
    """A wrong slot: places counted from 1 instead of 0."""
    return Amount(slot(case).value + 1)


def _table(case: LessonCase) -> tuple[int, ...]:
    return tuple(int(part) for part in str(case.settings.get("table", _TABLE)).split(","))


def _setting(case: LessonCase, name: str) -> float:
    return float(case.settings.get(name, _QUESTION[name]))


def token_number(case: LessonCase) -> Amount:
    """The token that is looked for, the first being 0."""
    return Amount(_setting(case, "token"))


# --- The trace --------------------------------------------------------------------------------------


def cache_slots(case: LessonCase) -> Amount:
    """Slots of the whole cache."""
    return Amount(CACHE_TOKENS, "tokens")


def longest(case: LessonCase) -> Amount:
    """Tokens to which the longest request of the trace grows."""
    return Amount(paging_request(case).longest, "tokens")


def paged_waste(case: LessonCase) -> Amount:
    """Held slots that are empty, in blocks, the mean over the trace."""
    return Amount(100 * slots_of(case, PAGED).waste_share, "%")


def contiguous_waste(case: LessonCase) -> Amount:
    """The same in one piece for the longest request."""
    return Amount(100 * slots_of(case, CONTIGUOUS).waste_share, "%")


def paged_at_once(case: LessonCase) -> Amount:
    """Requests at once, in blocks, the mean over the trace."""
    return Amount(mean_sequences(case, PAGED))


def contiguous_at_once(case: LessonCase) -> Amount:
    """The same in one piece."""
    return Amount(mean_sequences(case, CONTIGUOUS))


def paged_steps(case: LessonCase) -> Amount:
    """Steps that serve the trace, in blocks."""
    return Amount(steps_of(paging_request(case), PAGED)[-1].now + 1)


def contiguous_steps(case: LessonCase) -> Amount:
    """The same in one piece."""
    return Amount(steps_of(paging_request(case), CONTIGUOUS)[-1].now + 1)


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        reserved_slots, used_slots, reserved_waste, used_share, overcommitted, block_tokens, tail_waste,
        half_block, all_but_one,
        block_of_token, logical_block, offset, slot, slot_without_table, slot_of_the_block, slot_of_the_next,
        token_number, cache_slots, longest, paged_waste, contiguous_waste, paged_at_once, contiguous_at_once,
        paged_steps, contiguous_steps,
    )
}  # fmt: skip
