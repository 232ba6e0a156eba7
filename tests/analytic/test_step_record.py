"""A step's record is plain, immutable, and derives its overhead."""

from dataclasses import FrozenInstanceError, asdict, replace

import pytest

from core.analytic.step_record import StepRecord

STEP = StepRecord(
    index=3,
    kind="decode",
    num_sequences=1,
    new_tokens=1,
    context_tokens=65,
    weight_bytes=100,
    kv_read_bytes=65 * 8,
    kv_write_bytes=8,
    pages_used=1,
    pages_free=0,
    device_s=0.009,
    host_s=0.010,
)


def test_overhead_is_what_the_device_did_not_work() -> None:
    assert STEP.overhead_s == pytest.approx(0.001)
    assert replace(STEP, device_s=0.011).overhead_s == 0.0


def test_it_survives_a_plain_dict() -> None:
    assert StepRecord(**asdict(STEP)) == STEP


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        STEP.index = 4  # type: ignore[misc]
