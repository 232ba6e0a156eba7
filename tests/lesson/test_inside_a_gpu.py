"""The numbers of page 3: by hand, against the catalogue, and for every chip and model of it."""

import pytest

from core.analytic.params import count
from core.catalog.accelerators import accelerators, links
from core.catalog.assets import read_csv
from core.catalog.models import catalogue
from core.errors import ConfigError
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.parts import parts
from core.lesson.quantities import inside_a_gpu
from core.lesson.quantities.memory_levels import (
    DATA,
    HOST,
    L2,
    MEMORY,
    NEIGHBOUR,
    REGISTERS,
    SHARED,
    TITLES,
    data_bytes,
    level,
    levels,
)
from tests.lesson.diagnosed import is_wrong_by_a_factor


def test_the_running_chip_from_its_registers_to_its_host() -> None:
    case = catalogue_case({})
    assert [found.name for found in levels(case)] == list(TITLES)
    by_name = {found.name: found for found in levels(case)}
    assert by_name[REGISTERS].capacity_bytes == 132 * 65_536 * 4
    assert by_name[SHARED].bandwidth_bytes_per_s == pytest.approx(132 * 128 * 1755e6)
    assert by_name[L2].bandwidth_bytes_per_s == pytest.approx(5120 * 1755e6)
    assert by_name[MEMORY].bandwidth_bytes_per_s == 3.35e12
    assert by_name[NEIGHBOUR].bandwidth_bytes_per_s == 450e9
    assert by_name[HOST].bandwidth_bytes_per_s == 63e9


def test_reading_times_by_hand() -> None:
    case = catalogue_case({})
    assert inside_a_gpu.memory_time(case).value == pytest.approx(81_559 * 2**20 / 3.35e12 * 1e3)
    layer = 4096 * 6144 + 4096 * 4096 + 3 * 4096 * 14_336 + 2 * 4096
    assert inside_a_gpu.layer_parameters(case).value * 1e6 == layer
    assert inside_a_gpu.layer_time(case).value == pytest.approx(2 * layer / 3.35e12 * 1e3)
    assert inside_a_gpu.layer_time(case).text == "130 µs"
    assert inside_a_gpu.layers_in_cache(case).value == pytest.approx(50e6 / (2 * layer))
    assert inside_a_gpu.host_factor(case).value == pytest.approx(3350 / 63)
    assert inside_a_gpu.host_bandwidth(case).value == 126


def test_levels_get_slower_outwards_and_never_guess() -> None:
    for key in accelerators():
        found = levels(catalogue_case({"accelerator": key}))
        rates = [item.bandwidth_bytes_per_s for item in found if item.bandwidth_bytes_per_s is not None]
        assert rates == sorted(rates, reverse=True), key
        assert level(catalogue_case({"accelerator": key}), MEMORY) is not None


def test_data_is_the_models_own() -> None:
    case = catalogue_case({})
    matrix, layer, everything, cache = (data_bytes(case, data) for data in DATA)
    assert matrix == 2 * 28_672 * 4096
    assert layer == 2 * 218_112_000
    model = count(case.model)
    assert (
        everything == 2 * (model.attention + model.mlp + model.norms) - 2 * 4096
    )  # the last norm is outside
    assert cache == 2304 * 131_072


@pytest.mark.parametrize("model", list(catalogue()))
def test_every_model_can_be_read_or_a_sentence_says_why_not(model: str) -> None:
    case = catalogue_case({"model": model})
    for data in DATA[:3]:
        assert data_bytes(case, data) > 0
    try:
        assert data_bytes(case, "KV cache") > 0
    except ConfigError as gap:
        assert str(gap) == "This model keeps a state instead of a KV cache. Choose other data to read."
    assert inside_a_gpu.layer_time(case).value > 0


@pytest.mark.parametrize("key", list(accelerators()))
def test_every_chip_has_its_numbers_or_a_sentence(key: str) -> None:
    case = catalogue_case({"accelerator": key})
    for name, quantity in inside_a_gpu.QUANTITIES.items():
        try:
            assert quantity(case).value > 0, name
        except ConfigError as gap:
            assert str(gap).endswith(".")
    assert parts(lessons()["inside_a_gpu"], case)[0] == MEMORY


def test_a_chip_of_ones_own_has_its_memory() -> None:
    case = catalogue_case({})
    own = type(case.machine)(
        id="own:x", name="Mine", origin="data sheet", capacity_bytes=1e9, bandwidth_bytes_per_s=1e9,
        peak_flops_per_s={}, rates={}, step_fixed_s=0.0,
    )  # fmt: skip
    mine = type(case)(case.scenario, case.model, own)
    assert [found.name for found in levels(mine)] == [MEMORY]
    assert inside_a_gpu.memory_time(mine).text == "1.00 s"
    with pytest.raises(ConfigError, match="needs a chip of the catalogue, and Mine is not in it"):
        inside_a_gpu.cores(mine)


def test_facts_about_the_inside_have_their_source() -> None:
    for row in read_csv("chip_levels"):
        assert row["accelerator"] in accelerators()
        assert row["source"].startswith("https://")
        assert row["date"]
        assert row["unit"] != "text" or row["value"] in links()


@pytest.mark.parametrize(
    ("exercise", "factor", "says"),
    [
        ("layer_time", 8, "looks like bits"),
        ("layer_time", 1000, "check milli and kilo"),
        ("host_factor", 1 / 2, "count the link in one direction"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: str, factor: float, says: str) -> None:
    is_wrong_by_a_factor(lessons()["inside_a_gpu"], exercise, factor, says, seed=5)
