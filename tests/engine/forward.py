"""Logits of an engine's forward pass, piece by piece."""

import torch
from torch import Tensor

from core.engine.batch import Batch, Sequence
from core.engine.engine import Engine
from core.engine.pages import PageTable


def logits(engine: Engine, ids: list[int], pieces: list[int], *, first_slot: int = 0) -> list[Tensor]:
    """The last row's logits after each piece; the pieces add up to the whole of ``ids``."""
    pool = engine.reserve(first_slot + len(ids))
    sequence = Sequence(list(ids), table=region(first_slot))
    rows = []
    for count in pieces:
        batch = Batch.build([(sequence, count)], engine.device)
        rows.append(engine.runner.run(batch, pool).logits[0].float().clone())
        sequence.num_cached += count
    return rows


def region(first_slot: int) -> PageTable:
    """A table whose tokens lie one after the other from this slot on."""
    return PageTable(1, list(range(first_slot, first_slot + 1000)))


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Largest difference over the largest expected value."""
    return float((found - expected).abs().max() / expected.abs().max())


def random_ids(count: int, vocab: int = 256, seed: int = 0) -> list[int]:
    ids: list[int] = torch.randint(0, vocab, (count,), generator=torch.Generator().manual_seed(seed)).tolist()
    return ids
