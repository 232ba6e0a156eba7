"""The small traces of the pages on serving, as requests to the engine and as steps of the simulator."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from core.errors import RequestError
from core.lab.serve_request import ServeRequest, Way
from core.lesson.amount import LessonCase
from core.simulate.batching import SimulatedStep
from core.simulate.trace import Trace

#: Lengths of eight answers by the name of their spread; each sums to the same.
ANSWERS: Final[dict[str, tuple[int, ...]]] = {
    "mixed": (3, 17, 5, 9, 2, 20, 4, 8),
    "all alike": (8, 9, 8, 9, 8, 9, 8, 9),
    "one long": (1, 2, 3, 40, 2, 4, 6, 10),
}
#: Tokens of each of their prompts, and of a step with chunked prefill.
PROMPT_TOKENS: Final = 12
CHUNK_TOKENS: Final = 16
_PAGE_TOKENS: Final = 16
#: The policies of the page, and how each is served.
WAYS: Final[dict[str, Way]] = {
    "static": Way("static"),
    "dynamic": Way("dynamic"),
    "continuous": Way("continuous"),
    "continuous, chunked": Way("continuous", step_tokens=CHUNK_TOKENS),
}

#: The trace of the page on pages: requests, means of prompt and answer, places, and slots of the cache.
REQUESTS: Final = 10
MEAN_TOKENS: Final = 20
PLACES: Final = 10
CACHE_TOKENS: Final = 320
_SEED: Final = 0


def answers_of(case: LessonCase) -> tuple[int, ...]:
    """The lengths of the answers: a setting "answers" with commas, else those of the setting "lengths".

    >>> from core.lesson.catalogue_case import catalogue_case
    >>> answers_of(catalogue_case({"answers": "3, 1", "lengths": "mixed"}))
    (3, 1)
    """
    given = str(case.settings.get("answers", ""))
    if given:
        return tuple(int(part) for part in given.split(","))
    return ANSWERS[case.word("lengths")]


def policy_request(case: LessonCase, *policies: str) -> ServeRequest:
    """The trace of the page on batching, served with each of these policies."""
    answers = answers_of(case)
    return ServeRequest(
        trace=Trace(
            requests=len(answers),
            prompt_tokens=PROMPT_TOKENS,
            answers=answers,
            spread="fixed",
            spacing=int(case.settings.get("spacing", 0)),
        ),
        ways=tuple(WAYS[policy] for policy in policies),
        places=int(case.number("seats")),
        page_tokens=_PAGE_TOKENS,
    )


def paging_request(case: LessonCase) -> ServeRequest:
    """The trace of the page on pages: in blocks, and in one piece, in the same memory."""
    return ServeRequest(
        trace=Trace(
            requests=REQUESTS,
            prompt_tokens=MEAN_TOKENS,
            answer_tokens=MEAN_TOKENS,
            spread="fixed" if case.word("spread") == "all alike" else "exponential",
            spacing=int(case.number("spacing")),
            shared_tokens=int(case.number("shared")),
            seed=_SEED,
        ),
        ways=(Way(cache="paged"), Way(cache="contiguous")),
        places=PLACES,
        page_tokens=int(case.word("block")),
        cache_tokens=CACHE_TOKENS,
    )


def simulated(request: ServeRequest, way: Way) -> tuple[SimulatedStep, ...]:
    """The simulator's steps; the same request is counted once.

    Raises:
        RequestError: a request does not fit the cache by itself.
    """
    return _simulated(request, way)


@lru_cache(maxsize=256)
def _simulated(request: ServeRequest, way: Way) -> tuple[SimulatedStep, ...]:
    steps = request.simulated(way)
    if not steps:
        raise RequestError("A trace must have one request or more; this one has none. Ask for some.")
    return tuple(steps)
