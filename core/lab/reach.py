"""Up to where a calibration measured, and what lies beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.analytic.params import layer_kinds, layer_weights
from core.catalog.model import ModelSpec
from core.lab.checked_json import Reader
from core.lab.run_shape import RunShape

#: A matrix up to so many times as large as the largest that was timed is read like it.
_FARTHER: Final = 2.0


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest of what was timed.

    Attributes:
        batch: sequences of a decode step. context_tokens: that a new token looked at.
        prefill_tokens: rows of a pass. matrix_elements: of a layer's matrix.
    """

    batch: int
    context_tokens: int
    prefill_tokens: int
    matrix_elements: int

    def beyond(self, shape: RunShape, model: ModelSpec) -> tuple[str, ...]:
        """In what a run lies outside, as clauses; empty where it does not."""
        rows = shape.batch * max(shape.pieces)
        context = shape.prompt_tokens + shape.new_tokens
        if not shape.cached:
            rows = shape.batch * context
        matrix = largest_matrix(model)
        found = (
            (shape.batch > self.batch, f"a batch of {shape.batch}, and {self.batch} was calibrated"),
            (
                context > self.context_tokens,
                f"a context of {context:,}, and {self.context_tokens:,} was calibrated",
            ),
            (
                rows > self.prefill_tokens,
                f"{rows:,} tokens in one step, and {self.prefill_tokens:,} were calibrated",
            ),
            (
                matrix > _FARTHER * self.matrix_elements,
                f"a matrix of {matrix / 1e6:.0f} million weights, and one of "
                f"{self.matrix_elements / 1e6:.0f} million was calibrated",
            ),
        )
        return tuple(clause for is_beyond, clause in found if is_beyond)

    @classmethod
    def from_reader(cls, reader: Reader) -> Reach:
        """Read it back, or raise a RecordError."""
        return cls(
            batch=reader.whole("batch", 1),
            context_tokens=reader.whole("context_tokens", 1),
            prefill_tokens=reader.whole("prefill_tokens", 1),
            matrix_elements=reader.whole("matrix_elements", 1),
        )


#: Of calibrations made before the reach was kept: single sequences at what a full one timed then.
FORMER_REACH: Final = Reach(1, 2048, 2048, 5_505_024)


def largest_matrix(model: ModelSpec) -> int:
    """Weights of the largest matrix in a layer; the head, which is read once, is not asked."""
    return max(
        weight.out_features * weight.in_features
        for layer, _ in layer_kinds(model)
        for weights in layer_weights(layer, model.hidden_size).values()
        for weight in weights
    )
