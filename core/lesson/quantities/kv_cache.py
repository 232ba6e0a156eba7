"""The numbers of "KV cache": what a token leaves behind, and what it saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.forward_pass import LatentForm
from core.analytic.kv_cache import bytes_per_token, cache_bytes
from core.analytic.latency import step_time
from core.analytic.operators import operators
from core.analytic.params import stored_bytes
from core.analytic.table import Operators
from core.catalog.formats import number_format
from core.catalog.model import Attention
from core.lesson.amount import Amount, LessonCase, held_tokens
from core.lesson.quantities.quantity import Quantity
from core.units import BITS_PER_BYTE, GB, GIB, KIB


def _attention(case: LessonCase) -> Attention:
    """Of the first layer; the models here share heads alike in all layers."""
    return case.model.layers[0].attention


def layers(case: LessonCase) -> Amount:
    """Decoder layers."""
    return Amount(case.model.num_layers)


def query_heads(case: LessonCase) -> Amount:
    """Query heads of a layer."""
    return Amount(_attention(case).num_heads)


def kv_heads(case: LessonCase) -> Amount:
    """Heads of a layer that keep a key and a value."""
    return Amount(_attention(case).num_kv_heads)


def queries_per_kv_head(case: LessonCase) -> Amount:
    """Query heads that share one KV head."""
    return Amount(_attention(case).num_heads / _attention(case).num_kv_heads, "×")


def head_dim(case: LessonCase) -> Amount:
    """Numbers in one key, and in one value."""
    return Amount(_attention(case).head_dim)


def hidden_size(case: LessonCase) -> Amount:
    """Numbers in one token's vector between the layers."""
    return Amount(case.model.hidden_size)


def element_bytes(case: LessonCase) -> Amount:
    """Bytes of one number in the cache, scales apart."""
    return Amount(number_format(case.scenario.kv, "kv").payload_bits / BITS_PER_BYTE, "B")


def tokens(case: LessonCase) -> Amount:
    """Tokens that one sequence holds: the setting "context", else prompt and answer together."""
    return Amount(held_tokens(case), "tokens")


def sequences(case: LessonCase) -> Amount:
    """Sequences that are kept at once."""
    return Amount(case.scenario.batch)


def token_cache(case: LessonCase) -> Amount:
    """Bytes that one token adds to the cache, over all layers."""
    return Amount(bytes_per_token(case.model, case.scenario.kv), "B")


def token_cache_kib(case: LessonCase) -> Amount:
    """The same in KiB."""
    return Amount(bytes_per_token(case.model, case.scenario.kv) / KIB, "KiB")


def cache(case: LessonCase) -> Amount:
    """The cache of all sequences at the end of their answers, windows respected."""
    return Amount(_cache_bytes(case) / GB, "GB")


def cache_of_twice_the_context(case: LessonCase) -> Amount:
    """The cache if every sequence were twice as long."""
    return cache(case.having({"context": 2 * held_tokens(case)}))


def scores(case: LessonCase) -> Amount:
    """A score matrix of one layer, every query head, if it were ever written out: tokens squared."""
    attention = _attention(case)
    return Amount(attention.num_heads * held_tokens(case) ** 2 * element_bytes(case).value / GB, "GB")


def cache_gib(case: LessonCase) -> Amount:
    """The same in GiB."""
    return Amount(_cache_bytes(case) / GIB, "GiB")


def _cache_bytes(case: LessonCase) -> float:
    return float(cache_bytes(case.model, case.scenario.kv, case.scenario.batch, held_tokens(case)))


def cache_without_windows(case: LessonCase) -> Amount:
    """The cache if every layer kept every token: bytes a token, times tokens, times sequences."""
    return Amount(
        bytes_per_token(case.model, case.scenario.kv) * tokens(case).value * case.scenario.batch / GB, "GB"
    )


def cache_by_hidden_size(case: LessonCase) -> Amount:
    """The shortcut that takes the hidden size for the width of keys and of values."""
    attention = _attention(case)
    return Amount(cache_without_windows(case).value * case.model.hidden_size / attention.kv_features, "GB")


def shortcut_factor(case: LessonCase) -> Amount:
    """How many times too much the shortcut says."""
    return Amount(case.model.hidden_size / _attention(case).kv_features, "×")


def break_even_tokens(case: LessonCase) -> Amount:
    """Cached tokens, over all sequences, whose keys and values weigh as much as the weights."""
    weights = stored_bytes(case.model, case.scenario.weights)
    return Amount(weights // bytes_per_token(case.model, case.scenario.kv), "tokens")


# --- Work with and without a cache ----------------------------------------------------------------


def growth_exponent(case: LessonCase) -> Amount:
    """How a step without a cache grows with its context: 0 not at all, 1 linearly, 2 with the square.

    The exponent of the step's predicted time between the start of the answer and twice that context.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    return Amount(float(np.log2(growth_factor(case).value)))


def growth_factor(case: LessonCase) -> Amount:
    """How many times as long a step without a cache takes at twice the prompt's length.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    start = float(case.scenario.input_tokens)
    seconds = step_time(_recomputed(case, np.array([start, 2 * start])), case.machine)
    return Amount(float(seconds[1] / seconds[0]), "×")


def work_factor(case: LessonCase) -> Amount:
    """FLOPs of the whole answer without a cache, over those with one."""
    work = work_by_step(case)
    return Amount(float(work.recomputed_flops.sum() / work.cached_flops.sum()), "×")


def last_step_factor(case: LessonCase) -> Amount:
    """FLOPs of the last step without a cache, over the last with one."""
    work = work_by_step(case)
    return Amount(float(work.recomputed_flops[-1] / work.cached_flops[-1]), "×")


def _steps(case: LessonCase) -> NDArray[np.float64]:
    """Contexts of the steps after the first token; at least one step is shown."""
    first = case.scenario.input_tokens + 1
    return np.arange(first, first + max(case.scenario.output_tokens - 1, 1), dtype=np.float64)


def _recomputed(case: LessonCase, contexts: NDArray[np.float64]) -> Operators:
    return _pass(case, contexts, contexts, "expanded")


def _pass(
    case: LessonCase,
    new_tokens: NDArray[np.float64],
    contexts: NDArray[np.float64],
    latent: LatentForm = "absorbed",
) -> Operators:
    return operators(
        case.model,
        batch=case.scenario.batch,
        new_tokens=new_tokens,
        context=contexts,
        weights=case.scenario.weights,
        kv=case.scenario.kv,
        latent=latent,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The steps of one answer with a cache and without; all of shape ``[steps]``.

    Attributes:
        contexts: tokens that the step attends to. cached_flops, recomputed_flops: its arithmetic.
        cached_s, recomputed_s: its predicted seconds on the case's machine; nan where it has no rate.
        cache_bytes: what the cache holds then, all sequences together.
    """

    contexts: NDArray[np.float64]
    cached_flops: NDArray[np.float64]
    recomputed_flops: NDArray[np.float64]
    cached_s: NDArray[np.float64]
    recomputed_s: NDArray[np.float64]
    cache_bytes: NDArray[np.float64]


#: Steps that a sweep computes at most; a longer answer is sampled evenly.
MOST_STEPS: Final = 200


def work_by_step(case: LessonCase) -> Work:
    """What each step of the answer computes, takes and keeps.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    every = _steps(case)
    contexts = every[
        np.unique(np.linspace(0, len(every) - 1, min(len(every), MOST_STEPS)).round().astype(int))
    ]
    cached, recomputed = _pass(case, np.ones_like(contexts), contexts), _recomputed(case, contexts)
    return Work(
        contexts=contexts,
        cached_flops=cached.total("flops"),
        recomputed_flops=recomputed.total("flops"),
        cached_s=step_time(cached, case.machine),
        recomputed_s=step_time(recomputed, case.machine),
        cache_bytes=cache_bytes(case.model, case.scenario.kv, case.scenario.batch, contexts),
    )


QUANTITIES: Final[dict[str, Quantity]] = {
    function.__name__: function
    for function in (
        layers, query_heads, kv_heads, queries_per_kv_head, head_dim, hidden_size, element_bytes, tokens,
        sequences, token_cache, token_cache_kib, cache, cache_gib, cache_of_twice_the_context, scores,
        cache_without_windows, cache_by_hidden_size, shortcut_factor, break_even_tokens,
        growth_exponent, growth_factor, work_factor, last_step_factor,
    )
}  # fmt: skip
