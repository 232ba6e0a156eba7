"""The numbers of page 19 against the arithmetic of plans: shares, sums, waiting, and more chips."""

import pytest

from core.analytic.kv_cache import bytes_per_token
from core.analytic.memory import footprint
from core.analytic.parallel import ParallelPlan, device_operators, stages
from core.analytic.plan import plan
from core.catalog.models import model
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.quantities.chip_plan import (
    chips_of_stages,
    degree_up_to,
    pipeline_speed_ups,
    plan_of,
    tensor_speed_ups,
    token_s,
)
from tests.lesson.diagnosed import is_diagnosed

LESSON = lessons()["parallelism"]
#: Plans of every kind, all of which divide their model.
PLANS: list[dict[str, str | int]] = [
    {},
    {"tp": 8, "count": 8},
    {"pp": 4, "count": 4, "batch": 8},
    {"tp": 4, "pp": 3, "count": 24, "batch": 5},
    {"model": "qwen3-235b-a22b", "tp": 4, "pp": 2, "ep": 4, "count": 8},
    {"model": "deepseek-v3", "tp": 8, "pp": 4, "ep": 8, "count": 32, "batch": 16},
]


def case(**values: str | int) -> LessonCase:
    return catalogue_case({**LESSON.base, **values})


def value(name: str, now: LessonCase) -> float:
    return LESSON.quantities[name](now).value


@pytest.mark.parametrize("values", PLANS)
def test_all_chips_together_hold_at_least_the_whole(values: dict[str, str | int]) -> None:
    now = case(**values)
    scenario = now.scenario
    context = scenario.input_tokens + scenario.output_tokens
    whole = footprint(
        now.model, now.machine, batch=scenario.batch, context=context, weights="bf16", kv="bf16"
    )
    rows = chips_of_stages(now)
    assert len(rows) == scenario.pp
    assert scenario.tp * sum(row.weights_bytes for row in rows) >= float(whole.weights_bytes) * (1 - 1e-9)
    assert scenario.tp * sum(row.kv_bytes for row in rows) >= float(whole.kv_bytes) * (1 - 1e-9)
    if (scenario.tp, scenario.pp) == (1, 1):
        assert rows[0].total_bytes == float(whole.total_bytes)


@pytest.mark.parametrize("values", PLANS)
def test_every_layer_lies_on_one_stage(values: dict[str, str | int]) -> None:
    now = case(**values)
    layers = [n for row in chips_of_stages(now) for n in range(row.first_layer, row.last_layer + 1)]
    assert layers == list(range(1, now.model.num_layers + 1))


@pytest.mark.parametrize("values", PLANS)
def test_a_stage_that_is_slowest_never_waits_while_the_batch_fills_the_pipeline(
    values: dict[str, str | int],
) -> None:
    now = case(**values)
    rows = chips_of_stages(now)
    shares = [row.idle_share for row in rows if row.idle_share is not None]
    assert len(shares) == len(rows)
    assert all(-1e-12 <= share < 1 for share in shares)
    if now.scenario.batch >= now.scenario.pp:
        assert min(shares) < 0.06


def test_one_sequence_leaves_all_stages_but_one_waiting() -> None:
    rows = chips_of_stages(case(pp=4, count=4))
    busy = [1 - (row.idle_share or 0.0) for row in rows]
    assert sum(busy) == pytest.approx(1)
    assert all((row.prefill_idle_share or 0.0) > 0.5 for row in rows)


def test_one_chip_is_the_plan_of_one_chip() -> None:
    now = case()
    alone = plan(now.scenario, now.model, now.machine)
    assert plan_of(now).plan.tpot_s == pytest.approx(alone.tpot_s)
    assert alone.decode is not None
    assert token_s(now, ParallelPlan()) == pytest.approx(alone.decode.time_s)


def test_experts_and_heads_are_divided() -> None:
    rows = chips_of_stages(case(model="deepseek-v3", tp=8, ep=32, count=32))
    assert [(row.experts, row.query_heads) for row in rows] == [(8, 16)]
    assert [row.experts for row in chips_of_stages(case())] == [None]


def test_a_plan_that_does_not_divide_has_no_chips_and_says_why() -> None:
    now = case(tp=3, count=3)
    assert chips_of_stages(now) == []
    assert plan_of(now).plan.violations
    assert plan_of(now).nearest


def test_a_latent_lies_whole_on_each_chip_and_kv_heads_do_not() -> None:
    (one,), (eight,) = (chips_of_stages(case(model="deepseek-v3", tp=tp, count=tp)) for tp in (1, 8))
    assert eight.kv_bytes == one.kv_bytes > bytes_per_token(model("deepseek-v3"), "bf16")
    (one,), (eight,) = (chips_of_stages(case(tp=tp, count=tp)) for tp in (1, 8))
    assert eight.kv_bytes == pytest.approx(one.kv_bytes / 8)


# --- More chips -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama-3.3-70b", "deepseek-v3", "qwen2.5-7b"])
def test_no_speed_up_is_above_the_number_of_chips(name: str) -> None:
    points = tensor_speed_ups(case(model=name))
    assert points[0].factor == points[0].efficiency == 1
    assert all(point.efficiency <= 1 + 1e-9 for point in points)
    efficiencies = [point.efficiency for point in points]
    assert efficiencies == sorted(efficiencies, reverse=True)


def test_chips_that_do_not_hold_the_model_are_told() -> None:
    points = tensor_speed_ups(case(model="llama-3.3-70b"))
    assert [point.fits for point in points] == [False, True, True, True]
    assert all(point.fits for point in tensor_speed_ups(case()))


def test_stages_bring_one_user_no_token_sooner() -> None:
    points = pipeline_speed_ups(case())
    assert [point.chips for point in points] == [1, 2, 4, 8]
    assert all(point.factor <= 1 for point in points)
    assert value("pipeline_speed_up", case(pp=4)) < 1


def test_the_curve_ends_where_the_link_or_the_heads_do() -> None:
    assert [point.chips for point in tensor_speed_ups(case())] == [1, 2, 4, 8]
    assert [point.chips for point in tensor_speed_ups(case(model="qwen2.5-7b"))] == [1, 2, 4]
    assert degree_up_to(case(model="qwen2.5-7b"), 8) == 4
    assert [point.chips for point in tensor_speed_ups(case(accelerator="raspberry-pi-5"))] == [1]


@pytest.mark.parametrize("values", [{}, {"tp": 2, "count": 2}, {"model": "qwen3-32b", "batch": 7, "tp": 4}])
def test_the_traffic_of_the_layers_is_the_operator_tables(values: dict[str, str | int]) -> None:
    now = case(**values)
    split = ParallelPlan(tp=round(value("degree", now)))
    table = device_operators(
        now.model,
        split,
        stages(now.model, split)[0],
        batch=now.scenario.batch,
        new_tokens=1,
        context=2048,
        weights="bf16",
        kv="bf16",
    )
    sums = [row for row, name in enumerate(table.names) if name in {"attention_all_reduce", "mlp_all_reduce"}]
    sent = sum(float(table.link_bytes[row]) for row in sums)
    assert value("layer_traffic", now) * 1e3 == pytest.approx(sent)
    assert value("reduces", now) == sum(table.repeats[row] for row in sums)


def test_the_idle_share_of_a_prefill() -> None:
    assert value("bubble", case(pp=4, micro=4)) == pytest.approx(100 * 3 / 7)
    assert value("bubble", case(pp=4, micro=16)) == pytest.approx(100 * 3 / 19)
    now = case(model="llama-2-70b", pp=4, count=4, batch=4)
    waits = [row.prefill_idle_share or 0.0 for row in chips_of_stages(now)]
    assert sum(waits) / 4 == pytest.approx(value("bubble", now) / 100, abs=0.01)


@pytest.mark.parametrize(
    ("exercise", "name", "says"),
    [
        (0, "bubble_by_work", "holds the waiting against the work"),
        (0, "bubble_of_one", "when the batch is not cut"),
        (0, "busy", "in which a stage works"),
        (1, "speed_up_as_share", "Divide it by the"),
        (1, "time_share", "part of the time that is left"),
    ],
)
def test_wrong_answers_are_diagnosed(exercise: int, name: str, says: str) -> None:
    is_diagnosed(LESSON, exercise, name, says)
