"""Predictions held against measurements: weak regimes, filters, the arithmetic of a row, recorded runs."""

import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from core.analytic.validation.error_table import FACETS, UNITS, error_table, weakest
from core.analytic.validation.judged import judged_runs, published
from core.analytic.validation.worked_run import work_out
from core.lab import gallery
from core.lab import record as run_record
from core.lab import sweep_record as sweep_module
from core.lab.endpoint import record as endpoint_record
from core.lab.experiment import SWEEP, Experiment
from core.lab.gallery import FOLDER
from core.lab.record import RunRecord
from core.ui.predictions import link
from core.units import significant
from tests.lab.examples import record
from tests.lab.recorded_server import server_record
from tests.lab.recorded_sweep import REQUEST, sweep_record
from tests.pages.conftest import Open, component_data, settled, tables, words

pytestmark = pytest.mark.page
STEM = "predictions"
JUDGED = judged_runs()


def scatter(app: AppTest) -> dict[str, object]:
    return next(
        data for data in component_data(app) if str(data.get("title", "")).startswith("Predicted and pub")
    )


def marks(app: AppTest) -> int:
    return str(scatter(app)["svg"]).count("data-pick=")


def table(app: AppTest, first: str) -> list[list[str]]:
    return next(found for found in tables(app) if found[0][0] == first)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of records: a run, and a sweep of another machine."""
    run_record.save(record(slowness=1.3), tmp_path / "run.json")
    sweep_module.save(sweep_record(noisy=("a guest",)), tmp_path / "sweep.json")
    monkeypatch.setattr(gallery, "FOLDER", tmp_path)
    return tmp_path


# Published measurements


def test_the_weak_regimes_come_first(open_app: Open) -> None:
    app = open_app(STEM)
    said = words(app)
    assert app.title[0].value == "How good are our predictions?"
    for found in weakest(JUDGED, 4):
        assert f"{found.name}: half are off by more than {found.median:.0f} %" in said
    place = {text: said.index(text) for text in ("half are off", "core bench makes one", "records of")}
    assert list(place.values()) == sorted(place.values())
    assert marks(app) == len(JUDGED)
    assert not app.error
    assert not app.warning


def test_what_is_kept_out_is_said_with_its_reason(open_app: Open) -> None:
    app = open_app(STEM)
    app.session_state["predictions_gaps"] = True
    settled(app.run())
    reasons = table(app, "why rows are kept out")[1:]
    assert sum(int(row[1]) for row in reasons) == len(published().skipped)
    assert "No published row splits layers into stages." in words(app)


@pytest.mark.parametrize("facet", link.FILTERS)
def test_a_filter_leaves_its_rows_in_every_part(open_app: Open, facet: str) -> None:
    found = error_table(JUDGED, facet)[-1]
    app = open_app(STEM)
    settled(app.selectbox(key=f"predictions_{facet}").set_value(found.name).run())
    assert app.query_params[facet] == [found.name] or app.query_params[facet] == found.name
    assert marks(app) == found.rows
    row = table(app, "rows that are")[-1]
    assert row[0] == "all that are shown"
    assert (row[1], row[4], row[5]) == (significant(found.median), str(found.rows), str(found.sources))
    assert marks(open_app(STEM, **{facet: found.name})) == found.rows


def test_filters_that_leave_nothing_say_so_and_can_be_taken_back(open_app: Open) -> None:
    app = open_app(STEM, family="mpt", metric="MBU")
    assert "No published row is all of this" in app.warning[0].value
    settled(app.button(key="predictions_all").click().run())
    assert marks(app) == len(JUDGED)


@pytest.mark.parametrize("facet", FACETS)
def test_errors_are_split_by_each_class(open_app: Open, facet: str) -> None:
    app = open_app(STEM, by=facet)
    shown = table(app, "rows that are")[1:-1]
    assert [row[0] for row in shown] == [found.name for found in error_table(JUDGED, facet)]


def test_a_row_opens_to_its_arithmetic_and_its_source(open_app: Open) -> None:
    app = open_app(STEM)
    settled(app.selectbox(key="predictions_row_choice").set_value("r001").run())
    row = next(each for each in JUDGED if each.run.id == "r001")
    said = words(app)
    assert f"measured {significant(row.run.value)}" in said
    assert significant(work_out(row).predicted) in said
    assert row.run.source in said
    assert [item.proto.url for item in app.get("link_button")] == [row.run.source]
    assert "matrices of the layers" in said
    app.session_state["predictions_row_python"] = True
    settled(app.run())
    assert any("print(1 / step)" in item.value for item in app.code)


def test_a_click_on_a_mark_and_the_list_open_the_same_row(open_app: Open) -> None:
    app = open_app(STEM)
    worst = max(JUDGED, key=lambda each: each.factor)
    settled(app.button(key="predictions_furthest_0").click().run())
    assert app.selectbox(key="predictions_row_choice").value == worst.run.id
    assert str(scatter(app)["svg"]).count("<circle") == 1
    assert scatter(app)["picks"] is True


def test_every_metric_can_be_opened(open_app: Open) -> None:
    for metric in UNITS:
        row = next(each for each in JUDGED if each.run.metric == metric)
        app = open_app(STEM, row=row.run.id)
        assert significant(work_out(row).predicted) in words(app)


@pytest.mark.parametrize("name", ["metric", "batch", "source", "by", "row", "record"])
def test_a_link_with_nonsense_is_repaired_and_said(open_app: Open, name: str) -> None:
    app = open_app(STEM, **{name: "<script>alert(1)</script>/../../etc"})
    assert len(app.warning) == 1
    assert "is not one of those here" in app.warning[0].value
    assert marks(app) == len(JUDGED)


def test_a_filter_never_takes_what_the_browser_made_up() -> None:
    assert "row r1" not in link.known("row")
    assert link.read({"record": str(FOLDER / "one_token-run.json")})[0].record == ""


def test_the_print_view_unfolds_everything(open_app: Open) -> None:
    app = open_app(STEM, row="r001")
    settled(app.toggle(key="print_view").set_value(True).run())
    heads = [found[0][0] for found in tables(app)]
    assert heads.count("rows that are") == len(FACETS)
    assert {"what", "why rows are kept out"} <= set(heads)


def test_the_code_behind_the_page_can_be_read(open_app: Open) -> None:
    app = open_app(STEM)
    app.session_state["predictions_code_source"] = True
    settled(app.run())
    assert "core/analytic/validation/judging.py" in words(app)


# This machine


def test_a_sweep_of_this_visit_is_shown(open_app: Open) -> None:
    app = open_app(STEM)
    assert "No sweep has been made in this visit yet." in words(app)
    made = Experiment(SWEEP, {"request": REQUEST.to_json(), "record": None}, "a sweep")
    app.session_state["lab_results"] = {made.key: sweep_record().to_json()}
    settled(app.run())
    said = words(app)
    assert "No sweep has been made" not in said
    assert "7 of 8 cells predicted, then run: 3 times or more each." in said
    assert any(data.get("title") == "Predicted and measured, every cell" for data in component_data(app))


def test_a_sweep_that_cannot_be_read_is_a_sentence(open_app: Open) -> None:
    app = open_app(STEM)
    app.session_state["lab_results"] = {Experiment(SWEEP, {}, "a sweep").key: {"schema": "another"}}
    settled(app.run())
    assert "A sweep's record must have" in app.error[0].value


# Recorded runs


def test_every_shipped_record_is_in_the_table_and_opens(open_app: Open) -> None:
    app = open_app(STEM)
    names = [row[0] for row in table(app, "file")[1:]]
    assert names == [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*.json"))]
    for name in names:
        settled(app.selectbox(key="predictions_record_choice").set_value(name).run())
        assert not app.error
        assert "Save this record" in [item.proto.label for item in app.get("download_button")]
        assert any(found[0] == ["condition", "value"] for found in tables(app))


def test_a_run_stands_beside_its_prediction_and_opens_the_lab(open_app: Open, folder: Path) -> None:
    app = open_app(STEM, record="run.json")
    assert "× 1.30" in words(app)
    item = next(item for item in app.get("page_link") if "these settings" in item.proto.label)
    assert dict(parse_qsl(item.proto.query_string))["lab_tokens"] == str(record().request.max_tokens)


def test_a_sweep_shows_its_errors_its_cells_and_what_was_disturbed(open_app: Open, folder: Path) -> None:
    app = open_app(STEM, record="sweep.json")
    said = words(app)
    assert "7 of 8 cells predicted, then run: 3 times or more each. 1 could not be run." in said
    errors = table(app, "off by")
    assert [row[0] for row in errors[1:]] == [
        f"{metric}, 7 noisy cells" for metric in ("TTFT", "TPOT", "end to end")
    ]
    assert {row[1] for row in errors[1:]} == {"10.0"}
    app.session_state["predictions_record_cells"] = True
    settled(app.run())
    assert len(next(found for found in tables(app) if found[0][0] == "cell")) == 9
    assert "It did not fit into the memory." in words(app)


@pytest.mark.parametrize("predicted", [True, False])
def test_a_measured_server_stands_beside_its_prediction(
    open_app: Open, folder: Path, predicted: bool
) -> None:
    made = server_record(predicted=predicted)
    (folder / "server.json").write_text(endpoint_record.dumps(made))
    app = open_app(STEM, record="server.json")
    rows = table(app, "requests")[1:]
    assert [row[0] for row in rows] == ["1 at once", "4 at once"]
    assert [row[2] for row in rows] == ["50", "50"]
    assert [row[-1] for row in rows] == ["4 of 4", "3 of 4"]
    if made.prediction is None:
        assert {row[1] for row in rows} == {"–"}
    else:
        assert [row[1] for row in rows] == [significant(1e3 * at.ttft_s) for at in made.prediction.levels]
    assert "1 of 4 requests failed" in words(app)


def test_sweeps_are_told_apart_by_machine(open_app: Open, folder: Path) -> None:
    sweep_module.save(sweep_record(off=0.8), folder / "quiet.json")
    disturbed, quiet = sorted(table(open_app(STEM), "machine")[1:], key=lambda row: int(row[2]))
    assert disturbed == ["NVIDIA H200, cuda, 2026-11-29, seed 0", "8 of 8 cells", "0", "7", *["–"] * 6]
    assert quiet[:4] == ["NVIDIA H200, cuda, 2026-11-29, seed 0", "8 of 8 cells", "7", "0"]
    assert [float(cell) for cell in quiet[4:]] == [20.0] * 6


def test_a_record_that_is_dropped_into_the_folder_appears(open_app: Open, folder: Path) -> None:
    app = open_app(STEM)
    assert len(table(app, "file")) == 3
    (folder / "sweeps").mkdir()
    sweep_module.save(sweep_record(), folder / "sweeps" / "new.json")
    settled(app.run())
    assert [row[0] for row in table(app, "file")[1:]] == ["run.json", "sweep.json", "sweeps/new.json"]


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": "x"}', "\x00" * 100, "<b>hello</b>"])
def test_a_bad_file_is_one_sentence_and_hides_nothing(open_app: Open, folder: Path, content: str) -> None:
    (folder / "bad <i>.json").write_text(content)
    app = open_app(STEM)
    (warning,) = app.warning
    assert "bad \\<i\\>.json" in warning.value
    assert len(table(app, "file")) == 3


def test_an_edited_and_a_huge_file_are_told_apart(open_app: Open, folder: Path) -> None:
    data = json.loads((folder / "run.json").read_text())
    data["measured"]["ttft_s"] /= 2
    (folder / "edited.json").write_text(json.dumps(data))
    with (folder / "huge.json").open("wb") as file:
        file.truncate(100_000_000)
    app = open_app(STEM)
    edited, huge = (warning.value for warning in app.warning)
    assert "was changed since" in edited
    assert "100 MB" in huge


def test_no_record_at_all_is_a_sentence(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "FOLDER", tmp_path / "nothing")
    assert "There are no records here yet." in words(open_app(STEM))


def test_what_is_saved_can_be_loaded_again(folder: Path) -> None:
    entries = {entry.name: entry for entry in gallery.gallery(folder).entries}
    assert isinstance(entries["run.json"].record, RunRecord)
    assert run_record.loads(entries["run.json"].text()) == entries["run.json"].record
