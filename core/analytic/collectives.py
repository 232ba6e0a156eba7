"""What chips send each other: the bytes of each collective on the wire, its steps, and its time.

Bytes are those that one chip sends, in one direction, so the bandwidth to divide by is one-way too:
a link sold as 900 GB/s moves 450 GB/s each way. The message is what the operator holds: the whole
tensor for an all-reduce, a reduce-scatter or a send, the gathered tensor for an all-gather, and
what one chip has to hand out (its own share included) for an all-to-all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import ScenarioError
from core.units import Number

CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]
Algorithm = Literal["ring", "one_shot"]

ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)


@dataclass(frozen=True, slots=True)
class Collective:
    """One exchange among ``ranks`` chips.

    Attributes:
        kind: what is exchanged. ranks: chips that take part.
        spread: chips from the first to the last of them, those between included; 0 is as many as take
            part. It tells whether they lie in one box.

    >>> Collective("all_reduce", 8).wire_bytes(33_554_432)
    58720256.0
    """

    kind: CollectiveKind
    ranks: int
    spread: int = 0

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ScenarioError(f"A collective needs one chip or more; got {self.ranks}. Give a count.")

    def wire_bytes(self, message_bytes: Number, algorithm: Algorithm = "ring") -> Number:
        """Bytes that each chip sends, one way.

        With N chips and a message of b bytes, a ring sends ``2 (N - 1) / N * b`` for an all-reduce
        and ``(N - 1) / N * b`` for a gather, a scatter or an all-to-all. One shot sends the whole
        message to every peer for an all-reduce, ``(N - 1) * b``, and as much as the ring elsewhere.
        A send moves ``b``. Among one chip nothing moves.
        """
        return message_bytes * self.wire_factor(algorithm)

    def wire_factor(self, algorithm: Algorithm = "ring") -> float:
        """Wire bytes of each byte of the message."""
        if self.ranks == 1:
            return 0.0
        if self.kind == "send":
            return 1.0
        share = (self.ranks - 1) / self.ranks
        if self.kind != "all_reduce":
            return share
        return 2 * share if algorithm == "ring" else float(self.ranks - 1)

    def steps(self, algorithm: Algorithm = "ring") -> int:
        """Messages that follow one another, each paying the link's latency.

        A ring takes ``N - 1`` of them, an all-reduce twice as many; one shot takes one.
        """
        if self.ranks == 1:
            return 0
        if self.kind == "send" or algorithm == "one_shot":
            return 1
        return (2 if self.kind == "all_reduce" else 1) * (self.ranks - 1)


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """What a chip's link does for a collective.

    Attributes:
        bytes_per_s: reached one way. latency_s: of one step. fixed_s: of one call, whatever its size.
    """

    bytes_per_s: float
    latency_s: float = 0.0
    fixed_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.bytes_per_s < np.inf:
            raise ScenarioError(
                f"A link's bandwidth must be above zero and finite; got {self.bytes_per_s} bytes/s. "
                "Give it one way, in bytes per second."
            )


def collective_s(
    collective: Collective, message_bytes: Number, link: LinkSpeed, algorithm: Algorithm
) -> NDArray[np.float64]:
    """Seconds of one collective: ``fixed + steps * latency + wire bytes / bandwidth``.

    Ignored: sums on the chip, other traffic on the link, and switches that add on the way (SHARP).

    >>> ring = collective_s(Collective("all_reduce", 8), 33_554_432, LinkSpeed(450e9), "ring")
    >>> round(float(ring) * 160 * 1e3, 3)   # 160 of them in one prefill of a 70B model
    20.878
    """
    message = np.asarray(message_bytes, np.float64)
    if collective.ranks == 1:
        return np.zeros_like(message)
    waited = link.fixed_s + collective.steps(algorithm) * link.latency_s
    return np.asarray(waited + collective.wire_bytes(message, algorithm) / link.bytes_per_s)


def fastest_s(collective: Collective, message_bytes: Number, link: LinkSpeed) -> NDArray[np.float64]:
    """Seconds with the better algorithm for each size, as libraries choose it: one shot for small ones.

    >>> link = LinkSpeed(450e9, latency_s=1e-6)
    >>> reduce = Collective("all_reduce", 8)
    >>> (fastest_s(reduce, 8192, link) < collective_s(reduce, 8192, link, "ring")).item()
    True
    """
    times = [collective_s(collective, message_bytes, link, algorithm) for algorithm in ALGORITHMS]
    return np.asarray(np.minimum(*times))
