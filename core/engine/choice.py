"""Which kernel, and up to how many rows: decided by timing them on this machine, once.

Timings of a few milliseconds per shape; the answers are kept in the user's cache folder, under the
machine, the number of threads, the kernel and the shape.
"""

from __future__ import annotations

import bisect
import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from core.engine.clock import synchronise
from core.storage import cache_folder, keep
from core.units import MIB

#: Row counts at which the two products of a kernel are compared.
LADDER: Final = (1, 2, 4, 8, 16, 32, 64, 128)
_REPEATS: Final = 7
#: On a busy host a question is given up after this time, but not before this many timings.
_PATIENCE_S: Final = 0.1
_FEWEST_REPEATS: Final = 2
#: More than the caches of most processors hold.
_OTHER_BYTES: Final = 64 * MIB
_VERSION: Final = 7
#: A product that twice took so many times as long as the fastest is not timed again. Once is not enough on a
#: busy host, unless it took long.
_HOPELESS: Final = 3.0
_LONG_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class Timed:
    """A product whose time is asked for.

    Attributes:
        product: of rows with the matrix.
        small: the same with a few rows of the matrix, in memory of their own. It runs right before, so that
            the program and its threads are ready and only the matrix is cold, as it is in a model.
    """

    product: Callable[[Tensor], Tensor]
    small: Callable[[Tensor], Tensor]


class KernelChoices:
    """Answers that hold for one machine, remembered on disk."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._file = cache_folder() / "kernels" / f"{_machine(device)}-v{_VERSION}.json"
        self._known = _read(self._file)
        self._read_count = len(self._known)

    def fastest(
        self, key: str, candidates: Callable[[], Sequence[Timed]], example: Tensor, margin: float = 1.0
    ) -> int:
        """The index of the candidate that is fastest for a single row.

        Args:
            key: names the question, for instance its format and shape.
            candidates: makes them; called where the answer is not known.
            example: a row of the input, [1, in].
            margin: the first is taken unless it takes so many times as long as the fastest.
        """
        if key not in self._known:
            times_s = best_times_s(candidates(), example, self._device)
            first = times_s[0] <= margin * min(times_s)
            self._known[key] = 0 if first else times_s.index(min(times_s))
        return self._known[key]

    def switch_rows(self, key: str, ways: Callable[[], tuple[Timed, Timed]], example: Tensor) -> int:
        """Up to how many rows the first of two ways is the faster one."""
        if key not in self._known:
            self._known[key] = _switch_rows(ways(), example, self._device)
        return self._known[key]

    def save(self) -> None:
        """Keep what was learned; where the folder cannot be written, it is timed again next time."""
        if len(self._known) == self._read_count:
            return
        text = json.dumps(_read(self._file) | self._known, indent=1)
        keep(self._file, lambda path: path.write_text(text))


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"{platform.machine()}-{torch.backends.cpu.get_cpu_capability()}-{os.cpu_count()}cores"
    words = f"{name}-{torch.get_num_threads()}threads-torch{torch.__version__}"
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in words)


def _read(file: Path) -> dict[str, int]:
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}  # there is none yet, or it is damaged: time again
    if not isinstance(known, dict):
        return {}
    return {
        key: value
        for key, value in known.items()
        if isinstance(key, str) and isinstance(value, int) and value >= 0
    }


def _switch_rows(ways: tuple[Timed, Timed], example: Tensor, device: torch.device) -> int:
    """The last count at which the first way wins, 0 for none; it loses at all that are larger.

    So half of what is left is ruled out by each timing. Near the true answer both take the same time, and
    a busy moment that rules out the wrong half there costs little.
    """

    def loses(count: int) -> bool:
        few_s, many_s = best_times_s(ways, example.expand(count, -1).contiguous(), device)
        return few_s > many_s

    place = bisect.bisect_left(LADDER, True, key=loses)
    return LADDER[place - 1] if place else 0


@torch.inference_mode()
def best_times_s(candidates: Sequence[Timed], rows: Tensor, device: torch.device) -> list[float]:
    """The best of a few timings of each product, in seconds.

    The products take turns, so that a busy moment does not decide between them. Before each, something else
    is read that fills the caches, since a model's own matrices do not fit into them. One that is hopelessly
    slow is left out of later turns; where one alone is left, no more is to be learned.
    """
    other = torch.zeros(_OTHER_BYTES, dtype=torch.uint8, device=device).view(torch.float32)
    best_s = [math.inf] * len(candidates)
    left = list(range(len(candidates)))
    end_s = time.perf_counter() + _PATIENCE_S
    for turn in range(_REPEATS + 1):
        if len(left) == 1 or (turn > _FEWEST_REPEATS and time.perf_counter() > end_s):
            break
        times_s = {}
        for index in left:
            other.sum()
            _time_s(candidates[index].small, rows, device)
            times_s[index] = _time_s(candidates[index].product, rows, device)
        for index, seconds in times_s.items():
            # The first turn chooses primitives and makes room: it is forgotten, unless it is the only one.
            best_s[index] = seconds if turn == 1 and seconds < math.inf else min(best_s[index], seconds)
        limit_s = _HOPELESS * min(best_s)
        is_early = turn < _FEWEST_REPEATS
        left = [i for i in left if best_s[i] <= limit_s or (is_early and best_s[i] <= _LONG_S)]
    return best_s


def _time_s(product: Callable[[Tensor], Tensor], rows: Tensor, device: torch.device) -> float:
    """Seconds of one product; infinite where the kernel does not take this shape on this device."""
    synchronise(device)
    start = time.perf_counter()
    try:
        product(rows)
    except RuntimeError:
        return math.inf
    synchronise(device)
    return time.perf_counter() - start
