"""How much a calibration measures: a quick one before a machine's first run, and a full one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from core.lab.worker.calibration_model import VOCABULARY
from core.lab.worker.operator_clock import PATIENCE_S

#: Tokens of a short prefill.
SHORT: Final = 64


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        pairs: of narrow and wide layers in the calibration model. vocabulary: its entries, between those of
            small and of large real ones where there is time for so many. decode_contexts, decode_repeats: of
            single-token passes. batches: sequences, and their context, of passes with one token of each.
            cache_tokens: of passes of many tokens beside another format of the cache.
            prefill_tokens, prefill_repeats: of passes of many tokens, sampled in two layers, on both sides of
            where the engine goes over from the program for few rows to that for many (16 or 128).
        short_repeats: of those of up to ``SHORT`` tokens, which are over soon.
        long_tokens: of passes through a single layer, once, for attention's sake.
        matrix_size, matrix_repeats: of the largest matrix product.
        generations: that tell what a whole step takes, in each turn.
        patience_s: seconds after which passes at one size end.
        rounds: how often formats take their turn, so that a slow minute falls on all of them; seldom ones, of
            weights and of the cache, take one.
        rounds_s: seconds after which no turn of a later round begins.
        exchange_rounds, exchange_repeats: of exchanges between processes of this machine; 0 for none.
    """

    depth: Literal["quick", "full"]
    pairs: int
    vocabulary: int
    decode_contexts: tuple[int, ...]
    decode_repeats: int
    batches: tuple[tuple[int, int], ...]
    prefill_tokens: tuple[int, ...]
    prefill_repeats: int
    short_repeats: int
    long_tokens: tuple[int, ...]
    cache_tokens: tuple[int, ...]
    matrix_size: int
    matrix_repeats: int
    rounds: int
    generations: int
    patience_s: float = PATIENCE_S
    rounds_s: float = 240.0
    exchange_rounds: int = 0
    exchange_repeats: int = 0


QUICK: Final = Effort(
    depth="quick",
    pairs=5,
    vocabulary=VOCABULARY,
    decode_contexts=(32, 512, 2048),
    decode_repeats=6,
    batches=((4, 256), (8, 64)),
    prefill_tokens=(20, 64, 160, 256),
    prefill_repeats=2,
    short_repeats=3,
    long_tokens=(1024,),
    cache_tokens=(32,),
    matrix_size=1024,
    matrix_repeats=5,
    rounds=1,
    generations=4,
    patience_s=0.15,
)
FULL: Final = Effort(
    depth="full",
    pairs=5,
    vocabulary=81_920,
    decode_contexts=(32, 512, 2048),
    decode_repeats=6,
    batches=((2, 512), (4, 128), (8, 64), (8, 512), (16, 64)),
    prefill_tokens=(4, 16, 20, 64, 128, 144, 256, 512),
    prefill_repeats=2,
    short_repeats=6,
    long_tokens=(1024, 2048),
    cache_tokens=(16, 64, 256),
    matrix_size=2048,
    matrix_repeats=8,
    rounds=3,
    generations=4,
    exchange_rounds=5,
    exchange_repeats=20,
)
