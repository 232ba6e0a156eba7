"""The words and the link of the page of predictions: examples hold, and every row can be named."""

import doctest

import pytest

from core.analytic.prediction_range import COVERED
from core.analytic.validation.error_table import FACETS, classes
from core.analytic.validation.judged import judged_runs
from core.ui.figures.measured_and_predicted import MOST_KINDS
from core.ui.predictions import link, words
from core.ui.predictions.link import FILTERS, Shown

JUDGED = judged_runs()


@pytest.mark.parametrize("module", [link, words])
def test_examples_hold(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0


def test_every_regime_has_a_mark_of_its_own() -> None:
    assert set(words.KINDS) == set(COVERED)
    assert len(set(words.KINDS.values())) == len(words.KINDS) <= MOST_KINDS


def test_every_row_is_named_and_told_in_words() -> None:
    assert len({words.row_name(row) for row in JUDGED}) == len(JUDGED)
    for row in JUDGED:
        said = words.both(row)
        assert ("too low" in said) == (row.predicted < row.run.value)
        assert ("inside the range" in said) == row.in_range


@pytest.mark.parametrize("name", FILTERS)
def test_every_class_survives_a_link(name: str) -> None:
    for each in classes(JUDGED, name):
        shown = Shown(**{name: each})
        assert link.read(link.written(shown)) == (shown, ())


def test_every_split_survives_a_link() -> None:
    for facet in FACETS:
        assert link.read(link.written(Shown(by=facet)))[0].by == facet
