"""Whether a run record tells one story: what a checksum alone cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.lab.record import RunRecord

#: Clocks read at slightly different moments may disagree by so much.
_SLACK: Final = 1.02


def contradiction(record: RunRecord) -> str:
    """The first thing in a record that cannot be, as a clause; empty where all of it can."""
    claims = (
        (_has_the_steps_asked_for(record), f"it has {len(record.steps)} steps for what it asked for"),
        (_is_in_order(record), "its steps are not numbered from 0, the prompt's first"),
        (_grows_by_one(record), "its contexts do not grow by one from the prompt's tokens"),
        (_fits_its_totals(record), "its steps take longer than the whole run"),
    )
    return next((problem for holds, problem in claims if not holds), "")


def _has_the_steps_asked_for(record: RunRecord) -> bool:
    asked = record.request.max_tokens
    return (
        len(record.prefill_steps) == len(record.prediction.prefill_step_s)
        and record.output_tokens <= asked
        and len(record.prediction.decode_step_s) == asked - 1
    )


def _is_in_order(record: RunRecord) -> bool:
    # Without a cache every step reads the prompt again, so only a cached run's kinds are told apart.
    cached = record.request.cache != "none"
    return (
        [step.index for step in record.steps] == list(range(len(record.steps)))
        and all(step.kind == "prefill" for step in record.prefill_steps)
        and (not cached or all(step.kind == "decode" for step in record.later_steps))
    )


def _grows_by_one(record: RunRecord) -> bool:
    contexts = [step.context_tokens for step in (*record.prefill_steps[-1:], *record.later_steps)]
    return contexts == [record.prediction.prompt_tokens + index for index in range(len(contexts))]


def _fits_its_totals(record: RunRecord) -> bool:
    read_s, write_s = (
        sum(step.host_s for step in part) for part in (record.prefill_steps, record.later_steps)
    )
    answer_s = (record.measured.tpot_s or 0.0) * len(record.later_steps)
    return read_s <= record.measured.ttft_s * _SLACK and write_s <= answer_s * _SLACK
