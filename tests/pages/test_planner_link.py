"""The planner's own part of a link: the goal and the held scenario, also when they are hostile."""

from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import Open, component_data, settled, words

pytestmark = pytest.mark.page


def goal(app: AppTest) -> object:
    return app.segmented_control(key="planner_goal").value


def test_a_goal_stands_in_the_link_and_the_link_restores_it(open_app: Open) -> None:
    app = open_app("planner")
    app.segmented_control(key="planner_goal").set_value("ttft")
    settled(app.run())
    assert app.query_params["goal"] == "ttft"
    other = open_app("planner", goal="ttft")
    assert goal(other) == "ttft"
    assert "the first token comes after" in words(other)


def test_a_held_scenario_stands_in_the_link_and_the_link_restores_it(open_app: Open) -> None:
    app = open_app("planner", b="8", v="1")
    settled(app.button(key="planner_hold").click().run())
    held = app.query_params["held"]
    assert dict(parse_qsl(held)) == {"v": "1", "b": "8"}
    other = open_app("planner", b="16", v="1", held=held)
    text = words(other)
    assert "held: Llama 3.1 8B · 1 × NVIDIA H100 SXM5 80GB · bf16 weights, bf16 KV · batch 8" in text
    settled(other.button(key="planner_release").click().run())
    assert "held" not in other.query_params
    assert other.query_params["b"] == "16"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"goal": "<script>"}, "The goal must be one of"),
        ({"held": "b=0"}, "The batch must be from 1"),
        ({"held": "m=" + "x" * 5000}, "too long to be one"),
        ({"held": "%00&&&=&m=<img src=x>"}, "is not known here"),
    ],
)
def test_a_hostile_value_is_a_sentence(open_app: Open, params: dict[str, str], sentence: str) -> None:
    app = open_app("planner", **params)
    assert any(sentence in warning.value for warning in app.warning), [w.value for w in app.warning]
    assert not app.error
    app.segmented_control(key="planner_goal").set_value("fit")
    settled(app.run())
    assert not app.warning


def test_goal_and_held_scenario_are_there_on_coming_back(open_app: Open) -> None:
    app = open_app("planner", goal="fit", held="v=1&b=8")
    settled(app.switch_page("pages/course.py").run())
    app.query_params.clear()
    settled(app.switch_page("pages/planner.py").run())
    assert goal(app) == "fit"
    assert app.button(key="planner_release")
    queries = [dict(parse_qsl(data["query"])) for data in component_data(app) if "query" in data]
    assert queries == [{"goal": "fit", "held": "v=1&b=8"}]
