"""Pages are made one after another, and one that fails lets the next go on."""

import threading
import time

import pytest

from core.ui.turns import in_turn


def test_two_pages_are_never_made_at_once() -> None:
    inside: list[int] = []
    most: list[int] = []

    @in_turn
    def draw() -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_a_page_that_fails_leaves_its_turn() -> None:
    @in_turn
    def fails() -> None:
        raise ValueError("no page")

    done: list[str] = []
    for _ in range(2):
        with pytest.raises(ValueError, match="no page"):
            fails()
    in_turn(lambda: done.append("drawn"))()
    assert done == ["drawn"]
