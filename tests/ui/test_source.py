"""A page's own source, and the addresses under which it is found."""

from pathlib import Path

from core.analytic.params import count
from core.ui.planner.page import SOURCES
from core.ui.scenario.words import model_label
from core.ui.source import source_of

ROOT = Path(__file__).parents[2]


def test_a_function_is_shown_with_its_file_and_line() -> None:
    found = source_of("the count", count)
    assert found.path == "core/analytic/params.py"
    lines = (ROOT / found.path).read_text().splitlines()
    assert lines[found.line - 1] == "def count(model: ModelSpec) -> ParameterCount:"
    assert found.text.startswith("def count")


def test_a_cached_function_shows_its_own_text() -> None:
    assert "def model_label" in source_of("a label", model_label).text


def test_the_planner_names_what_makes_it() -> None:
    paths = {source_of(gives, thing).path for gives, thing in SOURCES}
    assert "core/analytic/plan.py" in paths
    assert "core/ui/figures/memory_bar.py" in paths
