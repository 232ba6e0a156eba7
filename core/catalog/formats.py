"""Number formats: how many bytes a tensor takes when it is stored in one.

A format with scales is more than its name says: int4 in groups of 32 with a bf16 scale and a
bf16 zero per group is 4 + 32/32 = 5 bits a weight. Sizes are therefore computed from the
layout of the tensor, never from a nominal bit count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.errors import FormatError
from core.units import BITS_PER_BYTE, Number

Use = Literal["weights", "kv"]


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One storage format and the precision in which it is multiplied.

    Attributes:
        id: short key, as it stands in links and on the command line.
        name: the name on a page.
        payload_bits: bits of one element without its scales.
        group_size: elements along the input dimension that share one scale; 0 means that a whole
            output row (a weight) or a whole token-and-head vector (a KV entry) shares one.
        scale_bytes: bytes of scale and zero point for each group; 0 where there are none.
        compute: the key into an accelerator's dense peaks: "fp32", "bf16", "fp16", "int8" or "fp8".
        activations: the format in which the rest of the forward pass runs beside such weights.
        uses: what may be stored in it.
        meaning: one sentence for the page.
    """

    id: str
    name: str
    payload_bits: int
    group_size: int
    scale_bytes: int
    compute: str
    activations: str
    uses: tuple[Use, ...]
    meaning: str

    def matrix_bytes(self, out_features: Number, in_features: Number) -> Number:
        """Bytes that store an ``[out_features, in_features]`` matrix, scales included.

        ``out * in * payload_bits / 8 + out * groups * scale_bytes`` with
        ``groups = ceil(in / group_size)``. Ignored: alignment padding of a kernel's packed layout.

        >>> FORMATS["int4"].matrix_bytes(576, 1536)   # 442,368 of payload, 576 * 48 groups * 4
        552960
        """
        payload = out_features * in_features * self.payload_bits // BITS_PER_BYTE
        groups = -(-in_features // self.group_size) if self.group_size else 1
        return payload + out_features * groups * self.scale_bytes

    def vector_bytes(self, length: Number) -> Number:
        """Bytes that store one vector of ``length`` elements, scales included."""
        return self.matrix_bytes(1, length)


def _format(
    id: str,
    name: str,
    bits: int,
    meaning: str,
    *,
    group: int = 0,
    scale: int = 0,
    compute: str,
    activations: str,
    uses: tuple[Use, ...] = ("weights", "kv"),
) -> NumberFormat:
    return NumberFormat(id, name, bits, group, scale, compute, activations, uses, meaning)


FORMATS: Final[dict[str, NumberFormat]] = {
    record.id: record
    for record in (
        _format("fp32", "fp32", 32, "32-bit floating point.", compute="fp32", activations="fp32"),
        _format("bf16", "bf16", 16, "16 bits with the range of fp32.", compute="bf16", activations="bf16"),
        _format(
            "fp16",
            "fp16",
            16,
            "16 bits with more precision and less range.",
            compute="fp16",
            activations="fp16",
        ),
        _format(
            "int8",
            "int8 weight-only",
            8,
            "Weights are rounded to 8 bits, one bf16 scale per output row; the product is 16-bit.",
            scale=2,
            compute="bf16",
            activations="bf16",
            uses=("weights",),
        ),
        _format(
            "int8-dynamic",
            "int8 dynamic (W8A8)",
            8,
            "Weights and activations are rounded to 8 bits; activations anew at every step.",
            scale=4,
            compute="int8",
            activations="fp32",
            uses=("weights",),
        ),
        _format(
            "int4",
            "int4 weight-only, groups of 32",
            4,
            "Weights are rounded to 4 bits, a bf16 scale and zero per 32; the product is 16-bit.",
            group=32,
            scale=4,
            compute="bf16",
            activations="bf16",
            uses=("weights",),
        ),
    )
}


def number_format(id: str, use: Use) -> NumberFormat:
    """Look a format up by its id.

    Raises:
        FormatError: the id is unknown, or this use is not possible in it.
    """
    choices = [record.id for record in FORMATS.values() if use in record.uses]
    if id not in choices:
        raise FormatError(f"A format for {use} must be one of {', '.join(choices)}; got {id!r}.")
    return FORMATS[id]
