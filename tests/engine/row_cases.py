"""Queries of several sequences over scattered pages, and how far a way of attending is from the plain one.

Run as a program it holds the Triton kernel against the plain way in Triton's interpreter, which must be
switched on before Triton is loaded, so in a process of its own; it prints the errors by case.
"""

import importlib
import json
import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from core.catalog.model import Attention
from core.engine.gpu.block_table import BlockTable, Seen
from core.engine.gpu.row_attention import RowAttention, gathered_rows
from core.engine.kv_cache import KVLayer, make_layer
from core.engine.linear import DTYPES
from core.engine.pages import PageTable


@dataclass(frozen=True)
class Case:
    kv: str
    activations: str
    page_tokens: int
    heads: tuple[int, int, int] = (4, 2, 32)
    window: int | None = None
    #: Contexts around the edges of a page of 16 and of a tile of 64, the last one in several parts.
    contexts: tuple[int, ...] = (1, 16, 17, 130)
    new_tokens: int = 1

    @property
    def shape(self) -> Attention:
        return Attention(*self.heads, window=self.window)


CASES = {
    **{
        f"{kv} cache, pages of {page}": Case(kv, activations, page)
        for kv, activations in (("fp32", "fp32"), ("bf16", "bf16"), ("int8", "bf16"))
        for page in (1, 2, 16)
    },
    "fp16": Case("fp16", "fp16", 16),
    "bf16 cache, fp32 queries": Case("bf16", "fp32", 16),
    "int8 cache, fp32 queries": Case("int8", "fp32", 16),
    "three queries a key, odd width": Case("bf16", "bf16", 2, heads=(9, 3, 24)),
    "one query a key, narrow heads": Case("fp32", "fp32", 16, heads=(3, 3, 8)),
    "one key head": Case("int8", "bf16", 16, heads=(8, 1, 64)),
    "a window within a page": Case("fp32", "fp32", 16, window=6),
    "a window over pages": Case("int8", "fp32", 2, window=70),
    "guesses to verify": Case("fp32", "fp32", 4, contexts=(5, 17, 66), new_tokens=4),
    "a page of a whole sequence": Case("fp32", "fp32", 300, contexts=(7, 290)),
}
#: Largest error over largest value, by the format of the queries; both ways round to it.
TOLERANCES = {"fp32": 1e-5, "fp16": 3e-3, "bf16": 2e-2}


def scattered(case: Case, device: torch.device) -> tuple[KVLayer, list[Seen]]:
    """A layer whose free slots hold NaN, and what each sequence sees of it."""
    generator = torch.Generator().manual_seed(0)
    counts = [-(-context // case.page_tokens) for context in case.contexts]
    pages = torch.randperm(2 * sum(counts), generator=generator).tolist()
    layer = make_layer(len(pages) * case.page_tokens, case.shape, case.kv, device)
    for tensor in layer.tensors:
        tensor.fill_(torch.nan if tensor.is_floating_point() else 99)
    seen = []
    for count, context in zip(counts, case.contexts, strict=True):
        table = PageTable(case.page_tokens, [pages.pop() for _ in range(count)])
        fresh = torch.randn(context, 2 * case.shape.kv_features, generator=generator)
        slots = torch.tensor(table.slots(0, context), device=device)
        layer.write(slots, fresh.to(device, DTYPES[case.activations]))
        seen.append(Seen(table, context, case.new_tokens))
    return layer, seen


def queries(case: Case, device: torch.device) -> Tensor:
    """A part of wider rows, as queries are of the fused product."""
    rows, width = len(case.contexts) * case.new_tokens, case.shape.query_features
    wide = torch.randn(rows, 2 * width, generator=torch.Generator().manual_seed(1))
    return wide.to(device, DTYPES[case.activations])[:, :width]


def error(case: Case, attend: RowAttention, device: torch.device) -> float:
    """Largest difference from the plain way over its largest value."""
    layer, seen = scattered(case, device)
    blocks, asked = BlockTable.build(seen, device), queries(case, device)
    plain = gathered_rows(asked, layer, case.shape, blocks).float()
    found = attend(asked, layer, case.shape, blocks).float()
    return float((found - plain).abs().max() / plain.abs().max())


if __name__ == "__main__":
    ours = importlib.import_module("core.engine.gpu.triton_attention")
    with torch.inference_mode():
        errors = {name: error(case, ours.triton_rows, torch.device("cpu")) for name, case in CASES.items()}
    json.dump(errors, sys.stdout)
