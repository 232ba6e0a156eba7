"""The catalogue's shapes count exactly what their publishers say."""

import doctest

import pytest

import core.catalog.models as models_module
from core.analytic.params import count
from core.catalog.hf_config import read_config
from core.catalog.models import catalogue, model, published, runnable_ids
from core.catalog.scenario import Scenario
from core.errors import ConfigError

EXACT = [key for key in catalogue() if published(key).parameters is not None]
#: Where the config does not explain a published total to the last parameter, with the reason in the table.
UNEXPLAINED = {"kimi-k2": 61 * 56}
#: Models whose publisher states no exact total, and those who state none at all.
ROUNDED = {
    "baichuan2-7b": 7.5e9,
    "command-r": 35e9,
    "dbrx": 132e9,
    "minicpm3-4b": 4.1e9,
    "mpt-7b": 6.6e9,
    "nemotron-h-56b": 56e9,
    "opt-6.7b": 6.7e9,
    "phi-3.5-moe": 42e9,
}
UNSTATED = {"deepseek-v4.1-flash", "kimi-k3", "step-3.7-flash"}


@pytest.mark.parametrize("id", EXACT)
def test_the_count_and_the_named_extras_are_the_published_total(id: str) -> None:
    stated, spec = published(id), model(id)
    sizes = {part.name: part.parameters for part in spec.extras}
    extras = sum(sizes[name] or 0 for name in stated.extras)
    assert count(spec).total + extras + UNEXPLAINED.get(id, 0) == stated.parameters
    assert stated.unexplained_parameters == UNEXPLAINED.get(id, 0)
    assert bool(stated.unexplained) == (id in UNEXPLAINED)


def test_only_one_total_is_not_explained() -> None:
    assert set(catalogue()) - set(EXACT) == {*ROUNDED, *UNSTATED}
    assert set(UNEXPLAINED) <= set(EXACT)
    assert len(EXACT) >= 66


@pytest.mark.parametrize(("id", "rounded"), ROUNDED.items())
def test_rounded_totals_round_to_what_the_publisher_says(id: str, rounded: float) -> None:
    assert count(model(id)).total == pytest.approx(rounded, rel=0.01)
    assert published(id).rounded.startswith("~")


@pytest.mark.parametrize(
    ("id", "active"),
    [  # as the publishers name them, the input table left out where they do
        ("deepseek-v3", 37.55e9),
        ("gpt-oss-20b", 3.6e9),
        ("qwen3-30b-a3b", 3.35e9),
        ("mixtral-8x7b-v0.1", 12.9e9),
        ("llama-4-scout-17b-16e", 17.2e9),
        ("kimi-k2", 32.9e9),
        ("dbrx", 36.5e9),
    ],
)
def test_active_parameters_are_those_of_the_publisher(id: str, active: float) -> None:
    counted = count(model(id))
    left_out = counted.embedding if id == "gpt-oss-20b" else 0
    assert counted.active - left_out == pytest.approx(active, rel=0.01)


@pytest.mark.parametrize("id", list(catalogue()))
def test_every_model_names_its_sources(id: str) -> None:
    assert model(id).source.startswith("https://")
    assert published(id).source.startswith("https://") == (id not in UNSTATED)


@pytest.mark.parametrize("id", list(catalogue()))
def test_every_catalogue_model_is_of_a_known_family(id: str) -> None:
    assert not any(note.startswith("The model type") for note in model(id).notes)


def test_the_catalogue_is_sorted_by_size() -> None:
    sizes = [count(spec).total for spec in catalogue().values()]
    assert sizes == sorted(sizes)


def test_the_scenarios_default_is_in_the_catalogue_and_runs() -> None:
    assert Scenario().model in catalogue()
    assert "smollm2-135m" in runnable_ids()


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"must be one of the \d+ known here; got 'gpt-5'\. Did you mean gpt2"
    ):
        model("gpt-5")


def test_examples_hold() -> None:
    assert doctest.testmod(models_module).failed == 0


def test_matrices_that_the_config_leaves_in_16_bits_have_no_scales() -> None:
    table = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    shape = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}
    config = {"model_type": "llama", **shape, "vocab_size": 100}

    def scales(**more: object) -> int | None:
        extras = read_config({**config, "quantization_config": {**table, **more}}).extras
        return next(part.parameters for part in extras if part.name == "fp8 block scales")

    assert scales() == 2 * (6 * 2 + 2 * 2 + 4 * 2 + 2 * 2)
    assert scales(ignored_layers=["model.layers.0.self_attn.o_proj"]) == 2 * (6 * 2 + 4 * 2 + 2 * 2)
