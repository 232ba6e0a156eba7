"""Rehearsals: how far they are followed, and that every prediction and its arithmetic follow alike."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.catalog.models import model
from core.errors import RecordError
from core.lab.checked_json import Reader
from core.lab.pace import FARTHEST
from core.lab.predict import predict
from core.lab.rehearsal import AS_PREDICTED, Rehearsal
from core.lab.sweep_forecast import forecast
from core.lab.sweep_request import spec_of
from core.ui.lab.prediction_words import how_predicted
from core.units import format_seconds
from tests.lab.examples import PROMPT_TOKENS, calibration, record, request
from tests.lab.sweep_example import REQUEST

SMOL = model("smollm2-135m")
MACHINE = calibration().machine()
SEEN = Rehearsal(1.44, 0.64)
CELL = REQUEST.cells()[0]


@given(ratio=st.floats(1 / FARTHEST, FARTHEST))
def test_a_rehearsal_is_followed_halfway(ratio: float) -> None:
    followed = Rehearsal(ratio, ratio).followed
    assert followed.prefill**2 == pytest.approx(ratio)
    assert followed.decode == followed.prefill


@pytest.mark.parametrize("disturbed", [Rehearsal(1.4, 7.6), Rehearsal(0.3, 1.0), Rehearsal(2.1, 2.1)])
def test_a_disturbed_rehearsal_is_left_out_whole_and_the_page_says_so(disturbed: Rehearsal) -> None:
    assert not disturbed.is_followed
    assert disturbed.followed == AS_PREDICTED
    one = record()
    told = how_predicted(replace(one, load=replace(one.load, rehearsal=disturbed)))
    assert f"{disturbed.decode:.2f} times. More than a factor of 2 is no pace" in told


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.7])
def test_a_slower_machine_takes_so_many_times_as_long(factor: float) -> None:
    table = operators(SMOL, batch=2, new_tokens=7, context=7, weights="int4", kv="int8")
    usual_s, found_s = (float(step_time(table, each)) for each in (MACHINE, MACHINE.slower(factor)))
    assert found_s == pytest.approx(factor * usual_s, rel=1e-12)
    assert MACHINE.slower(factor).bandwidth_bytes_per_s == MACHINE.bandwidth_bytes_per_s


def test_the_prompt_follows_its_part_and_later_tokens_theirs() -> None:
    usual, found = (predict(request(), PROMPT_TOKENS, SMOL, MACHINE, seen) for seen in (AS_PREDICTED, SEEN))
    assert found.ttft_s == pytest.approx(1.2 * usual.ttft_s)
    assert found.tpot_s == pytest.approx(0.8 * (usual.tpot_s or 0.0))
    assert found.decode is not None and usual.decode is not None
    assert found.prefill.seconds == pytest.approx(found.ttft_s), "operators add up as before"
    assert found.decode.operators_s["down"] == pytest.approx(0.8 * usual.decode.operators_s["down"])
    assert (found.decode.limit, found.memory) == (usual.decode.limit, usual.memory)


def test_a_cell_of_a_sweep_follows_too_and_its_floor_stays() -> None:
    spec = spec_of(CELL.model)
    usual, found = (forecast(CELL, spec, calibration(), seen) for seen in (AS_PREDICTED, SEEN))
    for metric, factor in (("ttft", 1.2), ("tpot", 0.8)):
        assert found.times[metric].value_s == pytest.approx(factor * usual.times[metric].value_s)
        assert found.times[metric].floor_s == usual.times[metric].floor_s


@pytest.mark.parametrize("kept", [{}, 0, "", {"prefill": 1.0}, {"prefill": 1.0, "decode": 0.0}])
def test_half_a_rehearsal_is_none(kept: object) -> None:
    with pytest.raises(RecordError, match="A run must have"):
        Reader({"rehearsal": kept}, "A run").optional("rehearsal", Rehearsal.from_reader)


def test_a_record_tells_what_was_rehearsed_and_how_far_it_was_followed() -> None:
    one = record()
    alone = f"without these, TTFT is {format_seconds(one.prediction.ttft_s)} and TPOT"
    assert "rehearsed" not in how_predicted(one)
    assert alone in how_predicted(one)
    told = how_predicted(replace(one, load=replace(one.load, rehearsal=SEEN)))
    assert "took 1.44 times what is predicted of it at that pace, each later one 0.64 times" in told
    assert "times 1.20 and 0.80, the square roots" in told
    assert alone in told
