"""The operator table: one row per operator of a forward pass, one column per quantity.

Every memory size, time, cost and picture in the project is a sum or a ratio over this table.
A column holds one value a row, or one sweep a row: all columns share the shape
``[rows, *sweep]``, so a sweep over batch or context is one table, not many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.analytic.collectives import Collective
from core.units import Number

#: What an operator is, and so which efficiency applies to it.
Kind = Literal[
    "lookup",
    "norm",
    "linear",
    "rope",
    "kv_write",
    "attention",
    "recurrence",
    "elementwise",
    "sample",
    "collective",
]

#: The columns, in bytes or FLOPs, each for all ``repeats`` of its row together.
COLUMNS: Final = (
    "flops",
    "weight_stored_bytes",
    "weight_streamed_bytes",
    "activation_bytes",
    "kv_read_bytes",
    "kv_write_bytes",
    "state_bytes",
    "link_bytes",
)


class Row(NamedTuple):
    """One operator as it is built: quantities for one of its ``repeats``.

    A tuple, for tables are built by the dozen and a tuple is the record that is made fastest.

    Attributes:
        name: the operator's name, the same in the engine ("qkv", "attention", ...).
        kind: what it is; the machine keeps a rate for each kind and format.
        format: the number format its main operand is stored in.
        repeats: how often it runs in one pass (usually once a layer).
        tokens: rows of the matrix product: batch times new tokens, and in attention, where each sequence
            has a product of its own, new tokens.
        flops: multiplies and adds, 2 for each multiply-accumulate.
        weight_stored_bytes: bytes of parameters kept in memory for it.
        weight_streamed_bytes: bytes of parameters read in one pass.
        activation_bytes: bytes of inputs read and outputs written, KV cache apart.
        kv_read_bytes, kv_write_bytes: traffic of the KV cache.
        state_bytes: state of a state space or linear attention, read and written.
        link_bytes: bytes that one chip sends to others, one way.
        collective: how it sends them; None where it sends none.
    """

    name: str
    kind: Kind
    format: str
    repeats: int
    tokens: Number
    flops: Number = 0
    weight_stored_bytes: Number = 0
    weight_streamed_bytes: Number = 0
    activation_bytes: Number = 0
    kv_read_bytes: Number = 0
    kv_write_bytes: Number = 0
    state_bytes: Number = 0
    link_bytes: Number = 0
    collective: Collective | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Operators:
    """The operator table of one forward pass. Columns have the shape ``[rows, *sweep]``."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    formats: tuple[str, ...]
    repeats: NDArray[np.float64]
    tokens: NDArray[np.float64]
    flops: NDArray[np.float64]
    weight_stored_bytes: NDArray[np.float64]
    weight_streamed_bytes: NDArray[np.float64]
    activation_bytes: NDArray[np.float64]
    kv_read_bytes: NDArray[np.float64]
    kv_write_bytes: NDArray[np.float64]
    state_bytes: NDArray[np.float64]
    link_bytes: NDArray[np.float64]
    collectives: tuple[Collective | None, ...]

    @classmethod
    def build(cls, rows: list[Row]) -> Operators:
        """Stack rows into columns; scalars and sweeps broadcast to one shape."""
        told: dict[str, Any] = dict(zip(Row._fields, zip(*rows, strict=True), strict=True))
        stacked = _stacked([told["tokens"], *(told[name] for name in COLUMNS)])
        repeats = np.array(told["repeats"], np.float64)
        stacked[1:] *= repeats.reshape(-1, *([1] * (stacked.ndim - 2)))
        return cls(
            names=told["name"],
            kinds=told["kind"],
            formats=told["format"],
            repeats=repeats,
            collectives=told["collective"],
            tokens=stacked[0],
            **dict(zip(COLUMNS, stacked[1:], strict=True)),
        )

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def index(self, name: str) -> int:
        """The position of the first row of an operator; its name must be in the table.

        A model whose layers are all alike has one row a name. Where layers differ, each kind of
        layer has its own row under the same name: use ``positions`` or ``by_name`` there.
        """
        return self.names.index(name)

    def positions(self, name: str) -> tuple[int, ...]:
        """All rows of an operator, one for each kind of layer; empty when it is not in the table."""
        return tuple(row for row, other in enumerate(self.names) if other == name)

    def by_name(self, values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Sum ``values`` (``[rows, *sweep]``) over the rows of each operator name, in order.

        >>> from core.analytic.table import Operators, Row
        >>> table = Operators.build([Row("qkv", "linear", "bf16", 2, 1), Row("qkv", "linear", "bf16", 3, 1)])
        >>> {name: float(count) for name, count in table.by_name(table.repeats).items()}
        {'qkv': 5.0}
        """
        return {name: values[list(self.positions(name))].sum(axis=0) for name in dict.fromkeys(self.names)}

    def total(self, column: str) -> NDArray[np.float64]:
        """The sum of one column over all operators; the shape is the sweep's."""
        return np.asarray(getattr(self, column).sum(axis=0))

    @property
    def streamed_bytes(self) -> NDArray[np.float64]:
        """All bytes that one pass moves in memory, by operator: weights, activations, cache and state."""
        cache = self.kv_read_bytes + self.kv_write_bytes
        return self.weight_streamed_bytes + self.activation_bytes + cache + self.state_bytes

    @property
    def intensity(self) -> NDArray[np.float64]:
        """Arithmetic intensity by operator, in FLOPs per byte moved; zero where nothing moves."""
        moved = self.streamed_bytes
        return np.divide(self.flops, moved, out=np.zeros_like(moved), where=moved > 0)


def _stacked(columns: list[tuple[Number, ...]]) -> NDArray[np.float64]:
    """Columns of rows as one array, ``[columns, rows, *sweep]``."""
    shapes = [{value.shape for value in column if isinstance(value, np.ndarray)} for column in columns]
    sweep = np.broadcast_shapes(*set().union(*shapes))
    if not sweep:
        return np.array(columns, np.float64)
    stacked = np.empty((len(columns), len(columns[0]), *sweep))
    for place, column, sweeps in zip(stacked, columns, shapes, strict=True):
        if not sweeps:  # the same at every point of the sweep, which is the last axis of the transpose
            place.T[...] = column
            continue
        for row, value in enumerate(column):
            place[row] = value
    return stacked
