"""A trained tensor as its file keeps it: plain numbers, or blocks of 32 with scales (GGUF).

The engine packs it later into the format that was asked for. Blocks stay blocks until then, so that
a 4-bit file (q4_1) reaches a 4-bit kernel with its nibbles as they are, and one of 8 bits (q8_0) a kernel
with such blocks (int8-g32). Plain int8 has one scale for a row: there they are rounded a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

BLOCK: Final = 32  # weights that share one scale, in both block encodings
#: Bytes of a block: scale and minimum (fp16 each) before 16 bytes of nibbles; scale before 32 bytes.
BLOCK_BYTES: Final = {"q4_1": 20, "q8_0": 34}

#: The weight format that keeps the integers of such blocks.
KEPT_BY: Final = {"q4_1": "int4", "q8_0": "int8-g32"}


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of a checkpoint.

    Attributes:
        data: ``[out, in]`` or ``[length]`` numbers where the encoding is "plain"; else the raw
            bytes of its blocks, ``[out, in / 32 * bytes of a block]``.
        encoding: "plain", "q4_1" or "q8_0".
    """

    data: Tensor
    encoding: str = "plain"

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape in weights, not in bytes."""
        if self.encoding == "plain":
            return tuple(self.data.shape)
        rows, row_bytes = self.data.shape
        return (rows, row_bytes // BLOCK_BYTES[self.encoding] * BLOCK)

    def dense(self) -> Tensor:
        """The tensor in fp32.

        A block of q4_1 is ``scale * nibble + minimum``, a block of q8_0 is ``scale * byte``.
        """
        if self.encoding == "plain":
            return self.data.float()
        if self.encoding == "q8_0":
            numbers, scale = self.bytes()
            return (numbers.view(*scale.shape, BLOCK) * scale.float().unsqueeze(-1)).flatten(1)
        nibbles, scale, minimum = self.nibbles()
        grouped = nibbles.view(*scale.shape, BLOCK)
        return torch.addcmul(minimum.unsqueeze(-1), grouped, scale.unsqueeze(-1)).flatten(1)

    def nibbles(self) -> tuple[Tensor, Tensor, Tensor]:
        """A q4_1 tensor taken apart: nibbles ``[out, in]``, scales and minima ``[out, in / 32]``."""
        blocks = self.data.view(self.data.shape[0], -1, BLOCK_BYTES["q4_1"])
        packed = blocks[..., 4:]
        # The first 16 weights of a block are the low nibbles, the other 16 the high ones.
        nibbles = torch.cat((packed & 15, packed >> 4), dim=-1).flatten(1)
        return nibbles, _half(blocks[..., :2]).float(), _half(blocks[..., 2:4]).float()

    def bytes(self) -> tuple[Tensor, Tensor]:
        """A q8_0 tensor taken apart, bit for bit: bytes ``[out, in]``, fp16 scales ``[out, in / 32]``."""
        blocks = self.data.view(self.data.shape[0], -1, BLOCK_BYTES["q8_0"])
        return blocks[..., 2:].view(torch.int8).flatten(1), _half(blocks[..., :2])


def _half(two_bytes: Tensor) -> Tensor:
    return two_bytes.contiguous().view(torch.float16).squeeze(-1)


def stack(weights: Sequence[Weight]) -> Weight:
    """Put tensors of one input width on top of each other: Q, K and V become one matrix."""
    if len(weights) == 1:
        return weights[0]
    encodings = {weight.encoding for weight in weights}
    if len(encodings) == 1:
        return Weight(torch.cat([weight.data for weight in weights]), encodings.pop())
    return Weight(torch.cat([weight.dense() for weight in weights]))
