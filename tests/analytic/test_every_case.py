"""No worked case, and no value of one, is left unasserted: a test that computes it has each in its table."""

from collections.abc import Iterator

from tests.analytic import test_bound_cases, test_cases, test_plan_cases, test_size_cases
from tests.catalog import test_config_cases
from tests.data_cases import case, cases


def asserted() -> Iterator[tuple[str, str]]:
    """Case and value: what the tables of the tests say that they compare."""
    for one in test_config_cases.CASES:
        yield from ((one["id"], name) for name in one["expected"] if name in test_config_cases.ANSWERS)
    for one in test_cases.CASES:
        yield from ((one["id"], name) for name in one["expected"])
    for table in (test_bound_cases.ANSWERS, test_plan_cases.ANSWERS, test_size_cases.ANSWERS):
        yield from ((key, name) for key in table for name in case(key)["expected"])
    yield from (("validate-zero-negative-nan", name) for name in ("all_rejected",))


def test_every_value_of_every_case_is_asserted() -> None:
    stated = {(one["id"], name) for one in cases() for name in one["expected"]}
    assert stated == set(asserted())


def test_the_cases_are_all_there_with_source_and_derivation() -> None:
    ids = [one["id"] for one in cases()]
    assert len(ids) == len(set(ids)) == 89
    assert all(one["source"].startswith("https://") and one["derivation"] for one in cases())
    assert all(one["tolerance"]["type"] in {"exact", "rel", "abs"} for one in cases())
