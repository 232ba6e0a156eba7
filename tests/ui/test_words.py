"""Every operator that the arithmetic or the engine can name has words on the page."""

from core.analytic.operators import operators
from core.catalog.models import catalogue
from core.ui.words import OPERATORS, operator_name


def test_every_operator_of_the_catalogue_has_words() -> None:
    for model in catalogue().values():
        table = operators(model, batch=1, new_tokens=1, context=1, weights="bf16", kv="bf16")
        assert set(table.names) <= set(OPERATORS)


def test_an_unknown_operator_keeps_its_name() -> None:
    assert operator_name("new_kind") == "new kind"
