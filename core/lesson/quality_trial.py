"""What page 12 compares and what it says of it: the request behind its controls, and rows in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.lab.experiment import Experiment
from core.lab.quality import CACHES, WEIGHTS, QualityRequest
from core.lab.quality_record import FormatRow, MapRecord, QualityRecord
from core.lesson.amount import Value

#: What can be compared, as a page calls it.
ALL: Final = "all formats"
COMPARED: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ALL: (WEIGHTS, CACHES),
    "weight formats": (WEIGHTS, ()),
    "cache formats": ((), CACHES),
    "int8 and int4 only": (("int8", "int4"), ("int8", "int4")),
}
#: A divergence is written in thousandths of a nat.
THOUSAND: Final = 1e3
#: The encodings of a file, in words.
_STORED: Final = {
    "q4_1": "4 bits in groups of 32",
    "q8_0": "8 bits in groups of 32",
    "plain": "plain numbers",
}


def request_of(values: Mapping[str, Value]) -> QualityRequest:
    """The request behind a page's settings."""
    weights, kv = COMPARED[str(values["compare"])]
    return QualityRequest(weights=weights, kv=kv)


def experiment_of(request: QualityRequest) -> Experiment:
    """The lab's job for a request."""
    return Experiment("quality", request.to_json(), "the comparison of formats")


def reference_words(record: QualityRecord) -> str:
    """What the formats are compared with, and that it was rounded itself."""
    layers, table = (_STORED.get(name, name) for name in record.stored_as)
    said = (
        "The reference is the same stored weights in fp32, with a cache in fp32. "
        f"They are not the weights that were trained: the file keeps the layers' matrices in {layers} and "
        f"the table of words in {table}."
    )
    if record.stored_as[0] == "q4_1":
        said += (
            " So int4 in groups of 32, which has the same grid, loses next to nothing in the layers. Its row "
            "shows 16-bit products and an int8 head; it does not show what 4 bits cost an unrounded model."
        )
    return said


def row_name(row: FormatRow) -> str:
    """A row's formats: what differs from the reference."""
    if row.weights == row.kv == "fp32":
        return "fp32, the reference"
    return f"{row.weights} weights" if row.kv == "fp32" else f"{row.kv} cache"


def map_title(found: MapRecord) -> str:
    """A map's title.

    >>> map_title(MapRecord("cache", "int8", ("keys", "values"), ((1.0, 2.0),), ((1.0, 2.0),)))
    'Keys and values in int8, signal to noise'
    """
    subject = {"weights": "Weights in", "inputs": "Inputs of the products in", "cache": "Keys and values in"}
    return f"{subject[found.of]} {found.name}, signal to noise"


def map_names(record: QualityRecord) -> dict[str, MapRecord]:
    """Each map by its title, in the record's order."""
    return {map_title(found): found for found in record.maps}
