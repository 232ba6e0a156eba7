"""Errors of a sweep's cells: by metric, quiet and disturbed apart, cells without numbers left out."""

from dataclasses import replace

import pytest

from core.lab.cell_errors import cell_errors
from core.lab.sweep_cell import METRICS
from tests.lab.recorded_sweep import sweep_record


@pytest.mark.parametrize(("off", "inside"), [(1.001, 1.0), (0.999, 1.0), (0.2, 0.0), (5.0, 0.0)])
def test_errors_are_of_the_medians(off: float, inside: float) -> None:
    found = cell_errors(sweep_record(off).cells)
    assert [each.metric for each in found] == list(METRICS)
    for each in found:
        assert each.median == pytest.approx(100 * abs(off - 1))
        assert each.p90 == pytest.approx(100 * abs(off - 1))
        assert each.in_range == inside
        assert (each.cells, each.noisy) == (7, False)


def test_disturbed_cells_are_counted_apart() -> None:
    first, *others = sweep_record().cells
    found = cell_errors((replace(first, noisy=("a guest",)), *others))
    assert [(each.noisy, each.cells) for each in found] == [(False, 6)] * 3 + [(True, 1)] * 3


def test_nothing_measured_has_no_errors() -> None:
    assert cell_errors(sweep_record().cells[-1:]) == ()
