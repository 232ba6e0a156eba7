"""Files that mix formats: some tensors of some layers are kept finer than the rest.

The names of such files ("Q4_K_M") are recipes, not layouts; ``assets/mixes.csv`` has the recipes, and
``assets/formats.csv`` gives each the layout of most of its tensors. They are llama.cpp's for dense
models without an importance matrix; a model with eight experts, or of 70B, differs in a few tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Literal, cast

from core.catalog.assets import read_csv

#: Tensors that a recipe names: the head, the values' projection, the MLP's last matrix.
MixedPart = Literal["head", "value", "down"]


@dataclass(frozen=True, slots=True)
class Finer:
    """One exception of a mix: a part, its format, and in which layers it has it.

    Attributes:
        layers: "all"; "first four"; "first eighth"; "more": the first and last eighth, and every third
            between.
    """

    part: MixedPart
    format: str
    layers: str

    def share(self, num_layers: int) -> float:
        """The share of the layers that have it.

        >>> Finer("down", "q6_k", "more").share(32), Finer("value", "q5_k", "first four").share(32)
        (0.5, 0.125)
        """
        chosen = sum(_has(self.layers, layer, num_layers) for layer in range(num_layers))
        return chosen / num_layers


def _has(rule: str, layer: int, num_layers: int) -> bool:
    eighth = num_layers // 8
    if rule == "all":
        return True
    if rule == "first four":
        return layer < 4
    if rule == "first eighth":
        return layer < eighth
    return layer < eighth or layer >= 7 * num_layers // 8 or (layer - eighth) % 3 == 2


@cache
def mixes() -> dict[str, tuple[Finer, ...]]:
    """The exceptions of every mix, by its id.

    >>> [finer.part for finer in mixes()["q4_k_m"]]
    ['head', 'down', 'value']
    """
    rows = groupby(read_csv("mixes"), key=lambda row: row["mix"])
    return {
        key: tuple(Finer(cast("MixedPart", row["part"]), row["format"], row["layers"]) for row in group)
        for key, group in rows
    }
