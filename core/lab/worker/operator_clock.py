"""Times of single operators, layer by layer, as samples for the fit.

The engine's own list of operators is run with a clock between its entries. Each sample stands beside
the bytes and FLOPs that the operator table counts for that operator, so a rate means in the
prediction what it meant here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace
from typing import Final

import torch

from core.analytic.operators import operators
from core.analytic.table import Operators
from core.catalog.model import Layer
from core.engine.batch import Batch, Sequence
from core.engine.clock import synchronise
from core.engine.engine import Engine
from core.engine.measure import clocked
from core.engine.pages import PageTable
from core.engine.runner import make_runner, native_part
from core.engine.sampling import Sampler, Sampling
from core.engine.transformer import Pass
from core.lab.fit import Sample
from core.lab.pace import Pace
from core.lab.timing import spread, warm_up
from core.lab.worker.steadiness import Steadiness, always_steady, repeated

_MOST_WARM_UP: Final = 6
#: Passes at one size end after so many seconds, so that a calibration on a busy host ends too.
PATIENCE_S: Final = 1.0
#: A pass that takes longer has little left to warm up in a second one.
_SLOW_S: Final = 0.1
_LEAST_PASSES: Final = 2
_LAST_TOKEN: Final = {"final_norm", "lm_head", "sample"}
_PARTS: Final = 2
#: Where the layers begin, behind a lookup that finds the program cold and one that does not.
_LAYERS: Final = 2
#: The choice of the token, from all of the logits and from a part of them.
_CHOICES: Final = 2


@dataclass(frozen=True, slots=True)
class PassShape:
    """One forward pass of equal sequences: new tokens of each, at a context of each."""

    new_tokens: int
    context: int
    batch: int = 1


@dataclass(frozen=True, slots=True)
class _Timed:
    """An operator, the layer it belongs to (None outside the layers), and the part of it that is run."""

    layer: Layer | None
    name: str
    run: Callable[[Pass], None]
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Care:
    """What is done so that passes of a made-up model take what those of a real one do.

    Attributes:
        before_each: called before every pass. A made-up model of few layers would find its weights and
            its KV cache in the processor's cache, where those of a real model do not fit.
        warming: so many layers at the start are run and not sampled: emptied caches also make the program
            itself slow for a moment, which the many layers of a real model hide.
        patience_s: passes at one size end after so long.
        steadiness: tells whether the cores changed their speed beside a pass, which is then made again; None
            where nobody looks.
    """

    before_each: Callable[[], None] = lambda: None
    warming: int = 0
    patience_s: float = PATIENCE_S
    steadiness: Steadiness | None = None


class OperatorClock:
    """Runs passes of some layers of an engine and times each operator.

    Args:
        engine: whose operators are timed. layers: indices of the layers that take part; their order
            is the engine's. care: for the conditions.
    """

    def __init__(
        self,
        engine: Engine,
        layers: Ordered[int],
        care: Care | None = None,
    ) -> None:
        self._engine, self._care = engine, care or Care()
        self._sampler = Sampler(Sampling(), engine.device)
        model = engine.model
        blocks = [model.blocks[index] for index in layers]
        self._warming = sum(len(block.operators()) for block in blocks[: self._care.warming])
        part = replace(model, blocks=blocks)
        self._runner = make_runner(part, engine.device)
        self._timed = [
            _Timed(None, "embedding", model.embedding),
            _Timed(None, "embedding", model.embedding),
            *(_Timed(block.layer, *step) for block in blocks for step in block.operators()),
            _Timed(None, "final_norm", model.final_norm),
            _Timed(None, "lm_head", model.lm_head),
            _Timed(None, "sample", self._sample),
            # One model has one vocabulary; a part of it shows how the choice grows with its size.
            _Timed(None, "sample", self._sample_part, 1 / _PARTS),
        ]

    def samples(self, one: PassShape, repeats: int, pace: Pace) -> list[Sample]:
        """Time ``repeats`` equal passes, one sample an operator.

        What works on the last token alone is sampled where that is the only one. ``pace`` is the machine's
        right before; a sample has that of the passes themselves.
        """
        deadline = time.perf_counter() + self._care.patience_s
        slow = sum(self._pass(one)) > _SLOW_S
        warm_up(lambda: sum(self._pass(one)), 1 if slow else _MOST_WARM_UP)
        found = repeated(
            lambda: self._pass(one),
            repeats,
            self._care.steadiness or always_steady(pace.call_s),
            lambda made: made < _LEAST_PASSES or time.perf_counter() < deadline,
        )
        least = min(_LEAST_PASSES, repeats)
        passes, pace = found.kept(least), replace(pace, call_s=found.call_s(least))
        wanted = self._sampled(one)
        usual_s = typical([[seconds[index] for index in wanted] for seconds in passes])
        tables: dict[Layer | None, Operators] = {}
        samples = []
        for index, seconds in zip(wanted, usual_s, strict=True):
            timed = self._timed[index]
            if timed.layer not in tables:
                tables[timed.layer] = self._table(timed.layer, one)
            table = tables[timed.layer]
            row = table.index(timed.name)
            sample = Sample(
                operator=timed.name,
                kind=table.kinds[row],
                format=table.formats[row],
                rows=int(table.tokens[row]),
                num_bytes=float(table.streamed_bytes[row]) * timed.part,
                flops=float(table.flops[row]),
                seconds=seconds,
                spread=spread([each[index] for each in passes]).relative,
                pace=pace,
                beside=self._engine.weights,
            )
            samples.append(sample)
        return samples

    def _sampled(self, one: PassShape) -> list[int]:
        """Places of the operators that give a sample."""
        warming = range(_LAYERS, _LAYERS + self._warming)
        return [
            index
            for index, timed in enumerate(self._timed)
            if index > 0 and index not in warming and (one.new_tokens == 1 or timed.name not in _LAST_TOKEN)
        ]

    def _sample(self, values: Pass) -> None:
        self._sampler.choose(values.logits).tolist()

    def _sample_part(self, values: Pass) -> None:
        self._sampler.choose(values.logits[:, : values.logits.shape[1] // _PARTS]).tolist()

    def step_s(self, one: PassShape) -> float:
        """Seconds of the operators of one step, as they are timed: each of them once."""
        # Without the first lookup, which finds the program cold, and the choice from a part of the logits.
        return sum(self._pass(one)[1:-1])

    def clock_costs(self, one: PassShape, repeats: int) -> list[float]:
        """Seconds that timing adds to each operator, from passes with and without a clock in turn.

        Nothing where a whole step is one call: its own clock is read between operators, and nobody waits.
        """
        if native_part(self._runner, self._values(one)) is not None:
            return [0.0]
        costs_s = []
        for _ in range(repeats):
            clocked_s = sum(self._pass(one))
            costs_s.append((clocked_s - self._plain_pass(one)) / len(self._timed))
        return costs_s

    @torch.inference_mode()
    def _plain_pass(self, one: PassShape) -> float:
        values = self._values(one)
        self._care.before_each()
        synchronise(self._engine.device)
        before = time.perf_counter()
        for timed in self._timed:
            timed.run(values)
        synchronise(self._engine.device)
        return time.perf_counter() - before

    def _values(self, one: PassShape) -> Pass:
        engine = self._engine
        tokens = [(7 * index + 11) % 256 for index in range(one.context)]
        plan = []
        for index in range(one.batch):
            place = PageTable(one.context, [index])  # a page each, as a cache in one piece has
            sequence = Sequence(tokens, num_cached=one.context - one.new_tokens, table=place)
            plan.append((sequence, one.new_tokens))
        return Pass(Batch.build(plan, engine.device), engine.reserve(one.batch * one.context))

    @torch.inference_mode()
    def _pass(self, one: PassShape) -> list[float]:
        values = self._values(one)
        step = native_part(self._runner, values)
        self._care.before_each()
        if step is None:
            return self._run(self._timed, values)
        first = self._run(self._timed[:_LAYERS], values)
        inner = [seconds for _, seconds in step.timed(values)]
        return [*first, *inner, *self._run(self._timed[-_CHOICES:], values)]

    def _run(self, some: list[_Timed], values: Pass) -> list[float]:
        """Run operators one by one, with a clock between them."""
        operators = ((timed.name, timed.run) for timed in some)
        return [seconds for _, seconds in clocked(operators, values, self._engine.device)]

    def _table(self, layer: Layer | None, one: PassShape) -> Operators:
        """The operator table of one pass through a single layer of this kind."""
        engine = self._engine
        return operators(
            replace(engine.spec, layers=(layer or engine.spec.layers[0],)),
            batch=one.batch,
            new_tokens=one.new_tokens,
            context=one.context,
            weights=engine.weights,
            kv=engine.kv,
        )


def typical(passes: Ordered[Ordered[float]]) -> list[float]:
    """Seconds of each operator in a pass that takes, as a whole, the median of all passes.

    Medians, all times one factor. Each operator has a long call now and then; its median leaves those out,
    and the sum over the operators of a pass does not.

    >>> typical([[1.0, 3.0], [2.0, 2.0], [2.0, 3.0]])   # medians 2 and 3; the middle pass takes 4
    [1.6, 2.4000000000000004]
    """
    medians = [statistics.median(each) for each in zip(*passes, strict=True)]
    factor = statistics.median(sum(one) for one in passes) / sum(medians)
    return [seconds * factor for seconds in medians]
