"""Sweeps: which cells there are, what their record refuses, and where it goes on."""

import json
import math
from dataclasses import replace

import pytest

from core.errors import FormatError, RecordError, RequestError
from core.lab import sweep_record
from core.lab.ranges import fit_ranges, half_width, written
from core.lab.reach import Reach
from core.lab.sweep_cell import METRICS, SweptCell
from core.lab.sweep_forecast import STEP, forecast
from core.lab.sweep_record import SweepRecord
from core.lab.sweep_request import Cell, SweepRequest, spec_of
from tests.lab.examples import calibration
from tests.lab.sweep_example import REQUEST, sweep, swept

CELL = Cell("smollm2-135m", "int4", "bf16", "contiguous", 1, 64, 8)


def test_cells_are_all_combinations_that_fit_and_a_choice_of_them_is_seeded() -> None:
    assert len(REQUEST.cells()) == 8
    wide = SweepRequest(batches=(1, 8), prompts=(64, 1024), weights=("int4", "int8"))
    assert all(cell.batch * cell.prompt_tokens <= 2048 or cell.batch == 1 for cell in wide.cells())
    assert len(wide.cells()) == 6, "eight prompts of 1,024 tokens fit no step"
    some = replace(wide, most=3, seed=5)
    assert len(some.cells()) == 3
    assert some.cells() == replace(wide, most=3, seed=5).cells()
    assert set(some.cells()) < set(wide.cells())
    assert len({replace(wide, most=3, seed=seed).cells() for seed in range(8)}) > 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"models": ()}, "one value or more for models"),
        ({"weights": ("int4", "int4")}, "each once"),
        ({"models": ("../../etc/passwd",)}, "A model must be smollm2-135m"),
        ({"models": ("shape:gpt2",)}, "a model that the engine runs"),
        ({"models": ("shape:smollm2-135m", "qwen3-0.6b")}, "A model must be"),
        ({"caches": ("magic",)}, "The cache must be one of"),
        ({"batches": (0,)}, "The batch must be from 1 to 32; got 0"),
        ({"prompts": (1_000_000,)}, "The prompt tokens must be from 1 to"),
        ({"new_tokens": 1}, "The output tokens must be from 2 to"),
        ({"most": -1}, "The cells to choose at most must be from 0"),
        ({"prompts": tuple(range(1, 400))}, "may have 1 to 256 cells"),
        ({"prompts": tuple(range(1, 8192)), "batches": tuple(range(1, 33))}, "have 262,112. Name fewer"),
        ({"seed": 2**63}, "The seed must be from 0 to"),
        ({"batches": (32,), "prompts": (2048,)}, "these settings give 0"),
    ],
)
def test_a_sweep_that_cannot_be_has_its_sentence(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        replace(SweepRequest(), **change).validate()  # type: ignore[arg-type]


def test_a_format_that_the_engine_lacks_is_refused() -> None:
    with pytest.raises(FormatError, match="int3"):
        SweepRequest(weights=("int3",)).validate()


def test_a_request_survives_json_and_odd_json_is_refused() -> None:
    assert SweepRequest.from_json(json.loads(json.dumps(REQUEST.to_json()))) == REQUEST
    odds: tuple[object, ...] = (
        [],
        {"weights": "int4"},
        {"batches": ["1"]},
        {"batches": [True]},
        {"seed": "0"},
        {"x": 1},
    )
    for odd in odds:
        with pytest.raises(RequestError, match="A sweep"):
            SweepRequest.from_json(odd)


def test_a_forecast_adds_up_and_stays_above_its_floor() -> None:
    for cell in SweepRequest(batches=(1, 8), prompts=(32, 512), caches=("paged", "none")).cells():
        made = forecast(cell, spec_of(cell.model), calibration())
        times = made.times
        assert sum(made.operators_s["prefill"].values()) == pytest.approx(times["ttft"].value_s, rel=0.05)
        assert sum(made.operators_s["decode"].values()) == pytest.approx(times["tpot"].value_s, rel=0.05)
        assert made.operators_s["decode"][STEP] > 0
        whole_s = times["ttft"].value_s + (cell.new_tokens - 1) * times["tpot"].value_s
        assert times["end_to_end"].value_s == pytest.approx(whole_s)
        for name in METRICS:
            assert 0 < times[name].floor_s <= times[name].value_s
            assert times[name].low_s < times[name].value_s < times[name].high_s


def test_beyond_the_calibration_a_prediction_says_so_and_is_less_sure() -> None:
    machine = calibration()
    near = forecast(CELL, spec_of(CELL.model), machine).times["tpot"]
    far = forecast(replace(CELL, batch=16), spec_of(CELL.model), machine)
    assert far.outside == ("a batch of 16, and 1 was calibrated",)
    assert width(far.times["tpot"].low_s, far.times["tpot"].high_s) > width(near.low_s, near.high_s)
    noisy = forecast(CELL, spec_of(CELL.model), replace(machine, noisy=("it was disturbed",))).times["tpot"]
    assert width(noisy.low_s, noisy.high_s) > width(near.low_s, near.high_s)


def width(low_s: float, high_s: float) -> float:
    return math.log(high_s / low_s)


def test_each_way_of_lying_beyond_has_its_clause() -> None:
    reach, model = Reach(4, 1024, 256, 1_000_000), spec_of("smollm2-135m")
    assert reach.beyond(CELL.shape, model) == ()
    assert "a context of 1,200" in reach.beyond(replace(CELL, prompt_tokens=1192).shape, model)[0]
    assert "500 tokens in one step" in reach.beyond(replace(CELL, prompt_tokens=500).shape, model)[0]
    assert "million weights" in reach.beyond(CELL.shape, spec_of("shape:qwen3-0.6b"))[0]
    recomputed = replace(CELL, cache="none", prompt_tokens=250).shape
    assert "258 tokens in one step" in reach.beyond(recomputed, model)[0]


def test_a_record_survives_its_file_and_knows_its_errors() -> None:
    record = sweep()
    again = sweep_record.loads(sweep_record.dumps(record))
    assert again == record
    assert again.is_finished
    for cell in again.cells:
        assert cell.error("tpot") == pytest.approx(1 / 1.1 - 1)
        assert cell.is_in_range("tpot") == (math.log(1.1) <= half_width("tpot", cell.cell.batch))


def test_a_sweep_that_ended_early_knows_what_is_left() -> None:
    whole = sweep()
    part = replace(whole, cells=whole.cells[:3])
    assert [swept_cell.cell for swept_cell in whole.cells[3:]] == list(part.left)
    assert not part.is_finished
    asked = replace(whole, request=replace(REQUEST, quality=True))
    assert not asked.is_finished
    assert asked.unjudged == (("int4", "bf16"), ("bf16", "bf16"))
    assert sweep(replace(REQUEST, quality=True)).is_finished


def test_a_cell_that_could_not_run_stands_there_with_its_reason() -> None:
    failed = SweptCell(CELL, measured_at="2026-11-29T12:02:00+00:00", problem="It does not fit.")
    record = replace(sweep(replace(REQUEST, weights=("int4",), batches=(1,), prompts=(64,))), cells=(failed,))
    again = sweep_record.loads(sweep_record.dumps(record))
    assert again.cells[0].problem == "It does not fit."
    assert again.cells[0].error("tpot") is None
    assert again.is_finished


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(version=2),
        lambda data: data.update(cells=[]),
        lambda data: data["cells"][0]["samples"].update(tpot=[0.1]),
        lambda data: data.pop("host"),
    ],
)
def test_a_record_that_was_changed_is_refused(spoil: object) -> None:
    data = sweep().to_json()
    spoil(data)  # type: ignore[operator]
    with pytest.raises(RecordError, match="A sweep's record"):
        SweepRecord.from_json(data)


def test_a_record_of_cells_that_nobody_asked_for_is_refused() -> None:
    stranger = swept(replace(CELL, prompt_tokens=99))
    for cells in ((stranger,), (*sweep().cells, sweep().cells[0])):
        with pytest.raises(RecordError, match="cells that its request does not give"):
            SweepRecord.from_json(replace(sweep(), cells=cells).to_json())
    unknown = replace(sweep(), calibrations=())
    with pytest.raises(RecordError, match="names a calibration"):
        SweepRecord.from_json(unknown.to_json())


def test_a_record_that_is_cut_short_or_too_large_is_refused() -> None:
    text = sweep_record.dumps(sweep())
    with pytest.raises(RecordError, match="cut short"):
        sweep_record.loads(text[: len(text) // 2])
    with pytest.raises(RecordError, match="may have up to"):
        sweep_record.loads(b" " * (sweep_record.MOST_BYTES + 1))


def test_ranges_are_fitted_to_quiet_cells_within_the_calibration() -> None:
    record = sweep(slowness=1.2)
    disturbed = tuple(swept(cell, 3.0, noisy=("others",)) for cell in REQUEST.cells()[:2])
    rows = fit_ranges([replace(record, cells=(*disturbed, *record.cells[2:]))])
    singles = {row.metric: row for row in rows if row.regime == "single"}
    assert singles["tpot"].half_width == pytest.approx(math.log(1.2))
    assert singles["tpot"].cells == 2, "two of the four were disturbed"
    assert len(rows) == len(METRICS), "batches lie beyond that calibration"
    assert written(rows).splitlines()[0] == "metric,regime,half_width,cells,sweeps,date"
