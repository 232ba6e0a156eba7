"""The ceilings of a device: how fast memory is read and copied, how fast matrices are multiplied.

A ceiling is the best of several passes: whatever else runs can only make a pass slower. The short
checks of the pace, beside them, are medians.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import torch

from core.engine.clock import synchronise
from core.lab.calibration import SizedBandwidth
from core.lab.pace import Pace
from core.lab.worker.steadiness import Steadiness, always_steady, near
from core.units import KIB, MB, MIB

_CACHE_FILES: Final = "cpu0/cache/index*/size"
_CPUS: Final = Path("/sys/devices/system/cpu")
_UNITS: Final = {"K": KIB, "M": MIB}
#: A working set of so many times the last-level cache comes from memory.
_BEYOND_CACHE: Final = 4
_LEAST_BYTES: Final = 128 * MIB
_MOST_BYTES: Final = 512 * MIB
_GPU_BYTES: Final = 1024 * MIB
_PASSES: Final = 10
_CHECK_S: Final = 0.1
_CALLS_S: Final = 0.05
#: What reading is taken from: so many checks of the last while, and so few where there is time for no more.
_MOST_READS: Final = 9
_LEAST_READS: Final = 4
_RECENT_S: Final = 60.0
#: What lasts is told from so many paces of the last minutes: of a sweep those beside its last six cells.
_MOST_FOUND: Final = 13
_LASTING_S: Final = 180.0
#: Calls of a check that is made beside every short measurement.
_FEW_CALLS: Final = 5
#: What the usual speed is taken from.
_USUAL_CHECKS: Final = 100
#: Small calls of a GPU in a row.
_CALLS: Final = 50
#: Numbers that a call of a processor works on, in its caches.
_MANY: Final = 1_000_000
_MOST_ROUNDS: Final = 12
_SMALL: Final = 576
_FLOAT_BYTES: Final = 4
#: A product is tried at a part of its size first, and stays there where the whole would take so long.
_SMALLER: Final = 4
_LEAST_PRODUCTS: Final = 2
_LONGEST_PRODUCT_S: Final = 1.0
_DTYPES: Final = {"fp32": torch.float32, "bf16": torch.bfloat16}


def last_level_cache_bytes() -> int:
    """The largest cache of the first core; 0 where the system does not tell."""
    sizes = [file.read_text().strip() for file in _CPUS.glob(_CACHE_FILES)]
    return max((int(text[:-1]) * _UNITS.get(text[-1], 0) for text in sizes if text[:-1].isdigit()), default=0)


class MemoryProbe:
    """Reads and copies a working set that no cache holds; the buffers are kept for later checks."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        needed = _BEYOND_CACHE * last_level_cache_bytes()
        size = _GPU_BYTES if device == "cuda" else min(max(needed, _LEAST_BYTES), _MOST_BYTES)
        self._source = torch.ones(size // _FLOAT_BYTES, device=self.device)
        self._reads: deque[tuple[float, float]] = deque(maxlen=_MOST_READS)
        self._found: deque[tuple[float, Pace]] = deque(maxlen=_MOST_FOUND)
        self._some = torch.ones(_SMALL if device == "cuda" else _MANY, device=self.device)

    def read_bytes_per_s(self) -> float:
        """The median of the last checks of a minute: a single one is shorter than a run."""
        self._reads.append((time.monotonic(), self._read_for_a_moment()))
        return statistics.median(self._recent_reads())

    def _recent_reads(self) -> list[float]:
        now_s = time.monotonic()
        return [found for at_s, found in self._reads if now_s - at_s < _RECENT_S]

    def _read_for_a_moment(self) -> float:
        """Read the working set again and again; the median pass."""
        deadline = time.perf_counter() + _CHECK_S
        times_s = [self._seconds(self._source.sum)]
        while time.perf_counter() < deadline:
            times_s.append(self._seconds(self._source.sum))
        return self._source.nbytes / statistics.median(times_s)

    def pace(self, usual: Pace | None = None) -> Pace:
        """Both checks, 150 ms; again for up to two seconds while calls are not as fast as usual.

        Neighbours come and go within seconds. A machine that stays slower is one that is. After a pause a
        few more checks, 600 ms, stand for the last minutes.
        """
        while len(self._recent_reads()) < _LEAST_READS:
            self._keep(self._both())
        for _ in range(_MOST_ROUNDS):
            now = self._both()
            if usual is None or self.device.type == "cuda" or near(now.call_s, usual.call_s):
                break
        return self._keep(now)

    def expected(self) -> Pace:
        """What a run is predicted at, after the paces of the last minutes and that just found.

        Raises:
            IndexError: ``pace`` was never asked for.
        """
        _, now = self._found[-1]
        since_s = time.monotonic() - _LASTING_S
        recent = [found for at_s, found in self._found if at_s > since_s]
        return Pace.middle(recent or [now]).expected(now)

    def _both(self) -> Pace:
        return Pace(self.read_bytes_per_s(), self.call_s())

    def _keep(self, found: Pace) -> Pace:
        self._found.append((time.monotonic(), found))
        return found

    def steadiness(self, usual_s: float | None = None) -> Steadiness:
        """Tells whether calls take what they usually do: a given time, or the median of what it finds.

        A GPU's cores are shared with nobody, and a single launch says nothing of them: it is always steady.
        """
        if self.device.type == "cuda":
            return always_steady(usual_s or self.call_s())
        if usual_s is not None:
            return Steadiness(self.short_call_s, usual_s)
        found = Steadiness(self.short_call_s, self.call_s(), learns=True)
        for _ in range(_USUAL_CHECKS):
            found.check()
        return found

    def short_call_s(self) -> float:
        """Seconds of a call, the median of a few."""
        return statistics.median(self._seconds(partial(self._calls, 1)) for _ in range(_FEW_CALLS))

    def call_s(self) -> float:
        """Seconds of a call, the median over a moment.

        On a processor one that keeps all threads at work: a single thread is up to twice as fast on a core
        whose other half idles, which no run finds.
        """
        deadline = time.perf_counter() + _CALLS_S
        calls = _CALLS if self.device.type == "cuda" else 1
        times_s: list[float] = []
        while time.perf_counter() < deadline:
            times_s.append(self._seconds(partial(self._calls, calls)) / calls)
        return statistics.median(times_s)

    @torch.inference_mode()
    def _calls(self, count: int) -> None:
        for _ in range(count):
            torch.tanh(self._some)

    def empty_caches(self) -> None:
        """Fill every cache with something else: what comes next is read from memory."""
        self._source.sum()
        synchronise(self.device)

    def by_size(self) -> tuple[SizedBandwidth, ...]:
        """Read and copy bandwidth of growing working sets, the last one beyond any cache."""
        whole = self._source.nbytes
        target = torch.empty_like(self._source)
        sizes = [size for size in (MB, 8 * MB, 32 * MB) if size < whole // 2]
        rows = []
        for size in [*sizes, whole]:
            source, copy = (buffer[: size // _FLOAT_BYTES] for buffer in (self._source, target))
            read_s = min(self._seconds(source.sum) for _ in range(_PASSES))
            copy_s = min(self._seconds(partial(copy.copy_, source)) for _ in range(_PASSES))
            # A copy moves every byte twice: it is read, and written.
            rows.append(SizedBandwidth(source.nbytes, source.nbytes / read_s, 2 * source.nbytes / copy_s))
        return tuple(rows)

    def _seconds(self, work: Callable[[], object]) -> float:
        synchronise(self.device)
        before = time.perf_counter()
        work()
        synchronise(self.device)
        return time.perf_counter() - before


def peak_flops_per_s(device: str, size: int, repeats: int) -> dict[str, float]:
    """FLOP/s of a square matrix product of ``size``, by compute format; the best of ``repeats``.

    Where a processor has no fast product in a format, a smaller one tells that soon enough.
    """
    place = torch.device(device)
    peaks = {}
    for name, dtype in _DTYPES.items():
        small_s = _product_s(size // _SMALLER, dtype, place, _LEAST_PRODUCTS)
        if small_s * _SMALLER**3 > _LONGEST_PRODUCT_S:
            peaks[name] = 2 * (size // _SMALLER) ** 3 / small_s
        else:
            peaks[name] = 2 * size**3 / _product_s(size, dtype, place, repeats)
    return peaks


def _product_s(size: int, dtype: torch.dtype, place: torch.device, repeats: int) -> float:
    left, right = (torch.ones(size, size, dtype=dtype, device=place) for _ in range(2))
    best_s = math.inf
    for _ in range(repeats):
        synchronise(place)
        before = time.perf_counter()
        torch.mm(left, right)
        synchronise(place)
        best_s = min(best_s, time.perf_counter() - before)
    return best_s
