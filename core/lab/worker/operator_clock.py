"""Times of single operators, layer by layer, as samples for the fit.

The engine's own list of operators is run with a clock between its entries. Each sample stands beside
the bytes and FLOPs that the operator table counts for that operator, so a rate means in the
prediction what it meant here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from core.analytic.operators import operators
from core.analytic.table import Operators
from core.catalog.model import Layer
from core.engine.batch import Batch, Sequence
from core.engine.clock import synchronise
from core.engine.engine import Engine
from core.engine.sampling import Sampler, Sampling
from core.engine.transformer import Operator, Pass
from core.lab.fit import Sample
from core.lab.timing import spread, warm_up

_MOST_WARM_UP: Final = 6


@dataclass(frozen=True, slots=True)
class _Timed:
    """An operator, and the layer it belongs to; None outside the layers."""

    layer: Layer | None
    name: str
    run: Operator


class OperatorClock:
    """Runs passes of some layers of an engine and times each operator.

    Args:
        engine: whose operators are timed. layers: indices of the layers that take part; their order
            is the engine's.
    """

    def __init__(self, engine: Engine, layers: Ordered[int]) -> None:
        self._engine = engine
        self._sampler = Sampler(Sampling(), engine.device)
        model = engine.model
        blocks = [model.blocks[index] for index in layers]
        self._timed = [
            _Timed(None, "embedding", ("embedding", model.embedding)),
            *(_Timed(block.layer, step[0], step) for block in blocks for step in block.operators()),
            _Timed(None, "final_norm", ("final_norm", model.final_norm)),
            _Timed(None, "lm_head", ("lm_head", model.lm_head)),
            _Timed(None, "sample", ("sample", self._sample)),
        ]

    def samples(self, new_tokens: int, context: int, repeats: int) -> list[Sample]:
        """Time ``repeats`` passes of ``new_tokens`` tokens at a context, one sample an operator."""
        warm_up(lambda: sum(self._pass(new_tokens, context)), _MOST_WARM_UP)
        passes = [self._pass(new_tokens, context) for _ in range(repeats)]
        tables: dict[Layer | None, Operators] = {}
        samples = []
        for timed, seconds in zip(self._timed, zip(*passes, strict=True), strict=True):
            if timed.layer not in tables:
                tables[timed.layer] = self._table(timed.layer, new_tokens, context)
            samples.append(_sample(tables[timed.layer], timed.name, seconds))
        return samples

    def samplings(self, vocab_sizes: Ordered[int], repeats: int) -> list[Sample]:
        """Time the choice of a token from logits of several widths, which one model does not have."""
        engine, samples = self._engine, []
        table = self._table(None, 1, 1)
        row = table.index("sample")
        element_bytes = float(table.activation_bytes[row]) / engine.spec.vocab_size
        dtype = engine.model.final_norm_weight.dtype
        for size in vocab_sizes:
            logits = torch.rand(1, size, device=engine.device).to(dtype)
            seconds = [self._sampling_s(logits) for _ in range(repeats + 1)][1:]
            timed = _sample(table, "sample", seconds)
            samples.append(replace(timed, num_bytes=element_bytes * size))
        return samples

    def _sampling_s(self, logits: Tensor) -> float:
        before = time.perf_counter()
        self._sampler.choose(logits).tolist()
        return time.perf_counter() - before

    def _sample(self, values: Pass) -> None:
        self._sampler.choose(values.logits).tolist()

    @torch.inference_mode()
    def _pass(self, new_tokens: int, context: int) -> list[float]:
        engine = self._engine
        tokens = [(7 * index + 11) % 256 for index in range(context)]
        plan = [(Sequence(tokens, num_cached=context - new_tokens), new_tokens)]
        values = Pass(Batch.build(plan, engine.device), engine.reserve(context))
        times_s = []
        synchronise(engine.device)
        before = time.perf_counter()
        for timed in self._timed:
            timed.run[1](values)
            synchronise(engine.device)
            now = time.perf_counter()
            times_s.append(now - before)
            before = now
        return times_s

    def _table(self, layer: Layer | None, new_tokens: int, context: int) -> Operators:
        """The operator table of one pass through a single layer of this kind."""
        engine = self._engine
        one = replace(engine.spec, layers=(layer or engine.spec.layers[0],))
        return operators(
            one, batch=1, new_tokens=new_tokens, context=context, weights=engine.weights, kv=engine.kv
        )


def _sample(table: Operators, name: str, seconds: Ordered[float]) -> Sample:
    row = table.index(name)
    summary = spread(seconds)
    return Sample(
        operator=name,
        kind=table.kinds[row],
        format=table.formats[row],
        rows=int(table.tokens[row]),
        num_bytes=float(table.streamed_bytes[row]),
        flops=float(table.flops[row]),
        seconds=summary.median_s,
        spread=summary.relative,
    )
