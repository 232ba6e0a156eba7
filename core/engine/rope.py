"""Rotary positions: each pair of features of a head turns by an angle that grows with its position.

Feature i of the first half of a head is paired with feature i of the second half. The pair turns by
``position * theta ** (-2 i / D)``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from core.catalog.model import ModelSpec, RopeScaling
from core.engine.native import binding as native
from core.errors import CheckpointError


class RopeTable:
    """Cosines and signed sines of every position, made once and looked up in each step.

    The sine of the first half is negated, so that turning is two products and one sum:
    ``x * cos + roll(x) * sine``.
    """

    def __init__(self, spec: ModelSpec, positions: int, dtype: torch.dtype, device: torch.device) -> None:
        angles = torch.arange(positions, dtype=torch.float32).unsqueeze(1) * frequencies(spec)
        self.cosine = torch.cat((angles.cos(), angles.cos()), dim=1).to(device, dtype)  # [positions, D]
        self.sine = torch.cat((-angles.sin(), angles.sin()), dim=1).to(device, dtype)

    @property
    def num_bytes(self) -> int:
        """Bytes of both tables."""
        return self.cosine.nbytes + self.sine.nbytes

    def rows(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines for each token, [T, 1, D]: the same for all heads and layers."""
        return (
            self.cosine.index_select(0, positions).unsqueeze(1),
            self.sine.index_select(0, positions).unsqueeze(1),
        )


def turn(heads: Tensor, cosine: Tensor, sine: Tensor) -> None:
    """Rotate ``heads`` [T, heads, D] in place."""
    if not torch.compiler.is_compiling() and native.turn(heads, cosine, sine):
        return
    partner = heads.roll(heads.shape[-1] // 2, -1)
    heads.mul_(cosine).addcmul_(partner, sine)


def frequencies(spec: ModelSpec) -> Tensor:
    """Radians per position for each pair, [D / 2], stretched where the model asks for it.

    Raises:
        CheckpointError: the model stretches positions in a way that is not known here.
    """
    dim = spec.layers[0].attention.head_dim
    plain = 1.0 / spec.rope_theta ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim)
    scaling = spec.rope_scaling
    if scaling is None:
        return plain
    if scaling.kind == "linear":
        return plain / scaling.factor
    if scaling.kind == "llama3":
        return _llama3(plain, scaling)
    raise CheckpointError(
        f"The model's rope scaling must be default, linear or llama3; got {scaling.kind!r}. "
        "Use a model without it; sizes and speeds of this one are still predicted."
    )


def _llama3(plain: Tensor, scaling: RopeScaling) -> Tensor:
    """Leave fast pairs alone, slow down slow ones, and blend in between (Llama 3.1)."""
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    if scaling.original_context is None or low is None or high is None or low >= high:
        raise CheckpointError(
            "A llama3 rope scaling must have original_max_position_embeddings and "
            f"low_freq_factor < high_freq_factor; got {scaling}. Correct the config."
        )
    turns = scaling.original_context * plain / (2 * math.pi)  # full turns within the first context
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * keep + plain / scaling.factor * (1 - keep)
