"""What a visitor may ask of the comparison of formats: which formats, how much text, which tensor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from core.catalog.formats import FORMATS, engine_format
from core.errors import RequestError

#: Every format is held against these weights and this cache.
REFERENCE: Final = "fp32"
#: The formats of the engine, those first that differ most from each other.
WEIGHTS: Final = ("int8", "int4", "int8-dynamic", "fp8-weight-only", "bf16", "fp16")
CACHES: Final = ("int8", "int4", "bf16", "fp16")
#: The products of a layer, by the engine's names.
OPERATORS: Final = ("qkv", "output", "gate_up", "down")
LEAST_TOKENS: Final = 16
#: The reference's logits are kept while the others are compared: about 200 kB a token.
MOST_TOKENS: Final = 2048
LAYERS: Final = 30


@dataclass(frozen=True, slots=True)
class QualityRequest:
    """One comparison of formats on the embedded model.

    Attributes:
        weights: weight formats, each beside a cache in fp32. kv: cache formats, each beside weights in fp32.
        tokens: of the text. layer, operator: the matrix that is shown as a histogram.
    """

    weights: tuple[str, ...] = WEIGHTS
    kv: tuple[str, ...] = CACHES
    tokens: int = 512
    layer: int = 0
    operator: str = "down"

    def validate(self) -> None:
        """Check every limit.

        Raises:
            RequestError, FormatError: the first limit that does not hold, as a sentence.
        """
        for fmt in self.weights:
            engine_format(fmt, "weights")
        for fmt in self.kv:
            engine_format(fmt, "kv")
        for name, chosen in (("weights", self.weights), ("kv", self.kv)):
            if len(set(chosen)) != len(chosen):
                raise RequestError(f"Each of the {name} formats may be named once; got {', '.join(chosen)}.")
        if REFERENCE in (*self.weights, *self.kv):
            raise RequestError(f"{REFERENCE} is what the others are held against; leave it out.")
        if not self.weights and not self.kv:
            raise RequestError(
                "There must be a format to compare; got none. Choose one of the weights or kv."
            )
        _within("tokens", self.tokens, LEAST_TOKENS, MOST_TOKENS)
        _within("layer", self.layer, 0, LAYERS - 1)
        if self.operator not in OPERATORS:
            raise RequestError(
                f"The operator must be one of {', '.join(OPERATORS)}; got {str(self.operator)[:40]!r}."
            )

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return {**asdict(self), "weights": list(self.weights), "kv": list(self.kv)}

    @classmethod
    def from_json(cls, data: object) -> QualityRequest:
        """Read a request back and validate it.

        Raises:
            RequestError, FormatError: it is not an object, has a field too many, or one of another type.
        """
        if not isinstance(data, dict):
            raise RequestError(f"A request must be an object; got {type(data).__name__}.")
        known = cls().to_json()
        for name, value in data.items():
            if name not in known:
                raise RequestError(f"A request has no field {name!r}; it has {', '.join(known)}.")
            if type(value) is not type(known[name]) or (
                isinstance(value, list) and not all(isinstance(item, str) for item in value)
            ):
                raise RequestError(
                    f"The field {name!r} must be as {known[name]!r} is; got {str(value)[:40]!r}."
                )
        lists = {name: tuple(data[name]) for name in ("weights", "kv") if name in data}
        request = cls(**{**data, **lists})
        request.validate()
        return request


def compared_formats(use: str) -> tuple[str, ...]:
    """Every format of the engine that can be compared, for "weights" or "kv", in the catalogue's order."""
    return tuple(record.id for record in FORMATS.values() if use in record.uses and record.id != REFERENCE)


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:,} to {high:,}; got {value:,}.")
