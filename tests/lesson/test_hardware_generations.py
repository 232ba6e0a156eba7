"""The numbers of page 21 against the data sheets' arithmetic, and the catalogue's rows."""

import doctest

import pytest

from core.catalog.accelerators import COMPUTE_FORMATS, accelerators
from core.errors import FormatError
from core.lesson import option_name as option_module
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.exercise import draw
from core.lesson.lesson_file import lessons
from core.lesson.quantities import chip_catalogue
from core.lesson.quantities.chip_catalogue import CLASSES, COLUMNS, chip_row, chip_rows, generations
from core.lesson.quantities.chip_pair import SCENARIO_CHIP
from core.lesson.quantities.sheet_growth import sheet_growth
from core.lesson.quantities.workload_gain import WORKLOADS, YOURS, gains

LESSON = lessons()["hardware_generations"]


def case(**values: str | int) -> LessonCase:
    return catalogue_case({**LESSON.base, **values})


def value(name: str, now: LessonCase) -> float:
    return LESSON.quantities[name](now).value


def test_examples_hold() -> None:
    for module in (chip_catalogue, option_module):
        found = doctest.testmod(module)
        assert (found.attempted > 0, found.failed) == (True, 0)


def test_factors_are_the_sheets_numbers_divided() -> None:
    now = case()
    assert value("compute_factor", now) == pytest.approx(2250 / 312)
    assert value("bandwidth_factor", now) == pytest.approx(7.7 / 2.039)
    assert value("memory_factor", now) == pytest.approx(180 / 80)
    assert value("later_ridge", now) == pytest.approx(2250 / 7.7)
    assert value("compute_factor_with_sparsity", now) == pytest.approx(4500 / 312)
    assert value("later_link", now) == pytest.approx(900)
    assert value("copy_time", now) == pytest.approx(1e3 * 16.060522496 / 900)


def test_numbers_of_fewer_bits_take_their_own_peaks() -> None:
    assert value("later_peak", case(precision="4 bits")) == pytest.approx(9000)
    assert value("earlier_peak", case(precision="8 bits")) == pytest.approx(624)
    with pytest.raises(FormatError, match="H100 SXM5 80GB must multiply numbers of 4 bits"):
        value("earlier_peak", case(earlier="h100-sxm-80gb", precision="4 bits"))


def test_the_scenarios_chip_can_be_the_later_one() -> None:
    now = case(later=SCENARIO_CHIP, accelerator="mi300x")
    assert value("later_bandwidth", now) == pytest.approx(5.3)


def test_lines_that_a_sheet_lacks_are_left_out() -> None:
    assert [line.name for line in sheet_growth(case())] == [
        "arithmetic, 16 bits", "memory bandwidth", "memory", "link, one direction", "power",
    ]  # fmt: skip
    few = sheet_growth(case(earlier="xeon-8480plus", later="apple-m4-max"))
    assert [line.name for line in few] == ["arithmetic, 16 bits", "memory bandwidth"]


def test_a_chat_gains_no_more_than_bandwidth_and_a_long_prompt_more() -> None:
    now = case()
    by_name = {gain.name: gain for gain in gains(now)}
    assert list(by_name) == [*WORKLOADS, YOURS]
    bandwidth, arithmetic = value("bandwidth_factor", now), value("compute_factor", now)
    assert by_name["one user chats"].factor <= bandwidth
    assert bandwidth < by_name["long prompts"].factor <= arithmetic
    assert by_name["long prompts"].prefill_share > 0.9
    assert by_name["one user chats"].prefill_share < 0.1
    assert all(gain.fits for gain in by_name.values())


def test_a_model_that_one_chip_cannot_hold_is_told() -> None:
    found = gains(case(model="llama-3.1-70b", later="h100-sxm-80gb"))
    assert [gain.fits for gain in found] == [False] * 4


@pytest.mark.parametrize(
    ("job", "order"),
    [
        ("one user chats", 231),
        ("one long prompt follows another", 231),
        ("as many conversations as possible are kept in memory", 321),
    ],
)
def test_three_chips_are_ordered_by_what_the_job_waits_for(job: str, order: int) -> None:
    now = case(job=job, first="l40s", second="h100-sxm-80gb", third="mi250x")
    assert value("order", now) == order


def test_every_trio_of_the_exercise_has_one_order() -> None:
    """No two chips tie in anything that an order is made of."""
    drawn = LESSON.exercises[0].parameters
    chips = [accelerators()[str(key)] for name in ("first", "second", "third") for key in drawn[name]]
    for first in chips:
        for second in chips:
            both = {first.id, second.id}
            apart = not any(both <= set(map(str, drawn[name])) for name in ("first", "second", "third"))
            if apart:
                assert first.bandwidth_bytes_per_s != second.bandwidth_bytes_per_s
                assert first.facts["memory"].value != second.facts["memory"].value
                assert first.peak_flops_per_s["bf16"] != second.peak_flops_per_s["bf16"]


@pytest.mark.parametrize(
    ("exercise", "factor", "says"),
    [
        (1, 2.0, "divides a sparse peak by a dense one"),
        (2, 0.5, "count the link in one direction"),
        (2, 1000.0, "check milli and kilo"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: int, factor: float, says: str) -> None:
    instance = draw(LESSON, LESSON.exercises[exercise], 5)
    verdict = instance.check(f"{factor * instance.answer.value:.6g}")
    assert not verdict.correct
    assert says in verdict.sentence


def test_the_order_by_arithmetic_is_named_where_another_is_right() -> None:
    for seed in range(60):
        instance = draw(LESSON, LESSON.exercises[0], seed)
        by_peak = value("order_by_peak", instance.case)
        if by_peak != instance.answer.value:
            assert "order by arithmetic" in instance.check(f"{by_peak:.0f}").sentence
            return
    raise AssertionError("no seed of sixty has another order by arithmetic")


# --- The catalogue --------------------------------------------------------------------------------


def test_every_class_of_the_catalogue_has_a_name() -> None:
    assert {chip.kind for chip in accelerators().values()} == set(CLASSES)
    assert len(chip_rows(CLASSES, "year")) == len(accelerators())


@pytest.mark.parametrize("column", COLUMNS)
def test_rows_are_sorted_and_unknown_ones_come_last(column: str) -> None:
    place = list(COLUMNS).index(column)
    values = [row.values[place] for row in chip_rows(CLASSES, column)]
    known = [v for v in values if v is not None]
    assert values == known + [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=column not in chip_catalogue.SMALL_IS_FIRST)


def test_announced_chips_are_marked() -> None:
    assert chip_row("rubin-announced").title.endswith("(announced)")
    assert "announced" not in chip_row("b200-sxm").title


def test_a_generation_has_the_formats_of_its_chips() -> None:
    found = {g.name: g for g in generations(["hbm"])}
    assert set(found["Volta"].peaks) == {"fp32", "fp16"}
    assert found["Hopper"].peaks["fp8"] == pytest.approx(1979)
    assert "fp4" not in found["Hopper"].peaks
    assert found["Blackwell"].peaks["fp4"] == 10_000
    assert found["Rubin"].announced
    assert not found["Blackwell"].announced
    assert found["Ampere"].title == "NVIDIA Ampere (2020 to 2021)"
    assert all(set(g.peaks) <= set(COMPUTE_FORMATS) for g in generations(CLASSES))
