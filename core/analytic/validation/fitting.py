"""Fits the effects to runs: least squares with a soft loss, each effect held near its centre.

What is minimised, with r the log error of a run and b the offset of its source::

    sum of w * 2 (sqrt(1 + ((r - b) / 0.2)^2) - 1)
    + sum of ((effect - centre) / spread)^2 + sum of (b / 0.1)^2

A source's rows share an offset, since publishers differ more than rows; it is fitted and thrown away. A
source with many rows counts as six of them, so that no table decides alone. Solved by Levenberg and
Marquardt's method with derivatives by quantity: a quantity's effects all act through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.efficiency import QUANTITIES, centre_of, effects_of, spread_of
from core.analytic.validation.terms import Array, Columns, columns, log_prediction
from core.analytic.validation.workload import Workload

_SOFT: Final = 0.2
_SOURCE_SPREAD: Final = 0.1
_ROWS_OF_A_SOURCE: Final = 6.0
_STEP: Final = 1e-4
_MOST_STEPS: Final = 30
_CLOSE_ENOUGH: Final = 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Runs with the effects that each of their quantities is the sum of.

    Attributes:
        names: the effects. weights: by quantity, ``[runs, effects]``. centres, spreads: before the fit.
        observed: logarithms of the metrics. sources: the index of each run's source.
    """

    loads: tuple[Workload, ...]
    at: Columns
    names: tuple[str, ...]
    weights: dict[str, Array]
    centres: Array
    spreads: Array
    observed: Array
    sources: NDArray[np.int64]

    def values(self, effects: Array) -> dict[str, Array]:
        """Each quantity of each run on its scale."""
        return {name: weight @ effects for name, weight in self.weights.items()}

    def values_by_run(self, effects: Array) -> dict[str, Array]:
        """The same where each run has effects of its own, ``[runs, effects]``."""
        return {name: np.einsum("re,re->r", weight, effects) for name, weight in self.weights.items()}

    def predict(self, effects: Array) -> Array:
        """Logarithms of the metrics."""
        return log_prediction(self.at, self.values(effects))


def design(loads: Sequence[Workload], *, alone: bool = False) -> Design:
    """Set a fit up. With ``alone`` every quantity is one global number, whatever the setting."""
    found = [{name: effects_of(name, load.setting) for name in QUANTITIES} for load in loads]
    if alone:
        found = [{name: {name: 1.0} for name in QUANTITIES} for _ in loads]
    names = tuple(dict.fromkeys(e for run in found for effects in run.values() for e in effects))
    index = {name: position for position, name in enumerate(names)}
    weights = {name: np.zeros((len(loads), len(names))) for name in QUANTITIES}
    for row, run in enumerate(found):
        for quantity, effects in run.items():
            for effect, weight in effects.items():
                weights[quantity][row, index[effect]] = weight
    urls = {url: number for number, url in enumerate(dict.fromkeys(load.run.source for load in loads))}
    return Design(
        loads=tuple(loads),
        at=columns(loads),
        names=names,
        weights=weights,
        centres=np.array([centre_of(name) for name in names]),
        spreads=np.array([spread_of(name) for name in names]),
        observed=np.log([load.run.value for load in loads]),
        sources=np.array([urls[load.run.source] for load in loads]),
    )


def fit(of: Design, rows: NDArray[np.bool_], free: NDArray[np.bool_] | None = None) -> Array:
    """The effects that fit the chosen rows; effects that are not ``free`` stay at their centres."""
    problem = _Problem.of(of, rows, np.ones(len(of.names), bool) if free is None else free)
    state = np.concatenate([of.centres, np.zeros(problem.num_sources)])
    cost, damping = problem.cost(state), 1e-2
    for _ in range(_MOST_STEPS):
        found = _downhill(problem, state, cost, damping)
        if found is None:
            break
        gain, (state, cost, damping) = cost - found[1], found
        if gain < _CLOSE_ENOUGH:
            break
    return state[: len(of.names)]


def _downhill(
    problem: _Problem, state: Array, cost: float, damping: float
) -> tuple[Array, float, float] | None:
    """A step that lowers the cost, with the damping for the next; None where there is none."""
    slope, curvature = problem.derivatives(state)
    moving = problem.moving
    for _ in range(8):
        damped = curvature + damping * np.diag(np.diag(curvature))
        step = np.zeros_like(state)
        step[moving] = np.linalg.solve(damped, -slope)
        lower = problem.cost(state + step)
        if lower < cost:
            return state + step, lower, max(damping / 4, 1e-6)
        damping *= 4
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    design: Design
    rows: NDArray[np.bool_]
    moving: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    num_sources: int
    row_weights: Array
    centres: Array
    tightness: Array

    @classmethod
    def of(cls, of: Design, rows: NDArray[np.bool_], free: NDArray[np.bool_]) -> _Problem:
        known, offsets = np.unique(of.sources[rows], return_inverse=True)
        counts = np.bincount(offsets)
        return cls(
            design=of,
            rows=rows,
            moving=np.concatenate([free, np.ones(len(known), bool)]),
            offsets=offsets,
            num_sources=len(known),
            row_weights=np.minimum(1.0, _ROWS_OF_A_SOURCE / counts)[offsets],
            centres=np.concatenate([of.centres, np.zeros(len(known))]),
            tightness=np.concatenate([of.spreads**-2.0, np.full(len(known), _SOURCE_SPREAD**-2.0)]),
        )

    def _residuals(self, state: Array) -> Array:
        size = len(self.design.names)
        error = (self.design.predict(state[:size]) - self.design.observed)[self.rows]
        return np.asarray(error - state[size:][self.offsets])

    def cost(self, state: Array) -> float:
        soft = 2 * (np.sqrt(1 + (self._residuals(state) / _SOFT) ** 2) - 1)
        pull = self.tightness * (state - self.centres) ** 2
        return float(np.sum(self.row_weights * soft) + np.sum(pull))

    def derivatives(self, state: Array) -> tuple[Array, Array]:
        """The slope of the cost and its curvature (Gauss and Newton's), of what moves."""
        size = len(self.design.names)
        residuals = self._residuals(state)
        jacobian = np.zeros((len(residuals), len(state)))
        jacobian[:, :size] = self._of_effects(state[:size])[self.rows]
        jacobian[np.arange(len(residuals)), size + self.offsets] = -1.0
        jacobian = jacobian[:, self.moving]
        weight = self.row_weights / np.sqrt(1 + (residuals / _SOFT) ** 2) / _SOFT**2
        weighted = jacobian.T * weight
        pull = (self.tightness * (state - self.centres))[self.moving]
        return weighted @ residuals + pull, weighted @ jacobian + np.diag(self.tightness[self.moving])

    def _of_effects(self, effects: Array) -> Array:
        """Derivatives of the log predictions, ``[runs, effects]``, through each quantity in turn."""
        at, values = self.design.at, self.design.values(effects)
        base = log_prediction(at, values)
        found = np.zeros((len(base), len(effects)))
        for name, weights in self.design.weights.items():
            moved = log_prediction(at, {**values, name: values[name] + _STEP})
            found += ((moved - base) / _STEP)[:, None] * weights
        return found
