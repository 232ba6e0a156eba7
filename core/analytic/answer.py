"""How long a whole answer takes: its first token, each further one, and the last.

The first token waits for one prefill; each further one is a decode step, whose context grows by one
token; both are passes timed by ``core.analytic.latency``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.analytic.latency import step_time
from core.analytic.machine import Machine
from core.analytic.operators import operators
from core.catalog.model import ModelSpec
from core.units import Number

#: Where in an answer a decode step is evaluated; its time is close to affine in its context.
_SHARES: Final = np.linspace(0.0, 1.0, 9)


@dataclass(frozen=True, slots=True, eq=False)
class Speed:
    """The times of a batch of equal requests, served together from empty; of the sweep's shape.

    Attributes:
        ttft_s: time to first token: one prefill. tpot_s: time per output token after the first; not a
            number where there is only one. end_to_end_s: until the last token.
        tokens_per_s: tokens that the batch writes in a second while it decodes.
    """

    ttft_s: NDArray[np.float64]
    tpot_s: NDArray[np.float64]
    end_to_end_s: NDArray[np.float64]
    tokens_per_s: NDArray[np.float64]

    @classmethod
    def of(
        cls, ttft_s: NDArray[np.float64], tpot_s: NDArray[np.float64], *, output_tokens: Number, batch: Number
    ) -> Speed:
        """All of them from the two that passes take."""
        whole_s = end_to_end_s(ttft_s, tpot_s, output_tokens)
        return cls(ttft_s, tpot_s, whole_s, tokens_per_s(tpot_s, batch))


def speed(
    model: ModelSpec,
    machine: Machine,
    *,
    batch: Number,
    input_tokens: Number,
    output_tokens: Number,
    weights: str,
    kv: str,
) -> Speed:
    """Predict TTFT, TPOT, end-to-end time and rate of ``batch`` equal requests.

    TTFT is one prefill of the whole batch, whose last position gives the first token; the k-th
    further token is a decode step at context ``input_tokens + k``, and TPOT is the mean over them.
    Ignored: waiting for other requests, tokenising, sending text.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """
    first = prefill_s(model, machine, batch=batch, input_tokens=input_tokens, weights=weights, kv=kv)
    each = mean_step_s(
        model,
        machine,
        batch=batch,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        weights=weights,
        kv=kv,
    )
    return Speed.of(first, each, output_tokens=output_tokens, batch=batch)


def prefill_s(
    model: ModelSpec, machine: Machine, *, batch: Number, input_tokens: Number, weights: str, kv: str
) -> NDArray[np.float64]:
    """Seconds of one prefill of ``batch`` prompts from empty; latent attention is expanded."""
    table = operators(
        model,
        batch=batch,
        new_tokens=input_tokens,
        context=input_tokens,
        weights=weights,
        kv=kv,
        latent="expanded",
    )
    return step_time(table, machine)


def mean_step_s(
    model: ModelSpec,
    machine: Machine,
    *,
    batch: Number,
    input_tokens: Number,
    output_tokens: Number,
    weights: str,
    kv: str,
) -> NDArray[np.float64]:
    """TPOT alone: the mean decode step of an answer; NaN for one token.

    Raises:
        FormatError: the machine cannot compute in one of the formats.
    """

    def step_s(context: NDArray[np.float64]) -> NDArray[np.float64]:
        users = beside_contexts(batch)
        table = operators(model, batch=users, new_tokens=1, context=context, weights=weights, kv=kv)
        return step_time(table, machine)

    return mean_over_answer(input_tokens, output_tokens, step_s)


def mean_over_answer(
    input_tokens: Number, output_tokens: Number, step_s: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """TPOT: the mean decode step over contexts input + 1 ... input + output - 1; NaN for one token.

    Args:
        input_tokens: of the prompt.
        output_tokens: of the answer, the first one included.
        step_s: seconds of a step at contexts that lie along a last axis of their own.
    """
    return mean_of_steps(step_s(sampled_contexts(input_tokens, output_tokens)), output_tokens)


def sampled_contexts(input_tokens: Number, output_tokens: Number) -> NDArray[np.float64]:
    """A few contexts that stand for those of all decode steps, along a last axis of their own.

    A step's time is smooth in its context.

    >>> sampled_contexts(100, 10)
    array([101., 102., 103., 104., 105., 106., 107., 108., 109.])
    """
    last = np.maximum(np.asarray(output_tokens, np.float64) - 2, 0)
    first = np.asarray(input_tokens, np.float64)[..., None] + 1
    return np.asarray(first + last[..., None] * _SHARES)


def beside_contexts(batch: Number) -> Number:
    """A batch for steps at ``sampled_contexts``: a sweep gets their axis, one number is fastest as it is."""
    return float(batch) if np.ndim(batch) == 0 else np.asarray(batch, np.float64)[..., None]


def mean_of_steps(seconds: NDArray[np.float64], output_tokens: Number) -> NDArray[np.float64]:
    """The mean of all decode steps from those at ``sampled_contexts``; NaN where there is none."""
    mean_s = np.trapezoid(seconds, _SHARES, axis=-1)
    return np.asarray(np.where(np.asarray(output_tokens) > 1, mean_s, np.nan))


def end_to_end_s(ttft_s: Number, tpot_s: Number, output_tokens: Number) -> NDArray[np.float64]:
    """``TTFT + (N - 1) * TPOT``: seconds from the request to its last token."""
    steps = np.asarray(output_tokens, np.float64) - 1
    return np.asarray(ttft_s + np.where(steps > 0, steps * tpot_s, 0.0))


def tpot_s(ttft_s: float, end_to_end_s: float, output_tokens: int) -> float:
    """Time per output token, ``(E2E - TTFT) / (N - 1)``; not a number for one token.

    End-to-end time over all tokens is another quantity, and not what this name means.

    >>> round(tpot_s(0.29571, 5.27024, 500) * 1000, 3)
    9.969
    """
    steps = output_tokens - 1
    return (end_to_end_s - ttft_s) / steps if steps > 0 else float("nan")


def tokens_per_s(tpot_s: Number, batch: Number) -> NDArray[np.float64]:
    """``batch / TPOT``: tokens that a batch writes in a second while it decodes."""
    return np.asarray(np.asarray(batch, np.float64) / tpot_s)
