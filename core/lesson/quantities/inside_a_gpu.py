"""The numbers of "Inside a GPU": how long bytes take from each of its memories."""

from __future__ import annotations

from typing import Final

from core.analytic.params import layer_kinds, layer_weights
from core.catalog.accelerator import Accelerator
from core.catalog.accelerators import accelerator, accelerators, in_base_units
from core.catalog.formats import STORAGE_FORMATS
from core.errors import ConfigError
from core.lesson.amount import Amount, LessonCase
from core.lesson.quantities.memory_levels import (
    HOST,
    L2,
    MEMORY,
    SHARED,
    TITLES,
    level,
)
from core.lesson.quantities.quantity import Quantity
from core.units import BITS_PER_BYTE, GB, GIB, MB

_TERA: Final = 1e12
_MEGA: Final = 1e6
_MS: Final = 1e3


# --- The memory -----------------------------------------------------------------------------------


def memory(case: LessonCase) -> Amount:
    """The chip's memory, as software sees it."""
    return Amount(_capacity(case) / GB, "GB")


def memory_gib(case: LessonCase) -> Amount:
    """The same in GiB."""
    return Amount(_capacity(case) / GIB, "GiB")


def _capacity(case: LessonCase) -> float:
    """Bytes that software sees, or what is on the box where that is all that was published."""
    if case.machine.capacity_bytes is not None:
        return case.machine.capacity_bytes
    return _fact(_chip(case), "memory", case.machine.name)


def bandwidth(case: LessonCase) -> Amount:
    """The peak bandwidth of the memory."""
    return Amount(case.machine.bandwidth_bytes_per_s / _TERA, "TB/s")


def memory_time(case: LessonCase) -> Amount:
    """Time to read all of the memory once."""
    return Amount(_MS * _capacity(case) / case.machine.bandwidth_bytes_per_s, "ms")


def full_memory_rate(case: LessonCase) -> Amount:
    """Tokens a second of a model that fills the memory, for one user: it is read once for each."""
    return Amount(case.machine.bandwidth_bytes_per_s / _capacity(case), "tokens/s")


# --- One layer ------------------------------------------------------------------------------------


def layer_parameters(case: LessonCase) -> Amount:
    """Weights of one layer, the largest kind of them, in millions."""
    counts = [
        sum(
            weight.count
            for weights in layer_weights(layer, case.model.hidden_size).values()
            for weight in weights
        )
        for layer, _ in layer_kinds(case.model)
    ]
    return Amount(max(counts) / _MEGA, "M")


def layers(case: LessonCase) -> Amount:
    """Decoder layers."""
    return Amount(case.model.num_layers)


def weight_bytes(case: LessonCase) -> Amount:
    """Bytes of one weight, scales included where the format has them."""
    return Amount(STORAGE_FORMATS[case.scenario.weights].bits_per_weight / BITS_PER_BYTE, "B")


def layer_bytes(case: LessonCase) -> Amount:
    """Bytes of one layer: weights times bytes a weight."""
    return Amount(layer_parameters(case).value * weight_bytes(case).value, "MB")


def layer_time(case: LessonCase) -> Amount:
    """Time to read one layer's weights from memory."""
    return Amount(_MS * layer_bytes(case).value * MB / case.machine.bandwidth_bytes_per_s, "ms")


def layer_time_of_all(case: LessonCase) -> Amount:
    """The same for all layers, as if each were as large."""
    return Amount(layer_time(case).value * layers(case).value, "ms")


def layer_time_from_host(case: LessonCase) -> Amount:
    """The same over the link to the host."""
    return Amount(_MS * layer_bytes(case).value * MB / _bandwidth(case, HOST), "ms")


def layers_in_cache(case: LessonCase) -> Amount:
    """The part of a layer's weights that the L2 cache could hold."""
    return Amount(_cache(case) / (layer_bytes(case).value * MB))


def cache_size(case: LessonCase) -> Amount:
    """The L2 cache."""
    return Amount(_cache(case) / MB, "MB")


def _cache(case: LessonCase) -> float:
    found = level(case, L2)
    if found is None or found.capacity_bytes is None:
        raise ConfigError(
            f"This number needs the size of an L2 cache, and none is known of {case.machine.name}. "
            "Choose another chip."
        )
    return found.capacity_bytes


# --- Between the levels ---------------------------------------------------------------------------


def shared_factor(case: LessonCase) -> Amount:
    """How many times as much shared memory delivers as memory."""
    return Amount(_bandwidth(case, SHARED) / _bandwidth(case, MEMORY), "×")


def cache_factor(case: LessonCase) -> Amount:
    """The same of the L2 cache."""
    return Amount(_bandwidth(case, L2) / _bandwidth(case, MEMORY), "×")


def host_factor(case: LessonCase) -> Amount:
    """How many times as long the same bytes take from the host as from memory."""
    return Amount(_bandwidth(case, MEMORY) / _bandwidth(case, HOST), "×")


def host_bandwidth(case: LessonCase) -> Amount:
    """The link to the host, both directions together, as it is often printed."""
    return Amount(2 * _bandwidth(case, HOST) / GB, "GB/s")


def _bandwidth(case: LessonCase, name: str) -> float:
    found = level(case, name)
    if found is None or found.bandwidth_bytes_per_s is None:
        raise ConfigError(
            f"This number needs the bandwidth of the {TITLES[name]}, and none is known of "
            f"{case.machine.name}. Choose another chip."
        )
    return found.bandwidth_bytes_per_s


# --- Two chips ------------------------------------------------------------------------------------


def cores(case: LessonCase) -> Amount:
    """Cores of the chip: streaming multiprocessors or compute units."""
    return Amount(_fact(_chip(case), "cores", case.machine.name))


def rival_cores(case: LessonCase) -> Amount:
    """Cores of the chip that it is compared with."""
    return Amount(_fact(_rival(case), "cores", _rival(case).name))


def rival_bandwidth(case: LessonCase) -> Amount:
    """Bandwidth of the chip that it is compared with."""
    return Amount(_rival(case).bandwidth_bytes_per_s / _TERA, "TB/s")


def rival_memory(case: LessonCase) -> Amount:
    """Memory of the chip that it is compared with, as it is on the box."""
    return Amount(_fact(_rival(case), "memory", _rival(case).name) / GB, "GB")


def box_memory(case: LessonCase) -> Amount:
    """Memory of the chip, as it is on the box."""
    return Amount(_fact(_chip(case), "memory", case.machine.name) / GB, "GB")


def rival_layer_time(case: LessonCase) -> Amount:
    """Time of one layer's weights on the chip that it is compared with."""
    return Amount(_MS * layer_bytes(case).value * MB / _rival(case).bandwidth_bytes_per_s, "ms")


def _rival(case: LessonCase) -> Accelerator:
    return accelerator(str(case.settings.get("rival", "a100-sxm-80gb")))


def _chip(case: LessonCase) -> Accelerator:
    chip = accelerators().get(case.machine.id)
    if chip is None:
        raise ConfigError(f"This number needs a chip of the catalogue, and {case.machine.name} is not in it.")
    return chip


def _fact(chip: Accelerator, name: str, of: str) -> float:
    if name not in chip.facts:
        raise ConfigError(f"This number needs the {name} of {of}, which is unknown. Choose another chip.")
    return in_base_units(chip.facts[name])


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        memory, memory_gib, bandwidth, memory_time, full_memory_rate, layer_parameters, layers, weight_bytes,
        layer_bytes, layer_time, layer_time_of_all, layer_time_from_host, layers_in_cache, cache_size,
        shared_factor, cache_factor, host_factor, host_bandwidth, cores, rival_cores, rival_bandwidth,
        rival_memory, box_memory, rival_layer_time,
    )
}  # fmt: skip
