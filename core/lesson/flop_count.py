"""FLOPs of one token of the model that runs here: PyTorch's own count beside the operator table's.

Counting needs PyTorch and takes seconds, so it was done once and is kept in ``assets/flop_counts.json``;
a test counts again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from core.analytic.operators import operators
from core.catalog.assets import FOLDER
from core.catalog.models import model


@dataclass(frozen=True, slots=True)
class FlopCount:
    """One decode step of a single sequence.

    Attributes:
        model, context: what was counted, and the tokens that it looked at, itself included.
        torch_version, date: with what, and when.
        flops: operator -> FLOPs; operators without any are left out.
    """

    model: str
    context: int
    torch_version: str
    date: str
    flops: Mapping[str, int]

    @property
    def total(self) -> int:
        """FLOPs of the whole step."""
        return sum(self.flops.values())

    @property
    def predicted(self) -> float:
        """The same from the operator table."""
        table = operators(
            model(self.model), batch=1, new_tokens=1, context=self.context, weights="fp32", kv="fp32"
        )
        return float(table.total("flops"))


@cache
def flop_count() -> FlopCount:
    """The count that is kept.

    >>> flop_count().total == flop_count().predicted
    True
    """
    return FlopCount(**json.loads((FOLDER / "flop_counts.json").read_text(encoding="utf-8")))
