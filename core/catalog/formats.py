"""Number formats: how many bytes a tensor takes when it is stored in one.

A format with scales is more than its name says: int4 in groups of 32 with a bf16 scale and a
bf16 zero per group is 4 + 32/32 = 5 bits a weight. Sizes are therefore computed from the
layout of the tensor, never from a nominal bit count. ``assets/formats.csv`` has one row a format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from core.catalog.assets import read_csv
from core.catalog.near_names import one_of
from core.errors import FormatError
from core.units import BITS_PER_BYTE, Number

Use = Literal["weights", "kv"]
#: What headers and rounded counts may add to a file's bits for each parameter.
_HEADERS: Final = 1.01


@dataclass(frozen=True, slots=True)
class Scale:
    """What a group of elements shares: a scale, a zero point, a minimum, or all of a block's together.

    Attributes:
        bits: bits of it.
        inputs: elements along the input dimension that share it; 0 means all of a row.
        outputs: rows that share it; 0 means that groups run on from row to row.
    """

    bits: int
    inputs: int
    outputs: int = 1

    def count(self, out_features: Number, in_features: Number) -> Number:
        """How many an ``[out_features, in_features]`` matrix has; a ragged last group has its own.

        >>> Scale(bits=32, inputs=128, outputs=128).count(256, 130), Scale(16, inputs=0).count(256, 130)
        (4, 256)
        """
        if self.outputs == 0:
            return -(-(out_features * in_features) // self.inputs)
        groups = -(-in_features // self.inputs) if self.inputs else 1
        return -(-out_features // self.outputs) * groups


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One storage format and the precision in which it is multiplied.

    Attributes:
        id: short key, as it stands in links and on the command line.
        name: the name on a page.
        payload_bits: bits of one element without its scales.
        scales: what groups of elements share. "Row" is an output row of a weight, or the vector of one
            token and head in a KV cache.
        padded: the last block of a row is stored whole even where the row ends within it.
        compute: the key into an accelerator's dense peaks: "fp32", "bf16", "fp16", "int8", "fp8", "fp4".
        activations: the format in which the rest of the forward pass runs beside such weights.
        uses: what may be stored in it.
        engine: where the app's own engine runs it: "yes", "sm89" on GPUs from compute capability 8.9 on,
            or "" for nowhere.
        source: where the layout is written down.
        meaning: one sentence for the page.
    """

    id: str
    name: str
    payload_bits: int
    scales: tuple[Scale, ...]
    padded: bool
    compute: str
    activations: str
    uses: tuple[Use, ...]
    engine: str
    source: str
    meaning: str

    def matrix_bytes(self, out_features: Number, in_features: Number) -> Number:
        """Bytes that store an ``[out_features, in_features]`` matrix, scales included.

        ``(out * in * payload_bits + sum of scales * their bits) / 8``, rounded up. Ignored: the single
        scale of a whole tensor, and the alignment padding of a kernel's packed layout.

        >>> STORAGE_FORMATS["int4"].matrix_bytes(576, 1536)   # 442,368 of payload, 576 * 48 groups * 4
        552960
        >>> STORAGE_FORMATS["q6_k"].matrix_bytes(1, 256)
        210
        """
        inputs = in_features
        if self.padded:
            block = self.scales[0].inputs
            inputs = -(-in_features // block) * block
        bits = out_features * inputs * self.payload_bits
        for scale in self.scales:
            bits = bits + scale.count(out_features, in_features) * scale.bits
        return -(-bits // BITS_PER_BYTE)

    def vector_bytes(self, length: Number) -> Number:
        """Bytes that store one vector of ``length`` elements, scales included."""
        return self.matrix_bytes(1, length)

    @property
    def bits_per_weight(self) -> float:
        """Bits of one weight in a large matrix: payload and scales, without those of a whole row.

        >>> STORAGE_FORMATS["q4_k"].bits_per_weight, STORAGE_FORMATS["gptq-g128"].bits_per_weight
        (4.5, 4.15625)
        """
        shared = (
            scale.bits / (scale.inputs * max(scale.outputs, 1)) for scale in self.scales if scale.inputs
        )
        return self.payload_bits + sum(shared)

    def can_be(self, parameters: int, file_bytes: int) -> bool:
        """Whether a file in this format can be so many parameters: more bits each than it has are proof.

        One in a hundred is allowed for headers and for parameters that are stated rounded. A file may be
        smaller: parts of it may be in other formats.

        >>> STORAGE_FORMATS["bf16"].can_be(8_030_261_248, 16_060_522_496)
        True
        """
        return bits_per_parameter(parameters, file_bytes) <= self.bits_per_weight * _HEADERS


def bits_per_parameter(parameters: int, file_bytes: int) -> float:
    """Bits that a file spends on one parameter, everything in it included: ``8 * bytes / parameters``.

    Raises:
        FormatError: there are no parameters to divide by.

    >>> bits_per_parameter(8_030_261_248, 16_060_522_496)
    16.0
    """
    if parameters < 1:
        raise FormatError(f"A file must have a parameter or more; got {parameters}. Correct the number.")
    return BITS_PER_BYTE * file_bytes / parameters


def _format(row: dict[str, str]) -> NumberFormat:
    return NumberFormat(
        id=row["format"],
        name=row["name"],
        payload_bits=int(row["payload_bits"]),
        scales=tuple(_scale(text) for text in row["scales"].split()),
        padded=row["padded"] == "yes",
        compute=row["compute"],
        activations=row["activations"],
        uses=tuple(cast("Use", use) for use in row["uses"].split() if use in get_args(Use)),
        engine=row["engine"],
        source=row["source"],
        meaning=row["meaning"],
    )


def _scale(text: str) -> Scale:
    """Read ``BITS/INPUTS``, ``BITS/OUTPUTSxINPUTS``, ``BITS/row`` or ``BITS/flatINPUTS``."""
    bits, _, group = text.partition("/")
    if group == "row":
        return Scale(int(bits), inputs=0)
    if group.startswith("flat"):
        return Scale(int(bits), inputs=int(group.removeprefix("flat")), outputs=0)
    outputs, separator, inputs = group.rpartition("x")
    return Scale(int(bits), int(inputs), int(outputs) if separator else 1)


#: Every format that the arithmetic knows, by id.
STORAGE_FORMATS: Final[dict[str, NumberFormat]] = {
    record.id: record for record in map(_format, read_csv("formats"))
}
#: Those of them that the app's own engine runs on every device.
FORMATS: Final[dict[str, NumberFormat]] = {
    record.id: record for record in STORAGE_FORMATS.values() if record.engine == "yes"
}
#: And those that it runs on some.
ENGINE_FORMATS: Final[dict[str, NumberFormat]] = {
    record.id: record for record in STORAGE_FORMATS.values() if record.engine
}


def number_format(id: str, use: Use) -> NumberFormat:
    """Look a format up by its id.

    Raises:
        FormatError: the id is unknown, or this use is not possible in it.
    """
    return _among(STORAGE_FORMATS, id, use)


def engine_format(id: str, use: Use) -> NumberFormat:
    """Look up a format that the app's own engine runs; a device may still lack it.

    Raises:
        FormatError: the engine has no such format for this use.
    """
    return _among(ENGINE_FORMATS, id, use)


def activation_format(id: str) -> NumberFormat:
    """Look up a format for what passes from operator to operator: one without scales of its own.

    Raises:
        FormatError: the id is unknown, or the format is packed in groups.

    >>> activation_format("bf16").vector_bytes(4)
    8
    """
    plain = {record.id: record for record in STORAGE_FORMATS.values() if not record.scales}
    if id not in plain:
        raise FormatError(one_of("A format for activations", id, plain, "formats"))
    return plain[id]


def _among(formats: dict[str, NumberFormat], id: str, use: Use) -> NumberFormat:
    choices = [record.id for record in formats.values() if use in record.uses]
    if id not in choices:
        raise FormatError(one_of(f"A format for {use}", id, choices, "formats"))
    return formats[id]
