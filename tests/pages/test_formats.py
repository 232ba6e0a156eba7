"""Every page with every sort of number format, those of the app's own engine and others."""

import pytest

from core.lesson.lesson_file import lessons
from core.lesson.notebook import Notebook
from core.lesson.prediction import skip_prediction
from tests.pages.conftest import Open, settled

pytestmark = pytest.mark.page

#: One with arithmetic of its own, a mix of formats, one with minimums, one of weights alone.
FORMATS = ("fp8", "q4_k_m", "q4_1", "mxfp4")
TOOLS = ("planner", "find_deployment", "lab", "predictions", "notebook", "course")
#: These have no scenario: what the address says of one is left alone.
WITHOUT = ("lab", "notebook", "course")
#: Two chips are compared there, one of them older than fp8.
TOLD = {("hardware_generations", "fp8"): "has no fp8 arithmetic"}


@pytest.mark.parametrize("format_id", FORMATS)
@pytest.mark.parametrize("stem", (*lessons(), *TOOLS))
def test_every_page_is_drawn_in_every_sort_of_format(open_app: Open, stem: str, format_id: str) -> None:
    app = open_app(stem, w=format_id, v="1")
    if stem not in WITHOUT:
        assert app.session_state["scenario"].weights == format_id
    if stem in lessons():  # the answer is shown, so that every number of the page is worked out
        app.session_state["notebook"] = Notebook().with_prediction(skip_prediction(lessons()[stem]))
        settled(app.run())
    app.session_state["print_view"] = True
    settled(app.run())
    told = TOLD.get((stem, format_id))
    assert all(told is not None and told in error.value for error in app.error)
