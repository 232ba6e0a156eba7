"""The scenario bar: links in and out, hostile values, and what a visitor brings."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core.catalog.custom import Own, load
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.scenario import LIMITS, Scenario
from core.ui.scenario import editor
from tests.pages.conftest import Open, settled, words

pytestmark = pytest.mark.page

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "max_position_embeddings": 4096,
}
HOSTILE = "<script>alert(1)</script>![x](http://evil.example)**$x$"


def opened(open_app: Open, part: str = "Scenario", **params: str) -> AppTest:
    """The planner with its bar open at a part."""
    app = open_app("planner", **params)
    settled(app.button(key="scenario_change").click().run())
    if part != "Scenario":
        app.segmented_control(key="scenario_part").set_value(part)
        settled(app.run())
    return app


def scenario(app: AppTest) -> Scenario:
    now: Scenario = app.session_state["scenario"]
    return now


def own(app: AppTest) -> Own:
    brought_along: Own = app.session_state["scenario_own"]
    return brought_along


# The bar and its fields


def test_the_bar_is_one_line_until_it_is_opened(open_app: Open) -> None:
    app = open_app("planner")
    assert "Llama 3" in app.html[0].value
    assert not app.selectbox
    app = opened(open_app)
    assert [box.label for box in app.selectbox] == ["Model", "Accelerator", "Weight format", "KV format"]
    mine = [field for field in app.number_input if str(field.key).startswith("scenario_")]
    assert [field.label for field in mine] == [
        "Accelerators",
        "Batch",
        "Input tokens",
        "Output tokens",
        "Tensor parallel",
        "Pipeline stages",
        "Expert parallel",
    ]


def test_the_bar_closes_where_another_page_is_opened(open_app: Open) -> None:
    app = opened(open_app)
    settled(app.switch_page("pages/will_it_fit.py").run())
    assert not any(box.key == "scenario_model" for box in app.selectbox)
    settled(app.switch_page("pages/planner.py").run())
    assert not app.selectbox


def test_a_format_is_found_by_the_name_that_the_command_line_uses(open_app: Open) -> None:
    app = opened(open_app)
    weights = app.selectbox(key="scenario_weights")
    asked = [option for option in weights.options if "fp8" in option.casefold()]
    assert asked[0] == "fp8 · W8A8, one scale a tensor"
    assert "bf16" in weights.options
    assert "q4_1 · GGUF Q4_1" in weights.options
    assert "contains" in str(weights.proto).casefold()  # what is typed is looked for as it stands, in order
    keys = [option.partition(" · ")[0] for option in weights.options]
    assert set(keys) <= set(STORAGE_FORMATS)


def test_every_field_changes_the_record(open_app: Open) -> None:
    app = opened(open_app)
    app.selectbox(key="scenario_model").set_value("qwen3-8b")
    settled(app.run())
    app.selectbox(key="scenario_weights").set_value("int4")
    settled(app.run())
    app.number_input(key="scenario_input_tokens").set_value(3000)
    settled(app.run())
    assert scenario(app) == Scenario(model="qwen3-8b", weights="int4", input_tokens=3000)
    assert app.select_slider(key="scenario_slide_input_tokens").value == 3000


def test_a_degree_brings_its_chips(open_app: Open) -> None:
    app = opened(open_app, n="2", v="1")
    app.number_input(key="scenario_tp").set_value(4)
    settled(app.run())
    assert (scenario(app).tp, scenario(app).count) == (4, 4)
    app.number_input(key="scenario_tp").set_value(None)
    settled(app.run())
    assert (scenario(app).tp, scenario(app).count) == (4, 4)
    app.number_input(key="scenario_ep").set_value(2)
    settled(app.run())
    assert (scenario(app).ep, scenario(app).count) == (2, 4)
    assert not app.exception


def test_chips_that_were_typed_stay_where_a_degree_divides_them(open_app: Open) -> None:
    app = opened(open_app)
    app.number_input(key="scenario_count").set_value(2)
    settled(app.run())
    app.number_input(key="scenario_tp").set_value(2)
    settled(app.run())
    assert (scenario(app).tp, scenario(app).count) == (2, 2)
    assert not app.info
    app.number_input(key="scenario_tp").set_value(8)
    settled(app.run())
    assert scenario(app).count == 8
    assert "2 chips are no whole number of replicas of 8" in app.info[0].value
    app.number_input(key="scenario_tp").set_value(1)
    settled(app.run())
    assert scenario(app).count == 2
    assert "There are 2 chips again" in app.info[0].value
    app.select_slider(key="scenario_slide_batch").set_value(8)
    settled(app.run())
    assert not app.info


def test_what_a_change_brought_with_it_is_not_said_on_another_page(open_app: Open) -> None:
    app = opened(open_app)
    app.number_input(key="scenario_pp").set_value(4)
    settled(app.run())
    assert app.info
    settled(app.switch_page("pages/kv_cache.py").run())
    assert not any("replicas of 4" in item.value for item in app.info)


def test_a_slider_and_its_field_show_the_same(open_app: Open) -> None:
    app = opened(open_app)
    app.select_slider(key="scenario_slide_batch").set_value(16)
    settled(app.run())
    assert app.number_input(key="scenario_batch").value == 16


def test_an_emptied_field_leaves_the_record_as_it_was(open_app: Open) -> None:
    app = opened(open_app, b="4", v="1")
    app.number_input(key="scenario_batch").set_value(None)
    settled(app.run())
    assert scenario(app).batch == 4
    assert app.number_input(key="scenario_batch").value == 4


def test_a_slider_has_todays_value_among_its_steps() -> None:
    assert editor.steps("batch", 100)[:9] == [1, 2, 4, 8, 16, 32, 64, 100, 128]
    assert editor.steps("output_tokens", LIMITS["output_tokens"][1])[-1] == 1_000_000


# Links


def test_a_link_restores_everything(open_app: Open) -> None:
    sent = {"v": "1", "m": "llama-2-7b", "a": "a100-sxm-80gb", "w": "int8", "k": "fp16"}
    counts = {"b": "3", "i": "777", "o": "33", "n": "4"}
    app = open_app("planner", **sent, **counts)
    assert scenario(app) == Scenario("llama-2-7b", "a100-sxm-80gb", 4, "int8", "fp16", 3, 777, 33)
    assert not app.warning


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"b": "0"}, "The batch must be from 1 to 65,536; the link says 0, so 1 is used."),
        ({"b": "1e9"}, "The batch must be a whole number"),
        ({"i": "9" * 5000}, "The input tokens must be a whole number"),
        ({"i": "99999999999"}, "so 2,000,000 is used"),
        ({"m": HOSTILE}, "in the link is not known here"),
        ({"a": "../../etc/passwd"}, "in the link is not known here"),
        ({"w": "fp2"}, "The weight format 'fp2'"),
        ({"v": "9"}, "another version"),
        ({"m": "own:mine"}, "Ask the sender for the saved file and load it here"),
    ],
)
def test_what_a_link_cannot_mean_is_said_in_a_sentence(
    open_app: Open, params: dict[str, str], sentence: str
) -> None:
    app = open_app("planner", **params)
    assert len(app.warning) == 1
    shown = app.warning[0].value.replace("\\", "")
    assert sentence in shown
    assert len(shown) < 400
    assert not app.exception


def test_unknown_keys_belong_to_others_and_break_nothing(open_app: Open) -> None:
    app = open_app("planner", utm_source="x", __proto__="1", b="2")
    assert scenario(app).batch == 2
    assert not app.warning


def test_a_hostile_link_is_shown_as_text(open_app: Open) -> None:
    app = open_app("planner", m=HOSTILE)
    assert "\\<script\\>" in app.warning[0].value
    assert "<script" not in "".join(item.value for item in app.html)


def test_notes_go_with_the_first_change(open_app: Open) -> None:
    app = open_app("planner", b="0")
    app.select_slider(key="scenario_slide_batch").set_value(8)
    settled(app.run())
    assert not app.warning


def test_the_scenario_travels_from_page_to_page(open_app: Open) -> None:
    app = open_app("planner", b="8", v="1")
    for name in list(app.query_params):
        del app.query_params[name]  # what a browser does when another page is opened
    settled(app.switch_page("pages/kv_cache.py").run())
    settled(app.switch_page("pages/planner.py").run())
    assert scenario(app).batch == 8


def test_going_back_to_an_address_without_a_scenario_finds_the_one_of_arrival(open_app: Open) -> None:
    app = open_app("planner")
    app.select_slider(key="scenario_slide_batch").set_value(8)
    settled(app.run())
    assert dict(app.query_params) == {"v": "1", "b": "8"}
    app.query_params.clear()
    settled(app.run())
    assert scenario(app).batch == 1


def test_the_link_to_copy_names_the_scenario_and_keeps_other_settings(open_app: Open) -> None:
    app = open_app("planner", b="8", v="1", lab_tokens="7")
    app.session_state["scenario_link"] = True
    settled(app.run())
    assert "lab_tokens=7&v=1&b=8" in app.code[0].value


# What a visitor brings


def take_model(app: AppTest, name: str, text: str) -> AppTest:
    app.text_input(key="scenario_model_name_0").set_value(name)
    app.text_area(key="scenario_model_text_0").set_value(text)
    return settled(app.button(key="scenario_model_use").click().run())


def test_a_pasted_config_becomes_a_model_that_is_used(open_app: Open) -> None:
    app = take_model(opened(open_app, "Own model"), "mine", json.dumps(CONFIG))
    assert scenario(app).model == "own:mine"
    assert app.selectbox(key="scenario_model").value == "own:mine"
    assert not app.error
    app.session_state["scenario_link"] = True
    settled(app.run())
    assert any("send the saved file too" in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("mine", "", "A config must be JSON"),
        ("mine", "{", "A config must be JSON"),
        ("mine", "[]", "A config must be a JSON object"),
        ("", json.dumps(CONFIG), "must have a name"),
        ("mine", json.dumps({**CONFIG, "hidden_size": -1}), "hidden_size"),
        ("mine", "[" * 100_000, "nested"),
    ],
)
def test_a_config_that_cannot_be_counted_is_one_sentence(
    open_app: Open, name: str, text: str, sentence: str
) -> None:
    app = take_model(opened(open_app, "Own model"), name, text)
    assert len(app.error) == 1
    assert sentence in app.error[0].value.replace("\\", "")
    assert scenario(app).model == Scenario().model


def test_a_config_file_of_five_megabytes_is_refused_by_its_size(open_app: Open) -> None:
    app = opened(open_app, "Own model")
    app.text_input(key="scenario_model_name_0").set_value("mine")
    app.file_uploader(key="scenario_model_file_0").upload("config.json", b" " * 5_000_000, "application/json")
    settled(app.run())
    settled(app.button(key="scenario_model_use").click().run())
    assert "up to 1,000,000 characters" in app.error[0].value
    assert scenario(app).model == Scenario().model


def test_a_config_can_come_from_a_file(open_app: Open) -> None:
    app = opened(open_app, "Own model")
    app.text_input(key="scenario_model_name_0").set_value("mine")
    text = json.dumps(CONFIG).encode()
    app.file_uploader(key="scenario_model_file_0").upload("config.json", text, "application/json")
    settled(app.run())
    settled(app.button(key="scenario_model_use").click().run())
    assert scenario(app).model == "own:mine"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_config_is_looked_at_as_soon_as_it_is_there(open_app: Open, mark: str) -> None:
    app = opened(open_app, "Own model")
    app.text_area(key="scenario_model_text_0").set_value(mark + json.dumps(CONFIG))
    settled(app.run())
    assert "Type a name, then press Use this model." in app.success[0].value
    app.text_input(key="scenario_model_name_0").set_value("mine")
    settled(app.run())
    assert app.success[0].value.startswith("mine")
    assert "parameters" in app.success[0].value
    assert not app.error
    app.text_area(key="scenario_model_text_0").set_value("{}")
    settled(app.run())
    assert len(app.error) == 1
    assert not app.success
    assert scenario(app).model == Scenario().model


def test_a_file_with_a_byte_order_mark_is_read(open_app: Open) -> None:
    app = opened(open_app, "Own model")
    app.text_input(key="scenario_model_name_0").set_value("mine")
    text = json.dumps(CONFIG).encode("utf-8-sig")
    app.file_uploader(key="scenario_model_file_0").upload("config.json", text, "application/json")
    settled(app.run())
    settled(app.button(key="scenario_model_use").click().run())
    assert scenario(app).model == "own:mine"


def test_a_second_model_of_a_like_name_stands_beside_the_first(open_app: Open) -> None:
    app = take_model(opened(open_app, "Own model"), "a b", json.dumps(CONFIG))
    app.segmented_control(key="scenario_part").set_value("Own model")
    settled(app.run())
    app.text_input(key="scenario_model_name_1").set_value("a-b")
    app.text_area(key="scenario_model_text_1").set_value(json.dumps(CONFIG))
    settled(app.button(key="scenario_model_use").click().run())
    assert own(app).keys == ("own:a-b", "own:a-b-2")
    assert scenario(app).model == "own:a-b-2"


def test_a_hostile_name_is_only_a_name(open_app: Open) -> None:
    app = take_model(opened(open_app, "Own model"), HOSTILE, json.dumps(CONFIG))
    assert scenario(app).model.startswith("own:")
    assert "&lt;script&gt;" in app.html[0].value
    assert "<script" not in "".join(item.value for item in app.html)
    assert "<script" not in "".join(item.value.replace("\\<", "") for item in app.markdown)
    settled(app.button(key="planner_hold").click().run())
    assert "<script" not in "".join(item.value for item in app.html)


def test_a_typed_chip_is_used_and_what_is_not_believable_is_a_sentence(open_app: Open) -> None:
    app = opened(open_app, "Own chip")
    app.text_input(key="scenario_chip_name_0").set_value("mine")
    app.number_input(key="scenario_chip_memory_0").set_value(48.0)
    settled(app.button(key="scenario_chip_use").click().run())
    assert len(app.error) == 1
    app.number_input(key="scenario_chip_bandwidth_0").set_value(900.0)
    app.number_input(key="scenario_chip_bf16_0").set_value(200.0)
    settled(app.button(key="scenario_chip_use").click().run())
    assert scenario(app).accelerator == "own:mine"
    assert "of 48.0 GiB" in json.dumps([item.proto.json for item in app.get("bidi_component")])


def test_what_was_brought_can_be_saved_loaded_and_removed(open_app: Open) -> None:
    app = take_model(opened(open_app, "Own model"), "mine", json.dumps(CONFIG))
    app.segmented_control(key="scenario_part").set_value("Save and load")
    settled(app.run())
    assert load(own(app).to_json()).keys == ("own:mine",)
    settled(app.button(key="scenario_remove_own:mine").click().run())
    assert own(app).keys == ()
    assert scenario(app).model == Scenario().model
    assert "not known" not in words(app)


def test_a_file_of_another_kind_loses_nothing(open_app: Open) -> None:
    app = take_model(opened(open_app, "Own model"), "mine", json.dumps(CONFIG))
    app.segmented_control(key="scenario_part").set_value("Save and load")
    settled(app.run())
    app.file_uploader(key="scenario_own_load_1").upload("x.json", b'{"schema": "other"}', "application/json")
    settled(app.run())
    assert "cannot be used" in app.error[0].value
    assert own(app).keys == ("own:mine",)


def test_a_link_to_something_brought_works_for_the_one_who_brought_it(open_app: Open) -> None:
    app = take_model(opened(open_app, "Own model"), "mine", json.dumps(CONFIG))
    app.query_params["m"] = "own:mine"
    app.query_params["b"] = "2"
    settled(app.run())
    assert scenario(app).model == "own:mine"
    assert scenario(app).batch == 2
    assert not app.warning
