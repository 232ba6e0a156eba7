"""Two runs side by side: own ones and loaded ones, what differs, and every ratio."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.lab.record import RunRecord, dumps
from core.lab.request import RunRequest
from core.ui.lab.two_runs import _machines
from tests.lab import examples
from tests.pages.conftest import Open, component_data, settled, tables, words
from tests.pages.fake_lab import FakeLab, record_of

pytestmark = pytest.mark.page


def load(app: AppTest, record: RunRecord) -> AppTest:
    app.session_state["lab_load_fold"] = True
    settled(app.run())
    return settled(app.file_uploader[0].upload(f"{record.request.seed}.json", dumps(record).encode()).run())


def run(app: AppTest, lab: FakeLab, slowness: float) -> AppTest:
    settled(app.button(key="lab_run").click().run())
    lab.finish(list(lab.jobs)[-1], slowness)
    return settled(app.run())


def table(app: AppTest, first: str) -> dict[str, list[str]]:
    head, *rows = next(rows for rows in tables(app) if rows[0][0] == first)
    return {"": head, **{row[0]: row[1:] for row in rows}}


def test_one_run_has_nothing_beside_it(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(), lab, 1.0)
    assert "Two runs side by side" not in words(app)


def test_two_runs_of_this_visit_stand_side_by_side(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(lab_tokens="16"), lab, 1.0)
    settled(app.selectbox(key="lab_weights").select("int8").run())
    run(app, lab, 2.0)
    assert table(app, "setting") == {"": ["setting", "run A", "run B"], "weights": ["int4", "int8"]}
    one, other = app.session_state["lab_runs"]
    found = table(app, "quantity")
    assert float(found["TPOT, ms"][3]) == pytest.approx(1000 * other.token_spread.median_s, rel=0.01)
    wanted = other.token_spread.median_s / one.token_spread.median_s
    assert float(found["TPOT, ms"][5]) == pytest.approx(wanted, rel=0.01)
    titles = [data["title"] for data in component_data(app) if "title" in data]
    assert "Run A: one decode step by operator" in titles
    assert "Run B: one decode step by operator" in titles
    assert "Not the same machine" not in words(app)


def test_either_run_can_be_chosen(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(lab_tokens="16"), lab, 1.0)
    run(app, lab, 2.0)
    assert "Both runs have the same settings." in words(app)
    settled(app.selectbox(key="lab_two_b").select_index(0).run())
    app.session_state["lab_two_fold"] = True
    settled(app.run())
    assert set(table(app, "operator")["attention"][2:]) == {"1"}


def test_a_loaded_run_of_another_machine_says_so(open_app: Open, lab: FakeLab) -> None:
    app = run(open_app(lab_tokens="16"), lab, 1.0)
    theirs = record_of(RunRequest(max_tokens=16), 1.5)
    load(app, replace(theirs, host=replace(theirs.host, cpu="Another processor", threads=64)))
    text = words(app)
    assert "Not the same machine" in text
    assert "Another processor" in text
    assert "(file)" in str(app.selectbox(key="lab_two_b").options)


def test_a_noisy_run_is_said_and_a_run_of_one_token_has_no_time_per_token(open_app: Open) -> None:
    app = load(open_app(), record_of(RunRequest(max_tokens=1, seed=1)))
    load(app, record_of(RunRequest(max_tokens=8, seed=2), noisy=("others computed",)))
    assert "Run B is noisy: others computed." in words(app)
    assert table(app, "quantity")["TPOT, ms"][:2] == ["–", "–"]


def test_what_only_one_machine_tells_is_no_difference() -> None:
    host = examples.record().host
    assert _machines(host, host) == ""
    assert _machines(host, replace(host, cores=host.cores + 1)) == f"cores {host.cores} and {host.cores + 1}"
