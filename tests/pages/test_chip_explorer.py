"""The catalogue of page 21: sort, compare, formats by generation, sources, and what a browser may send."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core.lesson.lesson_file import lessons
from core.lesson.quantities.chip_catalogue import CLASSES, COLUMNS, chip_rows
from core.ui.lesson import recorded
from tests.pages.conftest import Open, settled, words
from tests.pages.fake_lab import FakeLab, record_of

pytestmark = pytest.mark.page
STEM = "hardware_generations"


def table(app: AppTest, label: str) -> str:
    return next(item.value for item in app.html if f'aria-label="{label}' in item.value)


def test_the_catalogue_is_sorted_and_marked(open_app: Open) -> None:
    app = open_app(STEM)
    shown = table(app, "Chips, sorted by bandwidth")
    first = chip_rows(["hbm"], "bandwidth, GB/s")[0].title
    assert first in shown
    assert "(announced)" in shown
    settled(app.selectbox(key="chips_sort").set_value("price from, $/h").run())
    cheapest = chip_rows(["hbm"], "price from, $/h")[0].title
    assert cheapest in table(app, "Chips, sorted by price")


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_sorts_every_kind(open_app: Open, column: str) -> None:
    app = open_app(STEM)
    settled(app.selectbox(key="chips_kind").set_value("every kind").run())
    settled(app.selectbox(key="chips_sort").set_value(column).run())
    settled(app.toggle(key="chips_all").set_value(True).run())
    shown = table(app, f"Chips, sorted by {column}")
    assert "Raspberry Pi 5" in shown
    assert "NVIDIA Rubin (per GPU) (announced)" in shown


def test_chips_are_held_side_by_side_with_their_sources(open_app: Open) -> None:
    app = open_app(STEM)
    settled(app.multiselect(key="chips_compared").set_value(["h100-sxm-80gb", "mi300x"]).run())
    shown = table(app, "Chosen chips side by side")
    assert "AMD Instinct MI300X" in shown
    assert "1.58" in shown  # 5.3 over 3.35 TB/s
    app.session_state["chips_sources"] = True
    settled(app.run())
    facts = table(app, "Facts and their sources")
    assert "https://" in facts
    settled(app.multiselect(key="chips_compared").set_value([]).run())
    assert "Choose chips above" in words(app)


def test_what_is_chosen_stands_in_the_link(open_app: Open) -> None:
    app = open_app(STEM)
    settled(app.selectbox(key="chips_sort").set_value("power, W").run())
    settled(app.multiselect(key="chips_compared").set_value(["mi300x"]).run())
    assert app.query_params["set_chips_sort"] == "power, W"
    assert app.query_params["set_chips_compared"] == "mi300x"
    again = open_app(
        STEM, set_chips_sort="power, W", set_chips_compared="mi300x", set_chips_kind="every kind"
    )
    assert again.selectbox(key="chips_sort").value == "power, W"
    assert again.multiselect(key="chips_compared").value == ["mi300x"]
    assert "CIX P1" in table(again, "Chips, sorted by power")
    assert not again.warning


def test_a_link_with_unknown_chips_is_repaired_and_said(open_app: Open) -> None:
    app = open_app(STEM, set_chips_compared="gpu-9000,<b>", set_chips_sort="luck")
    assert len(app.warning) == 2
    assert app.multiselect(key="chips_compared").value == ["a100-sxm-80gb", "b200-sxm"]
    assert "Chips, sorted by bandwidth" in " ".join(item.value for item in app.html)


def test_the_lists_that_the_page_offers_are_the_catalogues() -> None:
    kind, sort_by, _ = lessons()[STEM].beside
    assert kind.options == ("every kind", *CLASSES.values())
    assert sort_by.options == tuple(COLUMNS)


def map_of(app: AppTest) -> str:
    protos = [item.proto for item in app.get("bidi_component") if "chips_map" in item.proto.id]
    return str(json.loads(protos[0].json)["svg"])


def test_a_measured_computer_stands_on_the_map(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(STEM)
    assert "measured: " not in map_of(app)
    record = record_of(lessons()[STEM].measurement.runs[0].request)
    monkeypatch.setattr(recorded, "shipped", lambda folder: (record,))
    settled(app.run())
    assert f"measured: {record.host.device_name or record.host.cpu}" in map_of(app)


def test_this_computer_stands_on_the_map_after_its_run(open_app: Open, lab: FakeLab) -> None:
    app = open_app(STEM)
    settled(app.button(key=f"{STEM}_measure").click().run())
    lab.finish(list(lab.jobs)[-1])
    settled(app.run())
    assert "measured: this computer" in map_of(app)


def test_formats_by_generation(open_app: Open) -> None:
    app = open_app(STEM)
    shown = table(app, "Dense peak of each generation")
    assert "NVIDIA Volta (2017 to 2018)" in shown
    assert "announced" in shown
