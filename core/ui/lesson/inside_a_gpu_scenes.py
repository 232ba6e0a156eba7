"""The pictures of "Inside a GPU" for a scene: its memories as a chain, and what reading from each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.memory_levels import data_bytes, levels
from core.ui.figures.memory_chain import memory_chain, piped_memory_chain
from core.ui.figures.read_times import read_times
from core.ui.lesson.one_token_scenes import marks
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _memory_chain(scene: Scene) -> Picture:
    draw = piped_memory_chain if scene.answered else memory_chain
    return draw(levels(scene.case), scene.case.word("level"))


def _read_times(scene: Scene) -> Picture:
    data = scene.case.word("data")
    read = data_bytes(scene.case, data)
    words = data[:1].upper() + data[1:]
    return read_times(levels(scene.case), read, words, scene.case.word("level"), marks(scene))


#: The pictures that lessons may name, and the functions that draw each.
PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "memory_chain": _memory_chain,
    "read_times": _read_times,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "memory_chain": (memory_chain, piped_memory_chain),
    "read_times": (read_times,),
}
