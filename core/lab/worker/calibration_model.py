"""The model that a calibration runs: made up, of no use, and of no shape in the catalogue.

Its layers differ in width, so that one engine gives matrices of many sizes; together they are larger
than a last-level cache, so that weights come from memory as they do in a real model. Values do not
change the time, so all tensors are copies of parts of one random buffer.
"""

from __future__ import annotations

import math
from typing import Final

import torch

from core.catalog.model import Attention, DenseMLP, Layer, ModelSpec
from core.engine.engine import Engine
from core.engine.files.checkpoint import Checkpoint, expected_shapes
from core.engine.files.text import ByteText
from core.engine.files.weight import Weight

_HEAD_DIM: Final = 64
_SEED: Final = 0
_SCALE: Final = 0.02
#: As with real ones, more than one thread looks for the largest logit.
VOCABULARY: Final = 40_960

# Three key heads do not divide evenly among threads, four do: attention is sampled either way.
NARROW: Final = Layer(Attention(12, 3, _HEAD_DIM), DenseMLP(1024))
WIDE: Final = Layer(Attention(16, 4, _HEAD_DIM, qk_norm=True), DenseMLP(3584))


def calibration_spec(num_pairs: int, vocab_size: int = VOCABULARY) -> ModelSpec:
    """A model of ``num_pairs`` narrow and as many wide layers, in turn."""
    return ModelSpec(
        id="calibration",
        name="the calibration model",
        model_type="llama",
        hidden_size=768,
        vocab_size=vocab_size,
        layers=(NARROW, WIDE) * num_pairs,
        tied_embeddings=True,
        max_context=4096,
        rope_theta=10_000.0,
        rms_norm_eps=1e-5,
        source="made up for calibrations",
    )


class CheapWeights:
    """A weight source whose tensors are copies of parts of one random buffer.

    Copies, because layers that shared memory would find their weights in the cache.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._shapes = expected_shapes(spec)
        most = max(math.prod(shape) for shape in self._shapes.values())
        generator = torch.Generator().manual_seed(_SEED)
        self._buffer = torch.empty(most).uniform_(-_SCALE, _SCALE, generator=generator)

    def weight(self, name: str) -> Weight:
        """The tensor of this name."""
        shape = self._shapes[name]
        return Weight(self._buffer[: math.prod(shape)].view(shape).clone())


def calibration_engine(spec: ModelSpec, weights: str, kv: str, device: str) -> Engine:
    """An engine over a calibration model.

    Raises:
        FormatError: this device has no kernel for the format.
    """
    checkpoint = Checkpoint(spec, CheapWeights(spec), ByteText(spec.vocab_size), frozenset())
    return Engine(checkpoint, weights=weights, kv=kv, cache="contiguous", device=torch.device(device))
