"""Models without weights: a catalogue's shape, filled with seeded random numbers.

They write nonsense at the speed of the real model, which is what they are for.
"""

from __future__ import annotations

import math
import zlib
from typing import Final

import torch

from core.catalog.hf_config import read_config
from core.catalog.model import ModelSpec
from core.catalog.models import model
from core.engine.files.checkpoint import Checkpoint, expected_shapes
from core.engine.files.text import ByteText
from core.engine.files.weight import Weight

#: A mixture of experts that fits on any machine; nobody published it, so it is not in the catalogue.
TINY_MOE: Final = "tiny-moe"
_TINY_MOE: Final[dict[str, object]] = {
    "model_type": "mixtral",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 4096,
    "max_position_embeddings": 4096,
}
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
    """A model of a catalogue's shape, or ``TINY_MOE``, with seeded weights and a stand-in tokenizer.

    Raises:
        ConfigError: the catalogue has no such model.
    """
    spec = read_config(_TINY_MOE, id=id, name="Tiny mixture") if id == TINY_MOE else model(id)
    return Checkpoint(spec, SeededWeights(spec), ByteText(spec.vocab_size), frozenset())
