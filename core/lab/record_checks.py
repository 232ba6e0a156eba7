"""Whether a run record tells one story: what a checksum alone cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.lab.record import RunRecord

#: Clocks read at slightly different moments may disagree by so much.
_SLACK: Final = 1.02


def contradiction(record: RunRecord) -> str:
    """The first thing in a record that cannot be, as a clause; empty where all of it can."""
    steps, prompt = record.steps, record.prediction.prompt_tokens
    if not steps or len(steps) > record.request.max_tokens:
        return f"it has {len(steps)} steps for up to {record.request.max_tokens} tokens"
    if [step.index for step in steps] != list(range(len(steps))):
        return "its steps are not numbered from 0"
    if [step.context_tokens for step in steps] != [prompt + index for index in range(len(steps))]:
        return "its contexts do not grow by one from the prompt's tokens"
    if len(record.prediction.step_s) != record.request.max_tokens:
        return "it predicts another number of steps than was asked for"
    decode_s = sum(step.host_s for step in steps[1:])
    whole_s = (record.measured.tpot_s or 0.0) * (len(steps) - 1)
    if decode_s > whole_s * _SLACK or steps[0].host_s > record.measured.ttft_s * _SLACK:
        return "its steps take longer than the whole run"
    return ""
