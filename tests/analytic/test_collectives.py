"""Bytes on the wire are those that chips passing real pieces would send."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.collectives import (
    ALGORITHMS,
    Collective,
    CollectiveKind,
    LinkSpeed,
    collective_s,
    fastest_s,
)
from core.errors import ScenarioError

ranks = st.integers(2, 9)
kinds = st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"])


@given(ranks)
def test_a_ring_passes_as_many_pieces_as_it_says(chips: int) -> None:
    """Run the ring: each chip holds a vector of one piece a chip; count what chip 0 sends."""
    held = np.random.default_rng(chips).integers(0, 9, (chips, chips))
    whole = held.sum(axis=0)
    sent = steps = 0
    for phase in ("scatter", "gather"):
        for step in range(chips - 1):
            before = held.copy()
            for chip in range(chips):
                piece = (chip - step + (phase == "gather")) % chips
                after = (chip + 1) % chips
                arriving = before[chip, piece]
                held[after, piece] = arriving + before[after, piece] if phase == "scatter" else arriving
                sent += chip == 0
            steps += 1
    assert (held == whole).all()
    reduce = Collective("all_reduce", chips)
    assert reduce.steps("ring") == steps
    assert reduce.wire_bytes(chips * 8.0) == pytest.approx(sent * 8)


@given(kinds, ranks, st.floats(1, 1e9))
def test_nothing_is_free_and_more_bytes_take_longer(kind: CollectiveKind, chips: int, size: float) -> None:
    link = LinkSpeed(1e9, latency_s=1e-6, fixed_s=5e-6)
    collective = Collective(kind, chips)
    small, large = fastest_s(collective, np.array([size, 2 * size]), link)
    assert 0 < small < large
    for algorithm in ALGORITHMS:
        assert small <= collective_s(collective, size, link, algorithm)
        assert small >= collective.wire_bytes(size, "ring") / link.bytes_per_s


@given(ranks, st.floats(1, 1e9))
def test_a_reduce_is_a_scatter_and_a_gather(chips: int, size: float) -> None:
    parts = [Collective(kind, chips).wire_bytes(size) for kind in ("reduce_scatter", "all_gather")]
    assert Collective("all_reduce", chips).wire_bytes(size) == pytest.approx(sum(parts))


@given(kinds, st.floats(1, 1e9))
def test_one_chip_sends_nothing(kind: CollectiveKind, size: float) -> None:
    alone = Collective(kind, 1)
    assert alone.wire_bytes(size) == 0
    assert fastest_s(alone, size, LinkSpeed(1e9, latency_s=1.0, fixed_s=1.0)) == 0


def test_small_messages_go_in_one_shot_and_large_ones_round_the_ring() -> None:
    reduce, link = Collective("all_reduce", 8), LinkSpeed(450e9, latency_s=1e-6)
    size = np.array([1024.0, 1e9])
    one_shot, ring = (collective_s(reduce, size, link, algorithm) for algorithm in ("one_shot", "ring"))
    assert (one_shot < ring).tolist() == [True, False]
    assert fastest_s(reduce, size, link).tolist() == [one_shot[0], ring[1]]


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_link_is_a_sentence(bandwidth: float) -> None:
    with pytest.raises(ScenarioError, match="bandwidth must be above zero and finite"):
        LinkSpeed(bandwidth)


def test_no_chips_is_a_sentence() -> None:
    with pytest.raises(ScenarioError, match="needs one chip or more; got 0"):
        Collective("send", 0)
