"""Two answers from one text: they share what they have in common and are each as if alone."""

import pytest

from core.engine.engine import Engine
from core.engine.records import Request
from core.engine.sampling import GREEDY, Sampling
from core.engine.scheduler import Serving
from core.errors import RequestError
from tests.engine.forward import random_ids
from tests.engine.small import small_engine

pytestmark = pytest.mark.torch

PROMPT = random_ids(10)
WARM = Sampling(temperature=1.0, top_k=50, seed=8)


def forked(engine: Engine, page_tokens: int, other: Sampling) -> tuple[list[int], list[int], list[int]]:
    """The answer, the fork's, and the pages held step by step; the fork begins after three tokens."""
    server = engine.server(Serving(max_sequences=2), 10 + 12)
    run = server.submit(Request(PROMPT, 12))
    for _ in range(3):
        server.step()
    fork = server.fork(run, other)
    while not server.is_done:
        server.step()
    server.close()
    assert engine.page_tokens == page_tokens
    return run.finish().token_ids, fork.finish().token_ids, [step.pages_used for step in server.steps]


@pytest.mark.parametrize("page_tokens", [1, 4, 16])
def test_a_fork_goes_on_as_if_it_had_been_alone(page_tokens: int) -> None:
    engine = small_engine("paged", page_tokens=page_tokens)
    alone = small_engine().generate(PROMPT, GREEDY, max_tokens=12).token_ids
    first, second, _ = forked(engine, page_tokens, WARM)
    assert first == alone
    rest = small_engine().generate([*PROMPT, *alone[:3]], WARM, max_tokens=9)
    assert second == alone[:3] + rest.token_ids
    assert second != first


def test_only_the_page_that_both_write_is_copied() -> None:
    _, _, pages = forked(small_engine("paged", page_tokens=4), 4, WARM)
    # The 12 cached tokens fill 3 pages, which stay shared; each has pages of its own for what follows.
    assert pages == [3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7, 9]
    # Here they lie in a page that is not full: one of the two goes on in a copy.
    _, _, pages = forked(small_engine("paged", page_tokens=16), 16, WARM)
    assert pages == [1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4]


def test_a_fork_needs_a_place_and_an_answer_to_fork() -> None:
    server = small_engine("paged").server(Serving(max_sequences=1), 20)
    run = server.submit(Request(PROMPT, 5))
    with pytest.raises(RequestError, match="forked while it writes; this one does not"):
        server.fork(run, GREEDY)
    server.step()
    with pytest.raises(RequestError, match="all 1 are taken"):
        server.fork(run, GREEDY)
    server.close()
    assert run.finish().stop_reason == "stopped"
