"""The engines that are loaded: the last few, so that a second run starts at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from core.analytic.params import stored_bytes
from core.catalog.models import catalogue, runnable_ids
from core.engine.engine import PAGE_TOKENS, CacheKind, Engine
from core.errors import RequestError
from core.lab.request import EMBEDDED_MODEL, SHAPE_PREFIX, RunRequest
from core.units import format_gib

_MOST_ENGINES: Final = 4
#: Packing a matrix needs the matrix in full beside its packed form.
_PACKING_ROOM: Final = 1.5
#: The part of a job's memory that loaded engines may keep.
_KEPT_SHARE: Final = 0.4
_WARM_UP_TOKENS: Final = 32
_WARM_UP_STEPS: Final = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which engine: a model that a page may ask for, its formats, and how its cache is laid out."""

    model: str
    weights: str
    kv: str
    cache: CacheKind = "contiguous"
    page_tokens: int = PAGE_TOKENS


class EngineShelf:
    """Loaded engines, the most recently used last; the oldest give way.

    Args:
        device: where they run. memory_bytes: what a job may use.
    """

    def __init__(self, device: str, memory_bytes: int) -> None:
        self._device = device
        self._memory_bytes = memory_bytes
        self._engines: OrderedDict[Wanted, Engine] = OrderedDict()

    def get(self, request: RunRequest, threads: int, warm_up: Callable[[Engine], None]) -> Engine:
        """The engine that a request needs; one that had to be loaded is warmed up.

        Raises:
            RequestError: the model is no model that a page may ask for, or is too large.
            CheckpointError, FormatError: it cannot be loaded so.
        """
        wanted = Wanted(request.model, request.weights, request.kv, request.cache)
        return self.take(wanted, threads, warm_up)

    def take(
        self, wanted: Wanted, threads: int | None = None, warm_up: Callable[[Engine], None] | None = None
    ) -> Engine:
        """The engine so described, loaded where it is not there; the threads stay as they are if None.

        Raises:
            RequestError: the model is no model that a page may ask for, or is too large.
            CheckpointError, FormatError: it cannot be loaded so.
        """
        if wanted in self._engines:
            self._engines.move_to_end(wanted)
            return self._engines[wanted]
        check_model(wanted.model)
        self._check_size(wanted)
        self._make_room()
        engine = Engine.load(
            wanted.model,
            weights=wanted.weights,
            kv=wanted.kv,
            cache=wanted.cache,
            device="cuda" if self._device == "cuda" else "cpu",
            threads=threads,
            page_tokens=wanted.page_tokens,
        )
        if warm_up is not None:
            warm_up(engine)
        self._engines[wanted] = engine
        return engine

    def clear(self) -> None:
        """Drop every engine, for example after memory ran out."""
        self._engines.clear()

    def _make_room(self) -> None:
        def kept_bytes() -> int:
            return sum(engine.peak_memory_bytes() for engine in self._engines.values())

        while self._engines and (
            len(self._engines) >= _MOST_ENGINES or kept_bytes() > self._memory_bytes * _KEPT_SHARE
        ):
            self._engines.popitem(last=False)

    def has_room_for(self, name: str, weights: str = "int4") -> bool:
        """Whether a catalogue model can be loaded here; by default in the smallest format."""
        return self._needed_bytes(name, weights) <= self._memory_bytes

    def _needed_bytes(self, name: str, weights: str) -> int:
        return int(stored_bytes(catalogue()[name], weights) * _PACKING_ROOM)

    def _check_size(self, wanted: Wanted) -> None:
        name = wanted.model.removeprefix(SHAPE_PREFIX)
        if not self.has_room_for(name, wanted.weights):
            raise RequestError(
                f"A model must fit in the {format_gib(self._memory_bytes)} that a job may use here; "
                f"{catalogue()[name].name} in {wanted.weights} needs about "
                f"{format_gib(self._needed_bytes(name, wanted.weights))} to load. Choose a smaller model or "
                "format."
            )


def check_model(model: str) -> None:
    """Allow the embedded model and catalogue shapes; a path from a page is never opened.

    Raises:
        RequestError: it is another thing.
    """
    if model == EMBEDDED_MODEL:
        return
    if not model.startswith(SHAPE_PREFIX) or model.removeprefix(SHAPE_PREFIX) not in runnable_ids():
        raise RequestError(
            f"The model must be {EMBEDDED_MODEL}, or {SHAPE_PREFIX} and an id of the catalogue; got "
            f"{model[:80]!r}. Choose one from the list."
        )


def settle(engine: Engine) -> None:
    """Run a few passes, so that a visitor's first one does not pay for choosing primitives."""
    engine.measure_prefill(_WARM_UP_TOKENS, repeats=1)
    engine.measure_steps(_WARM_UP_TOKENS, steps=_WARM_UP_STEPS)
