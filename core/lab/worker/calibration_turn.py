"""One turn of a calibration: everything that is timed in one format of weights, once."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from core.engine.engine import Engine
from core.engine.records import Request
from core.engine.scheduler import Serving
from core.lab.fit import Sample
from core.lab.pace import Pace
from core.lab.timing import spread
from core.lab.worker.ceilings import MemoryProbe
from core.lab.worker.effort import SHORT, Effort
from core.lab.worker.operator_clock import Care, OperatorClock, PassShape
from core.lab.worker.steadiness import Steadiness, repeated

#: Other formats of the cache, beside one format of weights each: only what touches the cache is timed.
OTHER_CACHES: Final = {"bf16": ("fp16",), "int8-dynamic": ("fp32",), "int8": ("int8", "int4")}
#: Those that are timed in every round; the others in the first.
OFTEN: Final = ("int8",)
_OF_THE_CACHE: Final = {"attention", "kv_write"}
#: Weights that some devices only store, and widen slowly for every product: a full calibration times them
#: once, at few sizes, and a quick one never.
STORED: Final = {"fp8-weight-only": "bf16"}
#: Of these one round of a full calibration is enough, and a quick one times them at few sizes.
SELDOM: Final = ("fp32", "int8-g32")
#: Layers that run before the first that is sampled: two pairs.
_WARMING: Final = 4
#: Steps of a generation that tells what a whole step takes; it is made again so many times at most, and so
#: few steady ones are enough.
_STEPS: Final = 4
_MOST_AGAIN: Final = 2
_LEAST_WHOLE: Final = 2
#: Passes that tell which operators a step has.
_FEW_PASSES: Final = 2


@dataclass(frozen=True, slots=True)
class WholeStep:
    """What a whole decode step takes more than its operators one by one, and what timing added to those.

    Attributes:
        more_s: than the operators as they were timed; the step is one of a generation, until the next.
        calls: (operator, format) of each. clock_s: added by timing, per call.
    """

    more_s: float
    calls: tuple[tuple[str, str], ...]
    clock_s: float

    @property
    def fixed_s(self) -> float:
        """What a step costs besides its operators: planning, laying out, the end of the loop."""
        return self.more_s + len(self.calls) * self.clock_s


@dataclass(frozen=True, slots=True)
class Turn:
    """What one format gave.

    Attributes:
        samples: of its operators. step: a whole step of it. reads: bytes per second, as checks beside them
            found it.
    """

    samples: list[Sample]
    step: WholeStep
    reads: list[float]


@dataclass(frozen=True, slots=True)
class Measuring:
    """Times one engine.

    Attributes:
        engine: a calibration model's. effort: how much is measured. memory: the checks beside it.
        steadiness: of the cores, over the whole calibration. again: the format had a turn before.
    """

    engine: Engine
    effort: Effort
    memory: MemoryProbe
    steadiness: Steadiness
    again: bool = False

    def turn(self, progress: Callable[[float], None]) -> Turn:
        """All samples of the format: single tokens through all layers, many through a pair."""
        passes = list(self._passes())
        samples: list[Sample] = []
        reads: list[float] = []
        for index, (clock, one, repeats) in enumerate(passes):
            progress((1 + index) / (2 + len(passes)))
            if one.new_tokens == 1:
                reads.append(self.memory.read_bytes_per_s())
            samples += clock.samples(one, repeats, self._pace(reads))
        reads.append(self.memory.read_bytes_per_s())
        caches = OTHER_CACHES.get(self.engine.weights, ())
        for kv in (kv for kv in caches if kv in OFTEN or not self.again):
            samples += self._of_another_cache(kv, self._pace(reads))
        return Turn(samples, self._whole_step(self._pace(reads)), reads)

    def _pace(self, reads: list[float]) -> Pace:
        return Pace(reads[-1], self.steadiness.usual_s)

    def _passes(self) -> Iterator[tuple[OperatorClock, PassShape, int]]:
        """Every pass, what times it, and how often."""
        effort, weights = self.effort, self.engine.weights
        brief = weights in STORED or (effort.depth == "quick" and weights in SELDOM)
        every = self._every_layer(self.engine)
        pair, narrow = (self._clock(self.engine, layers) for layers in ((0, 1), (0,)))
        short = self._short(self.engine)
        for context in effort.decode_contexts[::2] if brief else effort.decode_contexts:
            yield every, PassShape(1, context), effort.decode_repeats
        for batch, context in () if brief else effort.batches:
            yield every, PassShape(1, context, batch), effort.decode_repeats
        for tokens in effort.prefill_tokens[::3] if brief else effort.prefill_tokens:
            if tokens <= SHORT:
                yield short, PassShape(tokens, tokens), effort.short_repeats
            else:
                yield pair, PassShape(tokens, tokens), effort.prefill_repeats
        for tokens in () if brief else effort.long_tokens:
            yield narrow, PassShape(tokens, tokens), 1

    def _every_layer(self, engine: Engine) -> OperatorClock:
        layers = tuple(range(engine.spec.num_layers))
        return self._clock(engine, layers, _WARMING if len(layers) > _WARMING else 0)

    def _short(self, engine: Engine) -> OperatorClock:
        """A pair of layers behind one that is not sampled: the first product of a pass takes 0.3 ms more."""
        return self._clock(engine, tuple(range(min(3, engine.spec.num_layers))), 1)

    def _clock(self, engine: Engine, layers: tuple[int, ...], warming: int = 0) -> OperatorClock:
        empty = self.memory.empty_caches
        care = Care(empty, warming, self.effort.patience_s, self.steadiness)
        return OperatorClock(engine, layers, care)

    def _of_another_cache(self, kv: str, pace: Pace) -> list[Sample]:
        """What depends on the cache's format, of single tokens and of many."""
        engine, effort = self.engine.with_cache(kv), self.effort
        every, narrow, short = self._every_layer(engine), self._clock(engine, (0,)), self._short(engine)
        shortest, *_, longest = effort.decode_contexts
        few = [n for n in effort.cache_tokens if n <= SHORT]
        many = [*(n for n in effort.cache_tokens if n > SHORT), *effort.long_tokens[-1:]]
        samples = [
            *(
                every.samples(PassShape(1, context), effort.decode_repeats // 2 + 1, pace)
                for context in (shortest, longest)
            ),
            *(short.samples(PassShape(n, n), effort.short_repeats, pace) for n in few),
            *(narrow.samples(PassShape(n, n), effort.prefill_repeats, pace) for n in many),
        ]
        return [sample for group in samples for sample in group if sample.operator in _OF_THE_CACHE]

    def _whole_step(self, pace: Pace) -> WholeStep:
        """A step as it runs in a generation beside its operators, both with caches as they are.

        Each generation stands between two passes: from one to the next, cores change their speed by more than
        the difference that is asked for.
        """
        engine, effort = self.engine, self.effort
        care = Care(patience_s=effort.patience_s, steadiness=self.steadiness)
        clock = OperatorClock(engine, range(engine.spec.num_layers), care)
        one = PassShape(1, effort.decode_contexts[0])
        clock_s = spread(clock.clock_costs(one, effort.decode_repeats)).median_s
        # The last sample is the choice from a part of the logits, which no step makes.
        samples = clock.samples(one, _FEW_PASSES, pace)[:-1]

        def more_s() -> float:
            before_s, whole_s, after_s = clock.step_s(one), _step_s(engine, one.context), clock.step_s(one)
            return whole_s - (before_s + after_s) / 2

        wanted = effort.generations
        found = repeated(more_s, wanted, self.steadiness, lambda made: made < _MOST_AGAIN * wanted)
        calls = tuple((sample.operator, sample.format) for sample in samples)
        return WholeStep(statistics.median(found.kept(_LEAST_WHOLE)), calls, clock_s)


def _step_s(engine: Engine, prompt_tokens: int) -> float:
    """Seconds from one token to the next, with everything that a generation does between two steps."""
    request = Request([1] * prompt_tokens, 1 + _STEPS, end_tokens=frozenset())
    (generation,) = engine.serve([request], Serving(max_sequences=1, share=False)).generations
    return generation.tpot_s or 0.0
