"""Products with int4 weights: one class for each layout that a kernel wants.

The packed layouts differ from device to device, so weights are packed after they have reached theirs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from core.engine.kernels import SwitchedLinear
from core.engine.quantise import GROUP, Groups4


class PlainNibbleLinear(SwitchedLinear):
    """int4 where there is no kernel for it: two nibbles in a byte, unpacked for every product."""

    few_name = "int4 to bf16, F.linear"
    many_name = few_name
    wide_name = "int4 to fp32, F.linear"

    def __init__(self, groups: Groups4, bias: Tensor | None) -> None:
        pairs = groups.nibbles.view(groups.nibbles.shape[0], -1, 2)
        super().__init__((pairs[..., 0] | pairs[..., 1] << 4, groups.scale, groups.zero), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        packed, scale, zero = self.tensors
        nibbles = torch.stack((packed & 15, packed >> 4), dim=-1).view(*scale.shape, GROUP)
        weight = torch.addcmul(zero.unsqueeze(-1), nibbles.to(rows.dtype).sub_(8), scale.unsqueeze(-1))
        return self.dense_product(rows, weight.flatten(1)).to(rows.dtype)


class CpuNibbleLinear(SwitchedLinear):
    """int4 on a CPU by torch's packed kernel.

    The kernel's layout, for each block of 64 (or 32) outputs: input by input, a row of bytes that
    hold two outputs each. Which width this machine has is found out by packing.
    """

    few_name = "_weight_int4pack_mm_for_cpu"
    many_name = "int4 to bf16, mm"
    wide_name = "int4 to fp32, mm"

    def __init__(self, groups: Groups4, bias: Tensor | None) -> None:
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(groups.nibbles.int(), 1)
        # [groups, out, 2]: the kernel walks the inputs, so their groups come first.
        both = torch.stack((groups.scale.t(), groups.zero.t()), dim=-1).contiguous()
        super().__init__((packed, both), bias)
        self._block = nibble_block(packed, groups.nibbles)
        if self._block is None:  # an unknown layout cannot be unpacked for many rows
            self.many_name = self.few_name

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        product: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            rows, self.tensors[0], GROUP, self.tensors[1]
        )
        return product

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``; unpacked as [in, out], the way the layout lies."""
        packed, both = self.tensors
        if self._block is None:
            return self.few_rows(rows)
        nibbles = unpacked(packed, self._block)  # [blocks, in, block]
        blocks, inputs, width = nibbles.shape
        scale, zero = both.view(inputs // GROUP, blocks, 1, width, 2).transpose(0, 1).unbind(-1)
        like = rows.float() if self.is_wide else rows
        grouped = nibbles.view(blocks, inputs // GROUP, GROUP, width).to(like.dtype).sub_(8)
        weight = grouped.mul_(scale).add_(zero).view(blocks, inputs, width)
        return torch.mm(like, weight.transpose(0, 1).reshape(inputs, blocks * width)).to(rows.dtype)


class CudaNibbleLinear(SwitchedLinear):
    """int4 on a GPU by tinygemm, which wants its own layout of tensor-core tiles.

    Many rows: the product with the identity gives the unpacked matrix, whatever the layout is.
    """

    few_name = "_weight_int4pack_mm"
    many_name = "int4 to bf16, mm"

    def __init__(self, groups: Groups4, bias: Tensor | None) -> None:
        pairs = groups.nibbles.view(groups.nibbles.shape[0], -1, 2)
        packed = torch._convert_weight_to_int4pack(pairs[..., 0] << 4 | pairs[..., 1], 2)
        both = torch.stack((groups.scale.t(), groups.zero.t()), dim=-1).contiguous()
        super().__init__((packed, both), bias)

    def few_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        return torch._weight_int4pack_mm(rows, self.tensors[0], GROUP, self.tensors[1])

    def many_rows(self, rows: Tensor) -> Tensor:
        """See ``SwitchedLinear``."""
        identity = torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
        return torch.mm(rows, self.few_rows(identity))


def unpacked(packed: Tensor, block: int) -> Tensor:
    """The nibbles of the CPU kernel's layout, [blocks, in, block]; in bytes, one nibble each.

    A block of 64 outputs keeps, for each input, 16 bytes of outputs 0-15 below 32-47 and 16 bytes of
    outputs 16-31 below 48-63; a block of 32 keeps 16 bytes of outputs 0-15 below 16-31.
    """
    halves = packed.view(-1, packed.shape[1] * 2, block // 2)  # [blocks, in, block / 2]
    return torch.cat((halves & 15, halves >> 4), dim=-1)


def nibble_block(packed: Tensor, nibbles: Tensor) -> int | None:
    """The block width of a packed matrix; None where its layout is not a known one.

    Found by unpacking the first block: its ``nibbles`` [out, in] must come back.
    """
    for block in (64, 32):
        if nibbles.shape[0] % block == 0:
            back = unpacked(packed[:block], block).transpose(1, 2).reshape(block, -1)
            if torch.equal(back, nibbles[:block]):
                return block
    return None
