"""How the page hangs together: published rows, this machine's sweep, and the runs of other machines."""

from __future__ import annotations

from typing import Final

from core.analytic.validation.error_table import error_table, weakest
from core.analytic.validation.judged import judged_runs
from core.analytic.validation.judging import judge
from core.analytic.validation.worked_run import work_out
from core.lab.cell_errors import cell_errors
from core.lab.gallery import gallery as read_gallery
from core.ui import source
from core.ui.figures.measured_and_predicted import measured_and_predicted
from core.ui.predictions import gallery, here, link, published, row
from core.ui.scenario import record

_STEM: Final = "predictions"

#: What a visitor sees, and the function that makes it.
SOURCES: Final = (
    ("how rows are judged", judge),
    ("the rows that were judged", judged_runs),
    ("where they are weak", weakest),
    ("errors by class", error_table),
    ("the picture", measured_and_predicted),
    ("the arithmetic of a row", work_out),
    ("the row that is open", row.draw),
    ("errors of a sweep", cell_errors),
    ("the recorded runs", read_gallery),
)


def show() -> None:
    """Draw the page and keep it going."""
    record.enter(_STEM)
    link.adopt(comes_in=record.comes_in())
    record.adopt_link(_STEM)
    published.show()
    here.show()
    gallery.show()
    source.show(SOURCES, key="predictions_code")
