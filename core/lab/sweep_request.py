"""A sweep: runs over every combination of some settings, or over a seeded choice of them."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.catalog.formats import engine_format
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue, runnable_ids
from core.errors import RequestError
from core.lab.request import CACHES, DEVICES, EMBEDDED_MODEL, SHAPE_PREFIX, Cache, Device
from core.lab.run_shape import RunShape

MOST_CELLS: Final = 256
MOST_BATCH: Final = 32
MOST_PROMPT_TOKENS: Final = 8192
MOST_NEW_TOKENS: Final = 128
MOST_REPEATS: Final = 10
#: Of what a browser can count.
MOST_SEED: Final = 2**53 - 1
#: Combinations that are looked at, a choice of which may be run; a file could ask for hundreds of millions.
MOST_COMBINATIONS: Final = 20_000
_WHAT: Final = "A sweep"
#: Names of settings, and the type of each of their values.
_LISTS: Final[dict[str, type]] = {
    "models": str,
    "weights": str,
    "kv": str,
    "caches": str,
    "batches": int,
    "prompts": int,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of settings: equal requests that arrive together.

    Attributes:
        model: as in a run's request. weights, kv: number formats. cache: how keys and values are kept.
        batch: requests. prompt_tokens, new_tokens: of each.
    """

    model: str
    weights: str
    kv: str
    cache: Cache
    batch: int
    prompt_tokens: int
    new_tokens: int

    @property
    def shape(self) -> RunShape:
        """What of it decides its time."""
        cached = self.cache != "none"
        return RunShape(self.weights, self.kv, cached, self.batch, self.prompt_tokens, self.new_tokens)

    @property
    def key(self) -> str:
        """A text that is the same for the same cell.

        >>> Cell("smollm2-135m", "int4", "bf16", "paged", 2, 64, 16).key
        'smollm2-135m int4 bf16 paged 2 64 16'
        """
        return " ".join(str(value) for value in asdict(self).values())


def spec_of(model: str) -> ModelSpec:
    """The shape of a model that a sweep may run.

    Raises:
        RequestError: it is none.
    """
    name = model.removeprefix(SHAPE_PREFIX)
    if name not in runnable_ids() or (model == name) != (model == EMBEDDED_MODEL):
        raise RequestError(
            f"A model must be {EMBEDDED_MODEL}, or {SHAPE_PREFIX} and an id of a model that the engine runs; "
            f"got {str(model)[:60]!r}. See `list models`."
        )
    return catalogue()[name]


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """Which cells are predicted, run and compared.

    Attributes:
        models, weights, kv, caches, batches, prompts: the values of each setting.
        new_tokens: of each request; 2 or more, for TPOT needs a second token.
        most: cells that are run at most, a seeded choice of all; 0 for all of them.
        seed: of that choice and of the prompts. repeats: how often each cell is run, at least.
        tries: a cell that was noisy is predicted and run again, so often at most.
        quality: also tell how far each pair of formats moves the embedded model's answers.
        device: where it runs.
    """

    models: tuple[str, ...] = (EMBEDDED_MODEL,)
    weights: tuple[str, ...] = ("int4",)
    kv: tuple[str, ...] = ("bf16",)
    caches: tuple[Cache, ...] = ("contiguous",)
    batches: tuple[int, ...] = (1,)
    prompts: tuple[int, ...] = (64,)
    new_tokens: int = 32
    most: int = 0
    seed: int = 0
    repeats: int = 3
    tries: int = 1
    quality: bool = False
    device: Device = "cpu"

    def validate(self) -> None:
        """Check every limit, and that a cell is left.

        Raises:
            RequestError, FormatError: the first limit that does not hold, as a sentence.
        """
        for name in _LISTS:
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                got = ", ".join(map(str, values)) or "none"
                raise RequestError(
                    f"{_WHAT} needs one value or more for {name.replace('_', ' ')}, each once; got {got}. "
                    "Choose at least one."
                )
        for model in self.models:
            spec_of(model)
        for weights in self.weights:
            engine_format(weights, "weights")
        for kv in self.kv:
            engine_format(kv, "kv")
        for cache in self.caches:
            _one_of("cache", cache, CACHES)
        _one_of("device", self.device, DEVICES)
        for name, value, low, high in (
            *(("The batch", batch, 1, MOST_BATCH) for batch in self.batches),
            *(("The prompt tokens", tokens, 1, MOST_PROMPT_TOKENS) for tokens in self.prompts),
            ("The output tokens", self.new_tokens, 2, MOST_NEW_TOKENS),
            ("The cells to choose at most", self.most, 0, MOST_CELLS),
            ("The seed", self.seed, 0, MOST_SEED),
            ("The repeats", self.repeats, 1, MOST_REPEATS),
            ("The tries", self.tries, 1, MOST_REPEATS),
        ):
            _within(name, value, low, high)
        combinations = math.prod(len(getattr(self, name)) for name in _LISTS)
        if combinations > MOST_COMBINATIONS:
            raise RequestError(
                f"{_WHAT} may choose its cells among up to {MOST_COMBINATIONS:,} combinations; these "
                f"settings have {combinations:,}. Name fewer values."
            )
        count = len(self.cells())
        if not 1 <= count <= MOST_CELLS:
            raise RequestError(
                f"{_WHAT} may have 1 to {MOST_CELLS} cells that fit their model's context; these settings "
                f"give {count:,}. Name fewer values, or say how many cells to choose at most."
            )

    def cells(self) -> tuple[Cell, ...]:
        """The cells in the order in which they are run: a model is loaded once for each of its formats.

        Left out is what no step or context can hold.
        """
        product = itertools.product(
            self.models, self.weights, self.kv, self.caches, self.batches, self.prompts
        )
        cells = [cell for values in product if _fits(cell := Cell(*values, self.new_tokens))]
        if 0 < self.most < len(cells):
            chosen = random.Random(self.seed).sample(range(len(cells)), self.most)  # noqa: S311 - no secret
            cells = [cells[index] for index in sorted(chosen)]
        return tuple(cells)

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return {**asdict(self), **{name: list(getattr(self, name)) for name in _LISTS}}

    @classmethod
    def from_json(cls, data: object) -> SweepRequest:
        """Read a request back and validate it.

        Raises:
            RequestError, FormatError: it is not an object, or a value does not hold.
        """
        if not isinstance(data, dict):
            raise RequestError(f"{_WHAT} must be an object; got {type(data).__name__}.")
        defaults = cls().to_json()
        for name, value in data.items():
            if name not in defaults:
                raise RequestError(f"{_WHAT} has no field {name[:40]!r}; it has {', '.join(defaults)}.")
            each = _LISTS.get(name)
            if type(value) is not type(defaults[name]) or (
                each is not None and not all(type(item) is each for item in value)
            ):
                raise RequestError(
                    f"{_WHAT} must have at {name!r} what {defaults[name]!r} is; got {str(value)[:40]!r}."
                )
        values: dict[str, Any] = {n: tuple(v) if n in _LISTS else v for n, v in data.items()}
        request = cls(**values)
        request.validate()
        return request


def _fits(cell: Cell) -> bool:
    try:
        cell.shape.check(spec_of(cell.model))
    except RequestError:
        return False
    return True


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RequestError(f"The {name} must be one of {', '.join(choices)}; got {str(value)[:40]!r}.")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:,} to {high:,}; got {value:,}. Choose one in between.")
