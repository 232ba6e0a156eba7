"""A case whose model and chip are the catalogue's own: what questions and exercises are asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from core.analytic.datasheet import machine_from
from core.analytic.machine import Machine
from core.catalog.accelerators import accelerator
from core.catalog.models import model
from core.catalog.scenario import Scenario
from core.lesson.amount import SCENARIO_FIELDS, LessonCase, Value


def catalogue_case(values: Mapping[str, Value], scenario: Scenario | None = None) -> LessonCase:
    """The default scenario with some values changed, and its model and chip looked up.

    Args:
        values: scenario fields by name; other names become settings.
        scenario: to start from; the default one unless given.

    Raises:
        ConfigError, ScenarioError: the catalogue has no such model or accelerator.
    """
    in_scenario = {name: value for name, value in values.items() if name in SCENARIO_FIELDS}
    changed: Scenario = replace(scenario or Scenario(), **in_scenario)  # type: ignore[arg-type]
    settings = {name: value for name, value in values.items() if name not in SCENARIO_FIELDS}
    return LessonCase(changed, model(changed.model), _machine(changed.accelerator), settings)


@cache
def _machine(id: str) -> Machine:
    return machine_from(accelerator(id))
