"""This computer as a machine of the arithmetic, alone or shared by processes that split a model."""

from __future__ import annotations

from dataclasses import replace

from core.analytic.machine import Machine, Rate
from core.catalog.accelerator import Link
from core.errors import ScenarioError
from core.lab import calibration_file
from core.units import format_gb, format_seconds

_ADVICE = "Run `python -m core bench --quick`, or open the lab's page once."


def this_computer(weights: str, processes: int = 1) -> Machine:
    """The processor that this runs on, from its stored calibration.

    Args:
        weights: the format of the weights that will run.
        processes: that share the computer, each with its part of the model.

    Raises:
        ScenarioError: it was not calibrated.
    """
    stored = calibration_file.load(calibration_file.fingerprint("cpu", ""))
    if stored.calibration is None:
        raise ScenarioError(
            f"A prediction for this computer needs its calibration. {stored.reason} {_ADVICE}"
        )
    return shared(stored.calibration.machine(weights), processes)


def shared(machine: Machine, processes: int) -> Machine:
    """One of several processes on a machine: all of them together have what the machine has.

    Memory, bandwidth and arithmetic are divided by the number of processes; the fixed cost of a call is
    each process's own. Ignored: that one process alone may not reach all of a machine's bandwidth, so that
    several lose less than this says.
    """
    if processes == 1:
        return machine
    return replace(
        machine,
        capacity_bytes=None if machine.capacity_bytes is None else machine.capacity_bytes / processes,
        bandwidth_bytes_per_s=machine.bandwidth_bytes_per_s / processes,
        peak_flops_per_s={name: peak / processes for name, peak in machine.peak_flops_per_s.items()},
        rates={key: _shared(rate, processes) for key, rate in machine.rates.items()},
        operator_rates={key: _shared(rate, processes) for key, rate in machine.operator_rates.items()},
        notes=(
            *machine.notes,
            f"{processes} processes share this computer: each is counted with 1/{processes} of its memory, "
            "bandwidth and arithmetic.",
            _of_exchanges(machine.link),
        ),
    )


def _of_exchanges(link: Link | None) -> str:
    if link is None:
        return (
            "What they exchange was not measured here; a full calibration does. Run `python -m core bench`."
        )
    return (
        f"An exchange is counted with {format_seconds(link.latency_s or 0.0)} and "
        f"{format_gb(link.bandwidth_bytes_per_s)}/s one way, as measured here on {link.date}."
    )


def _shared(rate: Rate, processes: int) -> Rate:
    return replace(
        rate,
        bytes_per_s=rate.bytes_per_s / processes,
        flops_per_s=tuple(flops / processes for flops in rate.flops_per_s),
        rows_bytes_per_s=tuple(moved / processes for moved in rate.rows_bytes_per_s),
    )
