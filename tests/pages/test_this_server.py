"""What a host published stands where a visit has no sweep of its own, and makes way for one."""

from pathlib import Path

import pytest

from core.lab import this_server
from core.lab.experiment import SWEEP, Experiment
from tests.lab.sweep_example import sweep
from tests.pages.conftest import Open, settled, words
from tests.pages.fake_lab import FakeLab

pytestmark = pytest.mark.page

SAID = "This server, measured quietly on 2026-11-29 12:01 UTC. Its host shows it to all visitors."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLM_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(this_server, "cpu_name", lambda: "A processor")
    return tmp_path


@pytest.fixture(params=["lab", "predictions"])
def page(request: pytest.FixtureRequest, open_app: Open, lab: FakeLab) -> Open:
    """The lab's sweep, and the page of predictions."""
    del lab
    return lambda *_, **settings: (
        open_app("lab", part="sweep") if request.param == "lab" else open_app("predictions")
    )


def test_nothing_is_said_where_nothing_was_published(page: Open) -> None:
    app = page("")
    assert "This server, measured" not in words(app)
    assert not app.warning


def test_the_published_sweep_is_shown_with_its_time(page: Open) -> None:
    assert this_server.publish(sweep()) == ""
    app = page("")
    assert SAID in words(app)
    assert "Errors by metric" in "".join(item.value for item in app.html)
    assert not app.exception


def test_a_file_that_does_not_hold_is_a_sentence(page: Open, folder: Path) -> None:
    (folder / "this-server.json").write_text("{")
    app = page("")
    assert app.warning[0].value.startswith("The sweep of this server is not shown. A sweep's record ")
    assert not app.exception


def test_a_sweep_of_the_visit_takes_its_place(page: Open) -> None:
    this_server.publish(sweep())
    app = page("")
    made = Experiment(SWEEP, {"request": sweep().request.to_json(), "record": None}, "a sweep")
    app.session_state["lab_results"] = {made.key: sweep().to_json()}
    app = settled(app.run())
    assert SAID not in words(app)
