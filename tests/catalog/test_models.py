"""The catalogue's shapes count exactly what their publishers say."""

import pytest

from core.analytic.params import count
from core.catalog.models import catalogue, model, published
from core.catalog.scenario import Scenario
from core.errors import ConfigError


@pytest.mark.parametrize("id", list(catalogue()))
def test_the_count_is_the_published_one(id: str) -> None:
    stated = published(id)
    assert count(model(id)).total + stated.extra_parameters == stated.parameters
    assert bool(stated.extra) == bool(stated.extra_parameters)


@pytest.mark.parametrize("id", list(catalogue()))
def test_every_model_names_its_sources(id: str) -> None:
    assert model(id).source.startswith("https://")
    assert published(id).source.startswith("https://")


def test_the_scenarios_default_is_in_the_catalogue() -> None:
    assert Scenario().model in catalogue()


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"must be one of smollm2-135m, .*; got 'gpt-5'"):
        model("gpt-5")
