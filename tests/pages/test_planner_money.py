"""What a token costs, on the planner's page: tiles, a price of one's own, and the busy share."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import Open, component_data, settled, words

pytestmark = pytest.mark.page

PRICE = "planner_price_h100-sxm-80gb"


def cost(app: AppTest) -> dict[str, str]:
    found = [data["tiles"] for data in component_data(app) if "tiles" in data]
    return {tile["name"]: tile["value"] for tile in found[1]}


def test_cost_and_energy_stand_there_with_the_date_of_the_price(open_app: Open) -> None:
    app = open_app("planner")
    assert list(cost(app)) == ["Input", "Output", "Request", "Energy"]
    assert cost(app)["Output"].startswith("$")
    assert "dollars an hour for each chip, read on 20" in words(app)


def test_a_price_of_ones_own_replaces_the_list_price(open_app: Open) -> None:
    app = open_app("planner")
    before = float(cost(app)["Output"].strip("$"))
    app.number_input(key=PRICE).set_value(1.0)
    settled(app.run())
    assert float(cost(app)["Output"].strip("$")) < before
    assert "1 dollars an hour for each chip, typed in by you" in words(app)


def test_a_lower_load_costs_more(open_app: Open) -> None:
    app = open_app("planner")
    before = float(cost(app)["Output"].strip("$"))
    app.select_slider(key="planner_load").set_value(50)
    settled(app.run())
    assert float(cost(app)["Output"].strip("$")) == pytest.approx(2 * before, rel=0.02)
    assert "busy 50% of the time" in words(app)


@pytest.mark.parametrize("name", ["Input", "Output", "Request", "Energy"])
def test_each_number_opens_to_its_arithmetic(open_app: Open, name: str) -> None:
    app = open_app("planner")
    app.session_state["planner_money_open"] = name
    settled(app.run())
    assert 'aria-label="Inputs"' in "".join(item.value for item in app.html)
    assert not app.error


def test_an_unknown_tile_opens_nothing(open_app: Open) -> None:
    app = open_app("planner")
    before = cost(app)
    app.session_state["planner_money_open"] = "<script>"
    assert cost(settled(app.run())) == before
    assert 'aria-label="Inputs"' not in "".join(item.value for item in app.html)


def test_without_times_there_is_no_cost(open_app: Open) -> None:
    app = open_app("planner", a="t4", v="1")
    assert len([data for data in component_data(app) if "tiles" in data]) == 1
