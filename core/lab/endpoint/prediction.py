"""What the planner predicts for the same load, before the server is asked.

One prompt alone and one step of all requests come from the plan of the chosen chips; ``core.analytic.served``
says what a request sees of a server that is busy with others. The way over the network and HTTP is left
out, and so is whatever the server does besides (scheduling, sampling, sending).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from core.analytic.datasheet import machine_from
from core.analytic.machine import Machine
from core.analytic.parallel import ParallelPlan
from core.analytic.plan import Plan, plan
from core.analytic.plan_on_chips import parallel_plan, plan_on_chips
from core.analytic.plan_value import conditions
from core.analytic.prediction_range import prediction_range
from core.analytic.served import served
from core.catalog.accelerator import THIS_COMPUTER
from core.catalog.accelerators import accelerator
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.errors import ScenarioError
from core.lab import calibration_file
from core.lab.checked_json import Reader
from core.lab.endpoint.request import CONCURRENCY, EndpointRequest

_MOST_S: Final = 1e6
_HERE: Final = (
    "This computer's rates are those of this project's own engine; another engine's kernels are faster or "
    "slower."
)
_ALONE: Final = "The way over the network and HTTP is not predicted."


@dataclass(frozen=True, slots=True)
class Deployment:
    """What runs behind the server, as far as its owner says: a model and its formats, on chips."""

    model: str
    accelerator: str
    count: int = 1
    tp: int = 1
    weights: str = "bf16"
    kv: str = "bf16"


@dataclass(frozen=True, slots=True)
class LevelPrediction:
    """One concurrency: medians and rates, and the ranges that should hold four measurements in five.

    Attributes:
        tpot_s: None for answers of one token. ttft_range_s, tpot_range_s: None for a measured machine.
    """

    concurrency: int
    ttft_s: float
    tpot_s: float | None
    output_tokens_per_s: float
    requests_per_s: float
    ttft_range_s: tuple[float, float] | None = None
    tpot_range_s: tuple[float, float] | None = None

    @classmethod
    def from_reader(cls, reader: Reader) -> LevelPrediction:
        """Read it back, or raise a RecordError."""
        return cls(
            concurrency=reader.whole("concurrency", *CONCURRENCY),
            ttft_s=reader.number("ttft_s", 0, _MOST_S),
            tpot_s=reader.optional_number("tpot_s", 0, _MOST_S),
            output_tokens_per_s=reader.number("output_tokens_per_s"),
            requests_per_s=reader.number("requests_per_s"),
            ttft_range_s=_pair(reader, "ttft_range_s"),
            tpot_range_s=_pair(reader, "tpot_range_s"),
        )


@dataclass(frozen=True, slots=True)
class EndpointPrediction:
    """The prediction for every level, with what speaks against it and what it means."""

    deployment: Deployment
    machine: str
    levels: tuple[LevelPrediction, ...]
    violations: tuple[str, ...]
    notes: tuple[str, ...]

    def at(self, concurrency: int) -> LevelPrediction | None:
        """The level of a concurrency; None where there is none."""
        return next((level for level in self.levels if level.concurrency == concurrency), None)

    def to_json(self) -> dict[str, Any]:
        """A plain object."""
        return asdict(self)

    @classmethod
    def from_reader(cls, reader: Reader) -> EndpointPrediction:
        """Read it back, or raise a RecordError."""
        told = reader.inner("deployment")
        names = {name: told.text(name) for name in ("model", "accelerator", "weights", "kv")}
        return cls(
            deployment=Deployment(**names, count=told.whole("count", 1, 4096), tp=told.whole("tp", 1, 4096)),
            machine=reader.text("machine"),
            levels=tuple(LevelPrediction.from_reader(entry) for entry in reader.objects("levels")),
            violations=reader.texts("violations"),
            notes=reader.texts("notes"),
        )


def predict(request: EndpointRequest, deployment: Deployment, model: ModelSpec) -> EndpointPrediction:
    """Predict every level of a request.

    Args:
        request: the load.
        deployment: what it meets.
        model: its shape.

    Raises:
        FormatError, ScenarioError: a format or a chip is not known, this computer was not calibrated, or the
            plan cannot be timed.

    >>> from core.catalog.models import model
    >>> load = EndpointRequest(levels=(1, 4), requests=4)
    >>> found = predict(load, Deployment("llama-3.1-8b", "h100-sxm-80gb"), model("llama-3.1-8b"))
    >>> one, four = found.levels
    >>> one.ttft_s < four.ttft_s, one.output_tokens_per_s < four.output_tokens_per_s
    (True, True)
    """
    machine = _machine(request, deployment)
    plans: list[Plan] = []
    levels = []
    for concurrency in request.levels:
        level, full = _level(request, deployment, model, machine, concurrency)
        levels.append(level)
        plans.append(full)
    return EndpointPrediction(
        deployment=deployment,
        machine=machine.name,
        levels=tuple(levels),
        violations=tuple(dict.fromkeys(said for made in plans for said in made.violations)),
        notes=tuple(dict.fromkeys((*_notes(deployment), *plans[-1].notes))),
    )


def _machine(request: EndpointRequest, deployment: Deployment) -> Machine:
    if deployment.accelerator != THIS_COMPUTER:
        return machine_from(accelerator(deployment.accelerator))
    if not request.is_here:
        raise ScenarioError(
            f"A server on this computer must have an address like http://localhost; {request.host} has "
            "another. Name the accelerator that it runs on."
        )
    if (deployment.count, deployment.tp) != (1, 1):
        raise ScenarioError(
            f"This computer is one machine, so count and tp must be 1; got {deployment.count} and "
            f"{deployment.tp}. Leave them out."
        )
    stored = calibration_file.load(calibration_file.fingerprint("cpu", ""))
    if stored.calibration is None:
        raise ScenarioError(
            f"A prediction for this computer needs its calibration. {stored.reason} Run "
            "`python -m core bench --quick`, or open the lab's page once."
        )
    return stored.calibration.machine(deployment.weights)


def _notes(deployment: Deployment) -> tuple[str, ...]:
    return (_ALONE, _HERE) if deployment.accelerator == THIS_COMPUTER else (_ALONE,)


def _level(
    request: EndpointRequest, deployment: Deployment, model: ModelSpec, machine: Machine, concurrency: int
) -> tuple[LevelPrediction, Plan]:
    """One concurrency, shared out evenly over the replicas, and the plan of a replica that is full."""
    scenario = Scenario(
        model=deployment.model,
        accelerator=deployment.accelerator,
        count=deployment.count,
        weights=deployment.weights,
        kv=deployment.kv,
        input_tokens=request.prompt_tokens,
        output_tokens=request.output_tokens,
        tp=deployment.tp,
    )
    parallel = parallel_plan(scenario)
    batch = math.ceil(concurrency / parallel.dp)
    one = _plan(scenario, model, machine, parallel)
    full = _plan(replace(scenario, batch=batch), model, machine, parallel)
    if one.ttft_s is None or full.ttft_s is None:
        raise ScenarioError(
            "This deployment must be one that can be timed; it is not. "
            + " ".join(full.violations or one.violations)
        )
    times = served(one.ttft_s, full.tpot_s or 0.0, batch, request.output_tokens)
    ttft_s, tpot_s = float(times.ttft_s), float(times.tpot_s)
    rate = concurrency / (ttft_s + (request.output_tokens - 1) * tpot_s)
    at = conditions(machine, model, replace(scenario, batch=batch), parallel)
    ranges = [
        prediction_range(seconds, at, prefill=prefill) if machine.kind else None
        for seconds, prefill in ((ttft_s, True), (tpot_s, False))
    ]
    ttft, tpot = (None if found is None else (found.low_s, found.high_s) for found in ranges)
    single = full.tpot_s is None
    level = LevelPrediction(
        concurrency=concurrency,
        ttft_s=ttft_s,
        tpot_s=None if single else tpot_s,
        output_tokens_per_s=rate * request.output_tokens,
        requests_per_s=rate,
        ttft_range_s=ttft,
        tpot_range_s=None if single else tpot,
    )
    return level, full


def _plan(scenario: Scenario, model: ModelSpec, machine: Machine, parallel: ParallelPlan) -> Plan:
    if scenario.tp == 1 and scenario.count == 1:
        return plan(scenario, model, machine)
    return plan_on_chips(scenario, model, machine, parallel).plan


def _pair(reader: Reader, name: str) -> tuple[float, float] | None:
    if reader.data.get(name) is None:
        return None
    values = reader.numbers(name, 0, _MOST_S)
    if len(values) != 2 or values[0] > values[1]:
        reader.refuse(name, "a lower and an upper bound")
    return values[0], values[1]
