"""A number with its unit, and the case it is computed for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final

from core.analytic.machine import Machine
from core.catalog.model import ModelSpec
from core.catalog.scenario import Scenario
from core.units import GB, GIB, KB, KIB, MB, MIB, TB, TIB, format_seconds, significant

Value = int | float | str

#: Every unit that an amount may have: the kind of quantity, and its size in that kind's base unit.
UNITS: Final[dict[str, tuple[str, float]]] = {
    "B": ("bytes", 1),
    "kB": ("bytes", KB),
    "MB": ("bytes", MB),
    "GB": ("bytes", GB),
    "TB": ("bytes", TB),
    "KiB": ("bytes", KIB),
    "MiB": ("bytes", MIB),
    "GiB": ("bytes", GIB),
    "TiB": ("bytes", TIB),
    "s": ("seconds", 1),
    "ms": ("seconds", 1e-3),
    "µs": ("seconds", 1e-6),
    "ns": ("seconds", 1e-9),
    "FLOP": ("FLOPs", 1),
    "MFLOP": ("FLOPs", 1e6),
    "GFLOP": ("FLOPs", 1e9),
    "TFLOP": ("FLOPs", 1e12),
    "FLOP/s": ("FLOPs a second", 1),
    "TFLOP/s": ("FLOPs a second", 1e12),
    "B/s": ("bytes a second", 1),
    "GB/s": ("bytes a second", GB),
    "TB/s": ("bytes a second", TB),
    "tokens/s": ("tokens a second", 1),
    "W": ("watts", 1),
    "FLOP/B": ("FLOPs a byte", 1),
    "×": ("a factor", 1),
    "%": ("a share", 0.01),
    "tokens": ("a number", 1),
    "M": ("a number", 1e6),
    "G": ("a number", 1e9),
    "": ("a number", 1),
}


@dataclass(frozen=True, slots=True)
class Amount:
    """A value in a unit; ``text`` is how a page writes it.

    >>> Amount(1.073741824, "GB").text, Amount(32, "").text, Amount(131072, "B").text
    ('1.07 GB', '32', '131,072 B')
    """

    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        """Three significant digits, or the whole number where it is a count, and the unit."""
        if self.kind == "seconds":
            return format_seconds(self.base_value)
        whole = float(self.value).is_integer() and self.unit in {"", "B", "tokens", "%", "×"}
        number = f"{self.value:,.0f}" if whole else significant(self.value)
        return f"{number} {self.unit}".rstrip()

    @property
    def kind(self) -> str:
        """What it is an amount of, in words."""
        return UNITS[self.unit][0]

    @property
    def base_value(self) -> float:
        """The value in its kind's base unit."""
        return self.value * UNITS[self.unit][1]

    def in_unit(self, unit: str) -> Amount:
        """The same amount in another unit of its kind."""
        return Amount(self.base_value / UNITS[unit][1], unit)


@dataclass(frozen=True, slots=True)
class LessonCase:
    """What a lesson's quantities are computed for.

    Attributes:
        scenario: what is served, and how. model, machine: what its names stand for.
        settings: values of the lesson's controls that are no part of a scenario.
    """

    scenario: Scenario
    model: ModelSpec
    machine: Machine
    settings: Mapping[str, Value] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """A setting that is a number; the lesson must declare it."""
        return float(self.settings[name])

    def word(self, name: str) -> str:
        """A setting that is a choice; the lesson must declare it."""
        return str(self.settings[name])

    def having(self, values: Mapping[str, Value]) -> LessonCase:
        """The same with other values: a scenario's field goes into the scenario, the rest into settings.

        A model or accelerator needs its record, so they are not for this.
        """
        in_scenario = {name: value for name, value in values.items() if name in SCENARIO_FIELDS}
        others = {name: value for name, value in values.items() if name not in SCENARIO_FIELDS}
        return replace(
            self,
            scenario=replace(self.scenario, **in_scenario),  # type: ignore[arg-type]
            settings={**self.settings, **others},
        )


SCENARIO_FIELDS: Final = frozenset(item.name for item in fields(Scenario))


def held_tokens(case: LessonCase) -> int:
    """Tokens of one sequence: the setting "context" where there is one, else prompt and answer."""
    context = case.settings.get("context")
    return case.scenario.input_tokens + case.scenario.output_tokens if context is None else int(context)
