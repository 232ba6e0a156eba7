"""What a visitor brings is checked, kept as text, saved and loaded whole, and missing from links."""

import doctest
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import core.catalog.custom as custom_module
from core.analytic.datasheet import machine_from
from core.analytic.plan import plan
from core.catalog import custom_chip, plain_text
from core.catalog.accelerators import accelerators
from core.catalog.custom import MOST_BYTES, MOST_ENTRIES, Own, load, own_key, pasted_model, typed_chip
from core.catalog.custom_chip import ChipSheet
from core.catalog.models import catalogue
from core.catalog.scenario import OWN_PREFIX, Scenario, decode, encode
from core.errors import ConfigError, RecordError, ScenarioError

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 512,
}
TEXT = json.dumps(CONFIG)
SHEET = ChipSheet("my card", "gddr", 24, 1008, {"bf16": 165, "fp16": 165})


@pytest.mark.parametrize("module", [custom_module, custom_chip, plain_text])
def test_examples_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_pasted_model_is_the_config_under_the_visitors_name() -> None:
    model = pasted_model("My model", TEXT)
    assert (model.spec.id, model.spec.name) == ("own:my-model", "My model")
    assert model.spec.layers[0].attention.num_kv_heads == 2


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (("a b", "a-b", "A B"), ("own:a-b", "own:a-b-2", "own:a-b-3")),
        (("\U0001f600", "\U0001f60e"), ("own:unnamed", "own:unnamed-2")),
        (("a b", "a b"), ("own:a-b",)),
    ],
)
def test_names_that_give_one_key_are_kept_beside_each_other(
    names: tuple[str, ...], keys: tuple[str, ...]
) -> None:
    own = Own()
    for name in names:
        own = own.with_model(pasted_model(name, TEXT)).with_chip(typed_chip(replace(SHEET, name=name)))
    assert tuple(own.models) == tuple(own.chips) == keys
    assert tuple(model.spec.id for model in own.models.values()) == keys
    assert tuple(chip.accelerator.id for chip in own.chips.values()) == keys
    assert [model.spec.name for model in own.models.values()] == list(dict.fromkeys(names))
    assert load(own.to_json()) == own


def test_a_byte_order_mark_is_no_part_of_a_config() -> None:
    assert pasted_model("m", "\ufeff" + TEXT) == pasted_model("m", TEXT)


def test_only_what_was_read_is_kept() -> None:
    model = pasted_model("m", json.dumps({**CONFIG, "junk": "x" * 10_000, "torch_dtype": "bfloat16"}))
    assert "junk" not in model.config
    assert set(CONFIG) <= set(model.config)


def test_a_config_of_five_megabytes_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="A config may have up to 1,000,000 characters"):
        pasted_model("m", "[" + " " * 5_000_000 + "]")


def test_a_config_whose_own_tables_are_huge_is_refused() -> None:
    text = json.dumps({**CONFIG, "quantization_config": {"quant_method": "x", "list": ["a" * 100] * 1000}})
    with pytest.raises(ConfigError, match=r"take up to 50\.0 kB; here they take 104 kB"):
        pasted_model("m", text)


@pytest.mark.parametrize("name", ["", "   ", "\x00\u200b\ud800"])
def test_a_model_needs_a_name_that_can_be_seen(name: str) -> None:
    with pytest.raises(ConfigError, match="must have a name"):
        pasted_model(name, TEXT)
    with pytest.raises(ScenarioError, match="must have a name"):
        typed_chip(ChipSheet(name, "hbm", 80, 3350, {"bf16": 989}))


def test_hostile_names_stay_text() -> None:
    name = "<script>alert(1)</script>\n\x07" + "a" * 500
    spec = pasted_model(name, TEXT).spec
    assert spec.name.startswith("<script>alert(1)</script> aaa")
    assert len(spec.name) == 60
    assert spec.id == "own:script-alert-1-script-" + "a" * 34


def test_notes_never_carry_what_cannot_be_printed() -> None:
    text = json.dumps({**CONFIG, "quantization_config": {"quant_method": "\ud800<b>x"}})
    (note,) = pasted_model("m", text).spec.notes
    note.encode()
    assert "<b>x" in note


@given(st.text(max_size=300))
def test_any_name_gives_a_printable_name_and_key(name: str) -> None:
    shown, key = custom_module.own_name(name), own_key(name)
    shown.encode()
    assert len(shown) <= 60
    assert custom_module.own_name(shown) == shown
    assert key.startswith(OWN_PREFIX)
    assert len(key) > len(OWN_PREFIX)


def test_a_typed_chip_plans_like_any_other() -> None:
    chip = typed_chip(SHEET).accelerator
    found = plan(Scenario(), catalogue()["llama-3.1-8b"], machine_from(chip))
    assert found.fits is True
    assert found.tpot_s is not None
    assert {fact.source for fact in chip.facts.values()} == {"typed in by you"}


def test_every_catalogue_chip_could_have_been_typed() -> None:
    for chip in accelerators().values():
        sheet = ChipSheet(
            chip.name,
            chip.kind,
            (chip.capacity_bytes or 24 * 2**30) / 2**30,
            chip.bandwidth_bytes_per_s / 1e9,
            {name: peak / 1e12 for name, peak in chip.peak_flops_per_s.items()},
        )
        made = typed_chip(sheet).accelerator
        assert made.bandwidth_bytes_per_s == pytest.approx(chip.bandwidth_bytes_per_s)
        assert made.peak_flops_per_s == pytest.approx(dict(chip.peak_flops_per_s))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"memory_gib": 0}, "The memory must be from 0.25 to 65,536 GiB; got 0."),
        ({"memory_gib": -8}, "got -8"),
        ({"memory_gib": math.nan}, "got nan"),
        ({"memory_gib": math.inf}, "got inf"),
        ({"memory_gib": 10**400}, "got a number of many digits"),
        ({"memory_gib": "24"}, "got a str"),
        ({"memory_gib": True}, "got a bool"),
        ({"bandwidth_gb_per_s": 1008e9}, "The memory bandwidth must be from 1 to 1,000,000 GB/s; got 1.008e"),
        ({"kind": "<b>"}, "The kind of chip must be one of hbm, gddr, amd, .*; got '<b>'"),
        ({"peak_tflop_per_s": {}}, "dense peak in one format or more; none is stated"),
        ({"peak_tflop_per_s": {"bf16": 0}}, "none is stated"),
        (
            {"peak_tflop_per_s": {"fp3": 1}},
            "A peak must be for one of fp32, fp16, bf16, fp8, int8, int4, fp4; got 'fp3'",
        ),
        ({"peak_tflop_per_s": {"bf16": [1]}}, "The bf16 peak must be .* got a list"),
        ({"peak_tflop_per_s": {"bf16": 5000}}, "these numbers give 4,960. Check the units"),
    ],
)
def test_a_number_that_cannot_be_is_a_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        typed_chip(ChipSheet(**{**SHEET.to_json(), **change}))


# --- Saved and loaded -----------------------------------------------------------------------------


def own() -> Own:
    return Own().with_model(pasted_model("<b>mine</b>", TEXT)).with_chip(typed_chip(SHEET))


def test_what_was_saved_is_what_is_loaded() -> None:
    assert load(own().to_json()) == own()
    assert load(own().to_json().encode()) == own()
    assert load(Own().to_json()) == Own()


def test_changes_make_new_records() -> None:
    first = own()
    assert first.without("own:my-card").keys == ("own:b-mine-b",)
    assert first.without("nothing") == first
    assert first.keys == ("own:b-mine-b", "own:my-card")


def test_one_name_is_one_entry_and_twenty_are_the_most() -> None:
    kept = own().with_model(pasted_model("<b>mine</b>", TEXT))
    assert len(kept.models) == 1
    for index in range(MOST_ENTRIES - 1):
        kept = kept.with_model(pasted_model(f"m{index}", TEXT)).with_chip(typed_chip(sheet(f"c{index}")))
    with pytest.raises(ConfigError, match="up to 20 models"):
        kept.with_model(pasted_model("one more", TEXT))
    with pytest.raises(ScenarioError, match="up to 20 chips"):
        kept.with_chip(typed_chip(sheet("one more")))


def sheet(name: str) -> ChipSheet:
    return ChipSheet(**{**SHEET.to_json(), "name": name})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must be whole JSON"),
        (own().to_json()[:-20], "must be whole JSON"),
        ("[]", "objects with named values; one is a list"),
        ("{}", "a file of models and chips that this app saved"),
        (own().to_json().replace('"version": 1', '"version": 2'), "must be of version 1; this one says '2'"),
        ("x" * (MOST_BYTES + 1), r"up to 200 kB; this one has 200 kB"),
        ("[" * 100_000, "must be whole JSON"),
        (own().to_json().replace('"hidden_size": 64', '"hidden_size": -1'), "hidden_size must be from 1 to"),
        (own().to_json().replace('"memory_gib": 24', '"memory_gib": NaN'), "The memory must be from"),
        (own().to_json().replace('"kind"', '"sort"'), "A chip must state its kind"),
        (own().to_json().replace('"gddr"', "[1]"), "name and kind must be text"),
        (own().to_json().replace('"chips": [', '"chips": 7, "x": ['), "chips must be a list of up to 20"),
    ],
)
def test_a_bad_file_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(RecordError, match=sentence) as caught:
        load(text)
    assert str(caught.value).endswith("Save it again from the app.")


@given(st.binary(max_size=200))
def test_no_file_breaks_the_app(raw: bytes) -> None:
    with pytest.raises(RecordError):
        load(raw)


# --- Links ----------------------------------------------------------------------------------------


def test_no_catalogue_key_looks_like_a_visitors_own() -> None:
    assert not [key for key in (*catalogue(), *accelerators()) if key.startswith(OWN_PREFIX)]


def test_a_link_that_needs_a_visitors_model_says_so() -> None:
    link = encode(Scenario(model="own:my-model", accelerator="own:my-card"))
    here = decode(link, [*catalogue(), "own:my-model"], [*accelerators(), "own:my-card"])
    assert (here.scenario.model, here.notes) == ("own:my-model", ())
    away = decode(link, list(catalogue()), list(accelerators()))
    assert away.scenario == Scenario()
    assert away.notes[0] == (
        "The model 'own:my-model' was brought by the sender, and a link does not carry it, so llama-3.1-8b "
        "is used. Ask the sender for the saved file and load it here."
    )
    assert "accelerator 'own:my-card' was brought" in away.notes[1]
