"""Named quantities, by lesson: what a lesson file may name, and nothing else computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.lesson.quantities import (
    batching,
    hardware_generations,
    inside_a_gpu,
    kv_cache,
    one_token,
    paged_attention,
    parallelism,
    prefill_and_decode,
    quantising,
    roofline,
    sharing_heads,
    speculative_decoding,
    will_it_fit,
)
from core.lesson.quantities.quantity import Quantity

#: Lesson id -> name -> function.
REGISTRY: Final[Mapping[str, Mapping[str, Quantity]]] = {
    "one_token": one_token.QUANTITIES,
    "prefill_and_decode": prefill_and_decode.QUANTITIES,
    "inside_a_gpu": inside_a_gpu.QUANTITIES,
    "roofline": roofline.QUANTITIES,
    "will_it_fit": will_it_fit.QUANTITIES,
    "kv_cache": kv_cache.QUANTITIES,
    "sharing_heads": sharing_heads.QUANTITIES,
    "paged_attention": paged_attention.QUANTITIES,
    "batching": batching.QUANTITIES,
    "quantising": quantising.QUANTITIES,
    "speculative_decoding": speculative_decoding.QUANTITIES,
    "parallelism": parallelism.QUANTITIES,
    "hardware_generations": hardware_generations.QUANTITIES,
}
