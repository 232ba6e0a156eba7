"""Memory is counted by purpose, and an unknown capacity is never a verdict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analytic.datasheet import machine_from
from core.analytic.memory import CHUNK_TOKENS, activation_bytes, footprint
from core.analytic.operators import operators
from core.catalog.accelerators import accelerator
from core.catalog.model import ModelSpec
from core.catalog.models import catalogue, model

H100 = machine_from(accelerator("h100-sxm-80gb"))
models = st.sampled_from(list(catalogue().values()))


@given(models, st.integers(1, 64), st.integers(1, 10**5))
def test_more_sequences_or_tokens_never_take_less(spec: ModelSpec, batch: int, context: int) -> None:
    sizes = footprint(
        spec, H100, batch=np.array([batch, batch + 1]), context=context, weights="bf16", kv="bf16"
    ).total_bytes
    assert sizes[0] <= sizes[1]
    longer = footprint(
        spec, H100, batch=batch, context=np.array([context, context + 1]), weights="bf16", kv="bf16"
    ).total_bytes
    assert longer[0] <= longer[1]


def test_activations_do_not_grow_with_the_square_of_a_prompt() -> None:
    spec = model("llama-3.1-8b")

    def peak(tokens: int) -> float:
        table = operators(spec, batch=1, new_tokens=tokens, context=tokens, weights="bf16", kv="bf16")
        return float(activation_bytes(table))

    assert peak(8192) == pytest.approx(2 * peak(4096))
    gate_and_up = 2 * 14336
    assert peak(4096) == 4096 * 2 * (4096 + max(4096 + gate_and_up, gate_and_up + 14336))


def test_long_prompts_go_through_in_chunks() -> None:
    sizes = footprint(
        model("llama-3.1-8b"),
        H100,
        batch=1,
        context=np.array([CHUNK_TOKENS, 10 * CHUNK_TOKENS]),
        weights="bf16",
        kv="bf16",
    )
    assert sizes.activation_bytes[0] == sizes.activation_bytes[1]


def test_a_verdict_needs_a_capacity() -> None:
    spec = model("llama-3.3-70b")
    large = footprint(spec, H100, batch=1, context=np.array([1, 9]), weights="bf16", kv="bf16")
    assert large.fits is not None
    assert large.fits.tolist() == [False, False]
    unknown = machine_from(accelerator("rtx-4080"))
    assert footprint(spec, unknown, batch=1, context=1, weights="bf16", kv="bf16").fits is None
