"""Answer requests together, and time them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.engine.engine import Engine
from core.engine.records import Request
from core.engine.scheduler import Serving
from core.lab.sweep_request import Cell

#: Whether the job should stop; asked between two steps.
ShouldStop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Times:
    """One run of a cell: seconds by metric, and of its decode steps."""

    ttft_s: float
    tpot_s: float
    end_to_end_s: float
    decode_s: tuple[float, ...]


def run_once(
    cell: Cell,
    engine: Engine,
    prompts: Sequence[list[int]],
    new_tokens: int | None = None,
    should_stop: ShouldStop | None = None,
) -> Times:
    """Answer all prompts together, to the last token that is asked for; less where it should stop."""
    new = min(new_tokens or cell.new_tokens, cell.new_tokens)
    requests = [Request(ids, new, end_tokens=frozenset()) for ids in prompts]
    serving = Serving(max_sequences=cell.batch, share=False)
    service = engine.serve(requests, serving, should_stop=should_stop)
    first_s = [found.ttft_s or 0.0 for found in service.generations]
    later_s = [found.tpot_s or 0.0 for found in service.generations]
    last_s = (first + (new - 1) * later for first, later in zip(first_s, later_s, strict=True))
    return Times(
        ttft_s=max(first_s),
        tpot_s=sum(later_s) / len(later_s),
        end_to_end_s=max(last_s),
        decode_s=tuple(step.host_s for step in service.steps if step.kind == "decode"),
    )
