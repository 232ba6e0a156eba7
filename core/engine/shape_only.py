"""Models without weights: a catalogue's shape, filled with seeded random numbers.

They write nonsense at the speed of the real model, which is what they are for.
"""

from __future__ import annotations

import math
import zlib

import torch

from core.catalog.model import ModelSpec
from core.catalog.models import model
from core.engine.checkpoint import Checkpoint, expected_shapes
from core.engine.text import ByteText
from core.engine.weight import Weight

_SEED = 0
_LENGTH = 2**22  # numbers that are really drawn; larger tensors repeat them


class SeededWeights:
    """Tensors made from one block of random numbers, each beginning at another place of it.

    Drawing every number would take minutes for a model of a billion; speed does not depend on them.
    Matrices have a standard deviation of ``1 / sqrt(in)``, so that activations stay of order one.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._shapes = expected_shapes(spec)
        generator = torch.Generator().manual_seed(_SEED)
        self._block = torch.randn(_LENGTH, generator=generator)

    def weight(self, name: str) -> Weight:
        """Give the tensor of this name; the same name gives the same numbers."""
        shape = self._shapes[name]
        if name.endswith("norm.weight"):
            return Weight(torch.ones(shape))
        if name.endswith(".bias"):
            return Weight(torch.zeros(shape))
        count = math.prod(shape)
        turned = self._block.roll(zlib.crc32(name.encode()) % _LENGTH)
        repeated = turned.expand(-(-count // _LENGTH), -1).reshape(-1)[:count]
        return Weight(repeated.view(shape) / math.sqrt(shape[1]))


def shape_only(id: str) -> Checkpoint:
    """A model of a catalogue's shape with seeded weights and a stand-in tokenizer.

    Raises:
        ConfigError: the catalogue has no such model.
    """
    spec = model(id)
    return Checkpoint(spec, SeededWeights(spec), ByteText(spec.vocab_size), frozenset())
