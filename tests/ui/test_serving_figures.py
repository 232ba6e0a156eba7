"""The pictures of pages 9 and 14: every seat and block is drawn where it is, and what is idle is hatched."""

import re
from html import unescape
from typing import Any

import pytest

from core.lab.serve_request import ServeRequest, Way
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.quantities import batching, paged_attention
from core.lesson.quantities.served_trace import WAYS, paging_request
from core.simulate.request_lanes import request_lanes
from core.simulate.seats import SeatPlan, Sitting
from core.simulate.trace import Trace
from core.simulate.waste import PageUse, Slots
from core.ui.figures.cache_over_time import CacheSize, CacheUsed, cache_over_time
from core.ui.figures.cache_waste import CacheUse, cache_waste
from core.ui.figures.mark_scale import Marks
from core.ui.figures.page_tables import CacheMoment, page_tables
from core.ui.figures.policy_steps import PolicySteps, policy_steps
from core.ui.figures.request_gantt import request_gantt
from core.ui.figures.requests import letter, style
from core.ui.figures.seat_plan import seat_plan
from core.ui.figures.time_axis import StepAxis, counted
from core.ui.lesson.serving_scenes import moment
from tests.ui.drawn import drawn_inside

MARKS = Marks(low=8, high=80, unit="", said=30.0, true=25.0, now=26.0)


def case(lesson: str, **values: Any) -> Any:
    return catalogue_case({**lessons()[lesson].base, "answers": "", **values})


@pytest.mark.parametrize("policy", WAYS)
@pytest.mark.parametrize("seats", [1, 4, 8])
@pytest.mark.parametrize("lengths", ["mixed", "one long"])
def test_every_seat_plan_is_drawn_inside(policy: str, seats: int, lengths: str) -> None:
    own = case("batching", policy=policy, seats=seats, lengths=lengths, spacing=seats % 3)
    drawn = seat_plan(batching.plan_of(own, policy), "A policy", "simulated")
    drawn_inside(drawn)
    assert len(drawn.rows) == len(batching.plan_of(own, policy).sittings)


def test_idle_seats_are_hatched_and_counted() -> None:
    plan = SeatPlan(2, 10, (Sitting(0, 0, 0, 9, "writes"), Sitting(1, 1, 3, 4, "reads")))
    drawn = seat_plan(plan, "A policy", "simulated")
    markup = drawn_inside(drawn)
    assert "seat 2: idle in steps 1 to 3" in markup
    assert "seat 2: idle in steps 6 to 10" in markup
    assert "B reads its prompt in steps 4 to 5" in markup
    assert drawn.legend[-1].value == "8 of 20"
    assert drawn.title == "A policy: 10 steps, 60 % of the seats used"
    full = seat_plan(SeatPlan(1, 10, (Sitting(0, 0, 0, 9, "writes"),)), "A policy", "simulated")
    assert "idle in" not in full.drawing.markup()


def test_requests_differ_by_letter_where_colours_repeat() -> None:
    assert len({letter(index) for index in range(64)}) == 64
    assert all(style(index) != style(index + 1) for index in range(63))


@pytest.mark.parametrize("block", ["1", "4", "8", "16", "32", "64"])
@pytest.mark.parametrize("shared", [0, 40])
def test_every_block_size_is_drawn_inside(block: str, shared: int) -> None:
    own = case("paged_attention", block=block, shared=shared)
    request = paging_request(own)
    for way in (paged_attention.PAGED, paged_attention.CONTIGUOUS):
        steps = paged_attention.steps_of(request, way)
        drawn_inside(page_tables(moment(steps, request, request.ways[way]), "simulated"))


def test_a_table_names_the_blocks_and_the_memory_shows_them_there() -> None:
    uses = (
        PageUse(2, 0, 1, 1, Slots(5, 3, 8)),
        PageUse(7, 0, 0, 2, Slots(16, 0, 0)),
    )
    shown = CacheMoment(3, 16, 9, uses, ((0, (7, 2)), (1, (7,))), {0: 21, 1: 16})
    drawn = page_tables(shown, "simulated")
    markup = unescape(drawn_inside(drawn))
    assert "A: its block 0 is physical block 7" in markup
    assert "block 2: A's block 1, 11 slots empty" in markup
    assert "block 7: A's block 0, 0 slots empty, held by 2" in markup
    assert drawn.rows == [("A", 1, 2, 5, 3, 8, 1), ("A", 0, 7, 16, 0, 0, 2)]
    assert [label.value for label in drawn.legend] == ["21 slots", "11 slots", "112 slots", ""]
    assert "2 requests hold 2 of 9 blocks" in drawn.alt


def test_waste_is_to_scale_and_carries_the_learners_mark() -> None:
    uses = [
        CacheUse("in one piece", Slots(30, 20, 50), 2.0, 68),
        CacheUse("in blocks", Slots(90, 5, 5), 3.0, 49),
    ]
    marks = Marks(low=5, high=95, unit="%", said=50.0, true=70.7, now=70.7)
    drawn = cache_waste(uses, marks)
    markup = drawn_inside(drawn)
    filled = [
        float(found) for found in re.findall(r'width="([\d.]+)" height="26.0"[^>]*class="fill-kv"', markup)
    ]
    assert filled[1] / filled[0] == pytest.approx(3.0, rel=0.01)
    assert "In blocks: 10 % of the held slots are empty" in drawn.alt
    assert "You said 50 %." in drawn.alt


def test_policies_stand_beside_each_other_with_the_chosen_one_named() -> None:
    policies = [
        PolicySteps("static", 37, 0.46, 9.5, 48, False),
        PolicySteps("continuous", 25, 0.68, 3.75, 48, True),
    ]
    drawn = policy_steps(policies, MARKS)
    markup = drawn_inside(drawn)
    assert "continuous, shown above" in markup
    assert "static, shown above" not in markup
    widths = [float(found) for found in re.findall(r'width="([\d.]+)" height="18.0"', markup)]
    assert widths[0] / widths[1] == pytest.approx(37 / 25, rel=0.01)
    assert "You said 30." in drawn.alt


def test_a_request_that_is_short_has_one_letter_for_reading_and_writing() -> None:
    short = (Sitting(0, 4, 20, 20, "reads"), Sitting(0, 4, 21, 21, "writes"))
    markup = seat_plan(SeatPlan(1, 40, (Sitting(0, 0, 0, 19, "writes"), *short)), "A", "simulated")
    assert drawn_inside(markup).count(">E</text>") == 1


@pytest.mark.parametrize("requests", [1, 8, 40])
@pytest.mark.parametrize("cache_tokens", [0, 128])
def test_every_gantt_is_drawn_inside_and_counts_what_was_lost(requests: int, cache_tokens: int) -> None:
    asked = ServeRequest(
        trace=Trace(requests=requests, spacing=2, prompt_tokens=12), cache_tokens=cache_tokens
    )
    steps = asked.simulated(Way())
    lanes = request_lanes(steps, asked.arrivals())
    lost = sum(step.num_preempted for step in steps)
    for axis in (counted(lanes.steps), StepAxis(tuple(0.7 * n for n in range(lanes.steps + 1)), "ms")):
        drawn = request_gantt(lanes, axis, "A way", "simulated", chosen=0)
        markup = drawn_inside(drawn)
        assert (f"{lost:,} ×" in drawn.markup()) == bool(lost)
        assert len(drawn.rows) == len(lanes.spans)
        assert ("see the numbers below" in markup) == (requests > 16)


def test_the_gantt_tells_reading_writing_and_waiting_apart_without_colour() -> None:
    asked = ServeRequest(trace=Trace(requests=2, prompt_tokens=4, answer_tokens=9, spread="fixed"), places=1)
    lanes = request_lanes(asked.simulated(Way()), asked.arrivals())
    markup = drawn_inside(request_gantt(lanes, counted(lanes.steps), "A way", "simulated"))
    high, low = (re.search(rf'height="([\d.]+)"[^>]*fill-{name}', markup) for name in ("prefill", "decode"))
    assert high
    assert low
    assert float(high[1]) > float(low[1])
    assert "B waits in steps 1 to 9" in markup


def test_the_cache_over_time_says_the_most_that_is_held() -> None:
    used = [CacheUsed(0, 2, 20, 1), CacheUsed(3, 5, 80, 0)]
    drawn = cache_over_time(used, CacheSize(8, 16, 2**20), counted(4), "simulated", chosen=3)
    markup = drawn_inside(drawn)
    assert drawn.title == "The cache over time: at most 5 of 8 blocks, 5.00 MiB"
    assert "step 4: 5 blocks held, 80 of 80 slots filled" in markup
    assert drawn.rows == [(1, 2, 6, 20, 1), (4, 5, 3, 80, 0)]
    assert "89% of the held slots" in drawn.alt
