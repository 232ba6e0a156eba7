"""What the search page finds, keeps and says; and its part of a link."""

import doctest
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from core.analytic.cost import HourlyPrice
from core.analytic.parallel import ParallelPlan
from core.analytic.search.candidates import search
from core.analytic.search.ranking import ranked
from core.analytic.search.request import USUAL_PLANS, Wanted
from core.catalog.accelerators import accelerator, accelerators
from core.catalog.custom_chip import ChipSheet, make_chip
from core.catalog.feed_forward import DenseMLP
from core.catalog.model import ModelSpec
from core.catalog.models import model
from core.catalog.scenario import LIMITS, Scenario
from core.errors import ScenarioError
from core.ui.find import answer as answers
from core.ui.find import choices, link, offers, words
from core.ui.find.answer import Question, find
from core.ui.find.link import Asked, read, written

CHIPS = tuple(accelerator(key) for key in ("h100-sxm-80gb", "l4", "t4", "rubin-announced", "b200-sxm"))
WANTED = Wanted(ttft_s=1.0, tpot_s=0.05)
QUESTION = Question(model("llama-3.1-8b"), WANTED, "bf16", "bf16", CHIPS)


def said(question: Question) -> str:
    return words.sentence(find(question), question.wanted, question.model.name)


def test_examples_hold() -> None:
    for module in (choices, link, words, answers):
        assert doctest.testmod(module).failed == 0


def test_both_groups_of_chips_are_one_answer() -> None:
    found = find(QUESTION)
    names = {one.chip.id for one in found.of_each_chip}
    assert names == {"h100-sxm-80gb", "t4", "b200-sxm"}  # the L4 has no price, and Rubin is announced
    assert "l4" in {one.chip.id for one in found.best["latency"]}
    parts = [
        search(QUESTION.model, WANTED, among)
        for among in choices.groups(QUESTION.model, CHIPS, ("bf16", "bf16"))
    ]
    assert len(parts) == 2
    assert found.size == sum(part.size for part in parts)
    assert found.good == sum(int(part.good.sum()) for part in parts) > 0
    cheapest = min((ranked(part)[0] for part in parts), key=lambda one: one.usd_per_million or math.inf)
    assert found.best["cost"][0] == cheapest
    older = next(one for one in found.of_each_chip if one.chip.id == "t4")
    assert (older.weights, older.cache) == ("fp16", "fp16")


def test_the_front_is_dearer_and_faster_at_every_step() -> None:
    front = find(QUESTION).front
    assert len(front) > 2
    for cheap, fast in pairwise(front):
        assert cheap.tpot_s > fast.tpot_s
        assert (cheap.usd_per_million or 0) <= (fast.usd_per_million or 0)
    assert front[0].usd_per_million == find(QUESTION).best["cost"][0].usd_per_million
    assert front[-1].tpot_s <= min(one.tpot_s for one in find(QUESTION).of_each_chip)


def test_an_equal_question_is_remembered_and_another_is_not() -> None:
    assert find(replace(QUESTION)) is find(QUESTION)
    chip = replace(CHIPS[0], bandwidth_bytes_per_s=1e12)
    other = find(replace(QUESTION, chips=(chip, *CHIPS[1:])))
    assert other is not find(QUESTION)
    assert other.best["latency"] != find(QUESTION).best["latency"]


def test_a_typed_price_replaces_the_lists() -> None:
    found = find(replace(QUESTION, prices=(("l4", HourlyPrice(0.001)),)))
    assert found.best["cost"][0].chip.id == "l4"


def test_the_scenarios_own_formats_take_part() -> None:
    newer = choices.groups(QUESTION.model, CHIPS, ("nvfp4", "int8"))[0]
    assert newer.weights[-1] == "nvfp4"
    assert newer.caches[-1] == "int8"
    assert choices.groups(QUESTION.model, CHIPS, ("no such", "fp8"))[0].weights == choices.WEIGHTS


def test_experts_get_a_plan_of_their_own_and_large_models_several_servers() -> None:
    every = accelerators().values()
    assert ParallelPlan(tp=8, ep=8) in choices.plans_for(model("mixtral-8x7b-v0.1"), every)
    assert ParallelPlan(tp=8, ep=8) not in choices.plans_for(model("llama-3.3-70b"), every)
    assert choices.plans_for(model("deepseek-v3"), every)[-1].chips == 32
    assert choices.plans_for(model("deepseek-v3"), [accelerator("t4")])[-1].chips == 32


def uneven(kinds: int) -> ModelSpec:
    """A model whose layers are all different."""
    spec = model("llama-3.1-8b")
    layer = spec.layers[0]
    assert isinstance(layer.feed_forward, DenseMLP)
    sizes = range(1024, 1024 + 128 * kinds, 128)
    layers = tuple(
        replace(layer, feed_forward=replace(layer.feed_forward, intermediate_size=size)) for size in sizes
    )
    return replace(spec, id=f"own:{kinds}", layers=layers)


def test_many_different_layers_narrow_the_search_and_too_many_are_refused() -> None:
    assert not choices.is_narrow(uneven(8))
    (narrow,) = choices.groups(uneven(9), CHIPS, ("int8", "fp8_e4m3"))
    assert (narrow.weights, narrow.caches) == (("int8",), ("fp8_e4m3",))
    assert len(narrow.plans) == len(USUAL_PLANS)
    (narrower,) = choices.groups(uneven(65), CHIPS, ("int8", "fp8_e4m3"))
    assert [plan.tp for plan in narrower.plans] == [1, 2, 4, 8]
    with pytest.raises(ScenarioError, match=r"up to 192 different kinds of layers; .* has 193"):
        find(replace(QUESTION, model=uneven(193)))


# Words


def test_it_says_how_many_do_what_is_asked() -> None:
    found = find(QUESTION)
    assert said(QUESTION) == f"{found.good:,} of {found.size:,} candidates do what is asked."


def test_too_slow_says_which_limit_and_what_would_do() -> None:
    tight = replace(QUESTION, wanted=replace(WANTED, tpot_s=1e-4))
    text = said(tight)
    assert "take too long for a token after the first; allow more than" in text
    assert "for the first token" not in text.partition("allow")[2]
    best = find(QUESTION).closest.tpot_in_time_s
    assert best is not None
    assert find(replace(tight, wanted=replace(WANTED, tpot_s=best))).good > 0


def test_too_late_says_so_and_both_say_both() -> None:
    late = said(replace(QUESTION, wanted=Wanted(ttft_s=1e-4)))
    assert "give the first token too late; allow more than" in late
    assert "each token after it" not in late.partition("allow")[2]
    both = said(replace(QUESTION, wanted=Wanted(ttft_s=1e-4, tpot_s=1e-5)))
    assert "for the first token and more than" in both


def test_limits_that_only_clash_together_name_what_gives() -> None:
    computes = make_chip(ChipSheet("computes", "hbm", 80, 1000, {"bf16": 1000}), "own:computes")
    reads = make_chip(ChipSheet("reads", "hbm", 80, 8000, {"bf16": 50}), "own:reads")
    two = replace(QUESTION, chips=(computes, reads), wanted=Wanted())
    near = find(two).closest
    assert near.ttft_s is not None
    assert near.tpot_s is not None
    clash = replace(two, wanted=Wanted(ttft_s=near.ttft_s, tpot_s=near.tpot_s))
    assert find(clash).good == 0
    assert "for each token after it, or choose" in said(clash)
    assert "for the first token and" not in said(clash)


def test_a_model_that_nothing_holds() -> None:
    small = replace(QUESTION, model=model("kimi-k3"), chips=(accelerator("t4"), accelerator("l4")))
    assert "does not fit, and the nearest needs" in said(small)
    assert find(small).closest.fitting == 0


def test_a_part_that_no_chip_computes() -> None:
    only_fp32 = make_chip(ChipSheet("mine", "cpu", 64, 100, {"fp32": 2}), "own:mine")
    text = said(replace(QUESTION, chips=(only_fp32,)))
    assert "a part or a format that no chip here computes" in text


def test_memory_that_nobody_published() -> None:
    text = said(replace(QUESTION, chips=(replace(CHIPS[0], capacity_bytes=None),)))
    assert "nobody has published the usable memory" in text


def test_no_chip_at_all_is_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="needs one chip that is on sale"):
        find(replace(QUESTION, chips=(accelerator("rubin-announced"),)))


def test_reasons_name_the_announced_chips() -> None:
    found = dict(words.reasons(find(QUESTION), CHIPS))
    assert found["announced chips, not on sale (chips)"] == 1
    assert found["tokens too slow"] > 0
    assert 0 not in found.values()


# The link, and the way to the planner


@pytest.mark.parametrize(
    "asked",
    [Asked(), Asked(None, None, 2.5, "latency"), Asked(0.1 + 1, 33.3, 100_000.0, "memory")],
)
def test_what_a_link_says_comes_back(asked: Asked) -> None:
    assert read(written(asked)) == (asked, ())


@pytest.mark.parametrize(
    ("params", "sentence", "asked"),
    [
        ({"ttft": "0"}, "must be from 1 to 3,600,000; the link says '0', so 1 is used.", Asked(1.0)),
        ({"tpot": "1e999"}, "so 600,000 is used", Asked(tpot_ms=600_000.0)),
        ({"tpot": "-5"}, "so 0.01 is used", Asked(tpot_ms=0.01)),
        ({"rate": "nan"}, "must be a number; the link says 'nan', so none is used", Asked()),
        ({"rate": "9" * 5000}, "must be a number", Asked()),
        ({"ttft": "<b>"}, "the link says '<b>', so 1,000 is used", Asked()),
        ({"by": "luck"}, "must be ranked by one of cost, memory, latency", Asked()),
    ],
)
def test_a_hostile_value_is_a_sentence(params: dict[str, str], sentence: str, asked: Asked) -> None:
    found, notes = read(params)
    assert found == asked
    assert len(notes) == 1
    assert sentence in notes[0]
    assert len(notes[0]) < 200


def test_a_found_deployment_is_a_scenario_within_its_limits() -> None:
    one = replace(
        find(QUESTION).best["cost"][0], plan=ParallelPlan(tp=4, pp=2), replicas=3, chips=24, batch=16
    )
    now = offers.scenario_of(Scenario(input_tokens=99), one)
    assert (now.tp, now.pp, now.ep, now.count, now.batch) == (4, 2, 1, 24, 16)
    assert (now.accelerator, now.weights, now.kv) == (one.chip.id, one.weights, one.cache)
    assert now.input_tokens == 99
    many = offers.scenario_of(Scenario(), replace(one, replicas=10_000, chips=80_000))
    assert many.count == LIMITS["count"][1]
