"""Cells say what they know: exact counts, three digits, what is unknown and what does not apply."""

import pytest

from core.ui.export import to_csv, to_json
from core.ui.table import Blank, Cell, markup, written


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (2048, "2,048"),
        (2048.0, "2,048"),
        (29_700_000_000_000.0, "29.7 T"),
        (0.0123456, "0.0123"),
        (999_999.4, "1,000,000"),
        (None, "unknown"),
        (Blank.DOES_NOT_APPLY, "–"),
        (Blank.NOT_YET, "not yet"),
        ("=1+1", "=1+1"),
    ],
)
def test_a_cell_is_written(cell: Cell, text: str) -> None:
    assert written(cell) == text


def test_the_exact_value_is_under_the_pointer_and_hostile_words_are_words() -> None:
    html = markup(("<b>", "n"), [('"><script>', 1234567.891)], 'a "label"')
    assert 'title="1234567.891"' in html
    assert "<script" not in html
    assert "&lt;b&gt;" in html
    assert 'aria-label="a &quot;label&quot;"' in html


def test_a_table_can_be_reached_by_the_keyboard() -> None:
    assert '<div role="region" tabindex="0"' in markup(("a",), [(1,)], "label")


def test_a_short_word_that_names_a_row_is_never_broken() -> None:
    assert "overflow-wrap:normal" in markup(("a",), [("calibrated",)], "label").split("<tbody>")[1]
    assert (
        "overflow-wrap:anywhere"
        in markup(("a",), [("experiments/a_long_name.json",)], "label").split("<tbody>")[1]
    )


def test_blank_cells_are_empty_in_files() -> None:
    rows = [("a", Blank.DOES_NOT_APPLY, Blank.NOT_YET)]
    assert to_csv(("x", "y", "z"), rows).endswith("a,,\n")
    assert '"y": null' in to_json(("x", "y", "z"), rows)
