"""What must hold in every recorded sweep: sums, floors, ranges, and the protocol's own promises."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from core.catalog.assets import FOLDER
from core.lab import bench, sweep_record
from core.lab.cell_errors import cell_errors
from core.lab.noise import DRIFT_LIMIT
from core.lab.ranges import half_width
from core.lab.sweep_cell import METRICS, SweptCell
from core.lab.sweep_record import SweepRecord

ROOT = FOLDER.parent
FILES = sorted((FOLDER / "records" / "sweeps").glob("*.json"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def record(request: pytest.FixtureRequest) -> SweepRecord:
    path: Path = request.param
    return sweep_record.load(path)


def done(record: SweepRecord) -> list[SweptCell]:
    return [swept for swept in record.cells if swept.samples]


def test_there_are_sweeps() -> None:
    assert FILES


def test_operators_add_up_to_the_predicted_step(record: SweepRecord) -> None:
    for swept in done(record):
        made = swept.forecast
        assert made is not None
        for phase, metric in (("prefill", "ttft"), ("decode", "tpot")):
            whole_s = made.times[metric].value_s
            assert sum(made.operators_s[phase].values()) == pytest.approx(whole_s, rel=0.05), swept.cell


def test_no_floor_lies_above_what_was_measured_beyond_the_drift(record: SweepRecord) -> None:
    for swept in done(record):
        load = swept.load
        assert load is not None
        drift = max(1.0, load.after.read_bytes_per_s / load.before.read_bytes_per_s) * (1 + DRIFT_LIMIT)
        for metric in METRICS:
            predicted, measured = swept.predicted(metric), swept.measured(metric)
            assert predicted is not None
            assert measured is not None
            assert predicted.floor_s <= measured.median_s * drift, (swept.cell, metric)


def test_every_cell_was_predicted_by_a_calibration_of_before(record: SweepRecord) -> None:
    times = {calibration.id: calibration.measured_at for calibration in record.calibrations}
    for swept in done(record):
        assert times[swept.calibration] <= swept.measured_at


def test_the_readme_tells_what_each_held_out_sweep_gave(record: SweepRecord) -> None:
    """Median and 90th percentile of the error of the quiet cells, to a tenth of a percent."""
    found = {errors.metric: errors for errors in cell_errors(record.cells) if not errors.noisy}
    figures = [f"{found[name].median:.1f} %, {found[name].p90:.1f} %" for name in METRICS]
    counts = (
        sum(swept.tries > 1 for swept in record.cells),
        sum(len(swept.samples["tpot"]) for swept in record.cells if swept.samples),
        sum(swept.unsteady for swept in record.cells),
    )
    quiet = f"{found['tpot'].cells} of {len(record.cells)}"
    row = f"{quiet} | {' | '.join(map(str, counts))} | {' | '.join(figures)} |"
    if replace(record.request, seed=0) == bench.HELD_OUT:
        assert row in (ROOT / "README.md").read_text()
    else:
        assert len(record.cells) < len(bench.HELD_OUT.cells())


def test_the_ranges_of_today_hold_most_of_what_was_measured() -> None:
    """Four in five within what was calibrated, over all quiet cells of all sweeps and every metric."""
    inside = [
        abs(math.log1p(error)) <= half_width(metric, swept.cell.batch)
        for path in FILES
        for swept in done(sweep_record.load(path))
        for metric in METRICS
        if not swept.noisy and swept.forecast and not swept.forecast.outside
        if (error := swept.error(metric)) is not None
    ]
    assert sum(inside) >= 0.75 * len(inside)
