"""A small whole record of a comparison of formats, made by hand."""

from dataclasses import replace

from core.lab.quality import CACHES, WEIGHTS, QualityRequest
from core.lab.quality_record import FormatRow, MapRecord, QualityRecord
from core.lab.quality_tensor import tensor_record
from core.lab.record_parts import HostRecord
from core.numerics.outlier import outlier_tensor

HOST = HostRecord("cpu", "", "", "A processor", 2, 8 << 30, "Linux 6", "3.11.7", "2.13.0", 2)
REFERENCE = FormatRow(
    weights="fp32", kv="fp32", weight_bytes=538_060_032, cache_bytes_per_token=46_080,
    step_s=(0.030, 0.029, 0.032), nll=3.265, nll_change=0.0, nll_change_error=0.0,
    kl=0.0, kl_error=0.0, kl_worst=0.0, agreement=1.0,
)  # fmt: skip
#: Format -> bytes and divergence, as a run of the embedded model gave them.
_WEIGHTS = {
    "int8": (134_959_488, 5.76e-3),
    "int4": (94_835_328, 2.39e-3),
    "int8-dynamic": (163_848_960, 4.01e-2),
    "bf16": (269_030_016, 9.46e-4),
    "fp16": (269_030_016, 1.64e-5),
}
#: Of a format that is not among them.
_OTHER = (136_000_000, 8.0e-3)
_CACHES = {
    "int8": (11_880, 7.3e-4),
    "int4": (7_200, 4.5e-2),
    "bf16": (23_040, 2.4e-5),
    "fp16": (23_040, 3.7e-7),
}


def quality_record(request: QualityRequest | None = None, noisy: tuple[str, ...] = ()) -> QualityRecord:
    """A record of what was asked for; every format by default."""
    asked = request or QualityRequest()
    rows = [REFERENCE]
    for fmt in asked.weights:
        size, kl = _WEIGHTS.get(fmt, _OTHER)
        rows.append(_row(replace(REFERENCE, weights=fmt, weight_bytes=size), kl))
    for fmt in asked.kv:
        size, kl = _CACHES[fmt]
        rows.append(_row(replace(REFERENCE, kv=fmt, cache_bytes_per_token=size), kl))
    return QualityRecord(
        created_at="2026-11-30T02:00:00+00:00",
        host=HOST,
        request=asked,
        model_name="SmolLM2 135M Instruct",
        stored_as=("q4_1", "q8_0"),
        text_title="Alice's Adventures in Wonderland, chapter I (Lewis Carroll, 1865)",
        window=256,
        predicted=asked.tokens - 2,
        context=256,
        rows=tuple(rows),
        maps=_maps(asked),
        tensor=tensor_record(outlier_tensor(9.0), asked.layer, asked.operator),
        noisy=noisy,
    )


def _row(row: FormatRow, kl: float) -> FormatRow:
    return replace(
        row, kl=kl, kl_error=kl / 20, kl_worst=kl * 10, nll=row.nll + kl, nll_change=kl,
        nll_change_error=kl / 3, agreement=1 - 3 * kl, step_s=(0.02, 0.019, 0.021),
    )  # fmt: skip


def _maps(asked: QualityRequest) -> tuple[MapRecord, ...]:
    operators = ("qkv", "output", "gate_up", "down")
    known: list[tuple[str, str, tuple[str, ...]]]
    known = [("weights", fmt, operators) for fmt in asked.weights if fmt in WEIGHTS]
    known += [
        ("inputs", name, operators) for name in ("int8, one scale a token", "int8, one scale for all tokens")
    ]
    known += [("cache", fmt, ("keys", "values")) for fmt in asked.kv if fmt in CACHES]
    return tuple(
        MapRecord(
            of,
            name,
            columns,
            tuple(tuple(40.0 - place - layer / 3 for place in range(len(columns))) for layer in range(30)),
            tuple((None, *(30.0 for _ in columns[1:])) for _ in range(30)),
        )
        for place, (of, name, columns) in enumerate(known)
    )
