"""Requests followed through the steps: every step of each is told once, and lost pages are seen."""

from hypothesis import given
from hypothesis import strategies as st

from core.analytic.batching_policy import POLICIES
from core.simulate.batching import Arrival, Batching, simulate
from core.simulate.request_lanes import request_lanes

traces = st.lists(
    st.builds(Arrival, st.integers(1, 9), st.integers(1, 9), st.integers(0, 12)), min_size=1, max_size=8
)


@given(traces, st.sampled_from(list(POLICIES)), st.integers(5, 12), st.integers(1, 4))
def test_a_lane_goes_from_the_arrival_to_the_last_token_without_a_hole(
    trace: list[Arrival], policy: str, num_pages: int, places: int
) -> None:
    steps = simulate(trace, Batching(num_pages, 4, POLICIES[policy], places))
    lanes = request_lanes(steps, trace)
    for request, arrival in enumerate(trace):
        mine = [span for span in lanes.spans if span.request == request]
        told = [now for span in mine for now in range(span.first, span.last + 1)]
        ran = [step.now for step in steps if request in step.requests]
        assert told == list(range(arrival.step, ran[-1] + 1))
        busy = [n for span in mine if span.doing != "waits" for n in range(span.first, span.last + 1)]
        assert busy == ran
    assert len(lanes.lost) == sum(step.num_preempted for step in steps)


def test_pages_that_were_lost_are_marked_where_it_happened() -> None:
    trace = [Arrival(4, 8), Arrival(4, 8)]
    lanes = request_lanes(steps := simulate(trace, Batching(3, 4)), trace)
    (when,) = [step.now for step in steps if step.num_preempted]
    assert lanes.lost == ((1, when),)
    assert [span.doing for span in lanes.spans if span.request == 1].count("reads") == 2


def test_nothing_served_is_no_lane() -> None:
    assert request_lanes([], []).spans == ()
