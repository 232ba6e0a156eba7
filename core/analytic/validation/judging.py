"""How far off the predictor is: every source predicted by a fit that has not seen it.

Ranges are judged the same way. The range of a run comes from residuals of other sources alone, and
these residuals are themselves predictions of sources left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.efficiency import QUANTITIES
from core.analytic.prediction_range import COVERED, Conditions, Regime, half_width, regime_of_run, widening
from core.analytic.validation.fitting import Design, design, fit
from core.analytic.validation.runs import PublishedRun
from core.analytic.validation.terms import Array, log_prediction
from core.analytic.validation.workload import Workload
from core.catalog.feed_forward import MoE

#: The quantities of the comparison: one global number each.
GLOBAL_TERMS: Final = (
    *("weight_bandwidth", "kv_bandwidth", "compute"),
    *("layer_us", "step_us", "collective_us"),
)
#: The groups of the error table, by the words that the page and the command use.
GROUPS: Final = (
    "decode, batch 1, one accelerator, dense, not eager",
    "decode, all",
    "decode, batch 1, tensor parallel",
    "decode, batch above 1, dense",
    "prefill and TTFT",
    "decode, mixture of experts",
    "decode on processors",
    "decode, eager frameworks",
)


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """Predictions of runs by fits that have not seen their source.

    Attributes:
        loads: what was predicted, with what it asks of its chip. predicted: the metrics.
        half_widths: of the log range that should hold 80 % of measurements.
        baseline: predictions of six global terms, fitted the same way.
        quantities: what each prediction was made with, by name, in the quantity's unit.
    """

    loads: tuple[Workload, ...]
    predicted: Array
    half_widths: Array
    baseline: Array
    quantities: Mapping[str, Array]

    @property
    def runs(self) -> tuple[PublishedRun, ...]:
        """The published measurements."""
        return tuple(load.run for load in self.loads)

    @property
    def log_errors(self) -> Array:
        """log(predicted / measured)."""
        return np.asarray(np.log(self.predicted / self._measured))

    @property
    def percent_errors(self) -> Array:
        """|predicted / measured - 1| in percent, of the metric as it was published."""
        return np.asarray(100 * np.abs(self.predicted / self._measured - 1))

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Whether the measurement lies in the range."""
        return np.asarray(np.abs(self.log_errors) <= self.half_widths)

    @property
    def baseline_log_errors(self) -> Array:
        """log(predicted / measured) of the six global terms."""
        return np.asarray(np.log(self.baseline / self._measured))

    @property
    def _measured(self) -> Array:
        return np.array([run.value for run in self.runs])


def leave_sources_out(of: Design, free: NDArray[np.bool_] | None = None) -> Array:
    """The logarithm of each run's metric, predicted from the runs of all other sources."""
    return log_prediction(of.at, of.values_by_run(_effects_of_others(of, free)))


def _effects_of_others(of: Design, free: NDArray[np.bool_] | None = None) -> Array:
    """The effects that fit the runs of all other sources, ``[runs, effects]``."""
    found = np.empty((len(of.loads), len(of.names)))
    for source in np.unique(of.sources):
        left_out = of.sources == source
        found[left_out] = fit(of, ~left_out, free)
    return found


def judge(loads: Sequence[Workload]) -> Judgement:
    """Predict every run from other sources, with ranges, and with six global terms."""
    full, alone = design(loads), design(loads, alone=True)
    values = full.values_by_run(_effects_of_others(full))
    predicted = log_prediction(full.at, values)
    free = np.array([name in GLOBAL_TERMS for name in alone.names])
    return Judgement(
        loads=tuple(loads),
        predicted=np.exp(predicted),
        half_widths=_half_widths(full, predicted - full.observed),
        baseline=np.exp(leave_sources_out(alone, free)),
        quantities=_in_units(values),
    )


def _in_units(values: Mapping[str, Array]) -> dict[str, Array]:
    return {name: QUANTITIES[name].number(value) for name, value in values.items()}


def _half_widths(of: Design, errors: Array) -> Array:
    """The range of each run from the residuals of other sources in its regime."""
    regimes = np.array([regime_of_run(load.run) for load in of.loads])
    found = np.empty(len(errors))
    for source in np.unique(of.sources):
        others = of.sources != source
        for regime in np.unique(regimes[~others]):
            found[~others & (regimes == regime)] = half_width(
                errors[others & (regimes == regime)], errors[others]
            )
    return np.asarray(
        found * np.array([widening(_conditions(load), regime_of_run(load.run)) for load in of.loads])
    )


def _conditions(load: Workload) -> Conditions:
    """What the range of a run depends on besides its regime."""
    run = load.run
    return Conditions(
        kind=run.chip.kind,
        announced=run.chip.announced,
        batch=load.batch,
        context=run.input_tokens + run.output_tokens,
        chips=run.devices,
        format_class=load.setting.format,
        experts=any(isinstance(layer.feed_forward, MoE) for layer in run.model.layers),
        state=run.model.attention in {"hybrid", "ssm"},
    )


def judge_others(loads: Sequence[Workload], known: Sequence[Workload]) -> Judgement:
    """Predict runs that no fit has seen from the known ones; sources that are in both are left out.

    Raises:
        ValueError: there is nothing to predict.
    """
    everything = [*known, *loads]
    of, alone = design(everything), design(everything, alone=True)
    new = np.arange(len(everything)) >= len(known)
    free = np.array([name in GLOBAL_TERMS for name in alone.names])
    effects, baseline = np.zeros((len(everything), len(of.names))), of.observed.copy()
    for source in np.unique(of.sources[new]):
        here, rows = new & (of.sources == source), ~new & (of.sources != source)
        effects[here] = fit(of, rows)
        baseline[here] = alone.predict(fit(alone, rows, free))[here]
    values = of.values_by_run(effects)
    errors = leave_sources_out(design(known)) - of.observed[~new]
    regimes = np.array([regime_of_run(load.run) for load in everything])
    widths = np.array([half_width(errors[regimes[~new] == r], errors) for r in regimes[new]])
    widths = widths * np.array([widening(_conditions(load), regime_of_run(load.run)) for load in loads])
    return Judgement(
        loads=tuple(loads),
        predicted=np.exp(log_prediction(of.at, values)[new]),
        half_widths=widths,
        baseline=np.exp(baseline[new]),
        quantities={name: numbers[new] for name, numbers in _in_units(values).items()},
    )


def in_group(run: PublishedRun, group: str) -> bool:
    """Whether a run belongs to a group; groups overlap."""
    dense = not any(isinstance(layer.feed_forward, MoE) for layer in run.model.layers)
    single, one = run.batch == 1, run.devices == 1
    eager, processor = run.engine.style == "eager", run.chip.kind == "cpu"
    if run.prefill:
        return group == "prefill and TTFT"
    return {
        "decode, batch 1, one accelerator, dense, not eager": single
        and one
        and dense
        and not eager
        and not processor,
        "decode, all": True,
        "decode, batch 1, tensor parallel": single and not one,
        "decode, batch above 1, dense": not single and dense,
        "decode, mixture of experts": not dense,
        "decode on processors": processor,
        "decode, eager frameworks": eager,
    }.get(group, False)


def regimes(judgement: Judgement) -> dict[Regime, Array]:
    """The log errors by regime, for the ranges that are kept."""
    names = np.array([regime_of_run(run) for run in judgement.runs])
    return {regime: judgement.log_errors[names == regime] for regime in COVERED}
