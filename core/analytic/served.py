"""What a request sees of a server that is busy with others: a prompt is read between the others' steps.

With p seconds for one prompt, t for a step of B sequences, and answers of N tokens (continuous batching)::

    TTFT = p alone, 1.5 p in company     (its own prompt, and on average half of another's)
    TPOT = t + (B - 1) p / N             (each of the others interrupts once an answer)
    rate = B / (TTFT + (N - 1) TPOT)     requests a second of a full replica

These are the forms that published measurements of servers are predicted with (``validation.terms``).
Prompts read in pieces beside the steps, a cache of shared prefixes, and the way over HTTP are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.units import Number

#: Prompts that a new request waits for where others are served.
QUEUED_PROMPTS: Final = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Seconds until the first token and for each further one, and requests a second; arrays of one shape."""

    ttft_s: NDArray[np.float64]
    tpot_s: NDArray[np.float64]
    requests_per_s: NDArray[np.float64]


def served(prompt_s: Number, step_s: Number, batch: Number, output_tokens: Number) -> Served:
    """Time a replica that always serves ``batch`` requests.

    Args:
        prompt_s: one prompt, read alone.
        step_s: a step that gives each of the batch a token.
        batch: requests at once.
        output_tokens: of each answer.

    >>> alone, busy = (served(0.2, 0.01, batch, 100) for batch in (1, 4))
    >>> float(alone.ttft_s), float(busy.ttft_s).__round__(3), float(busy.tpot_s).__round__(3)
    (0.2, 0.3, 0.016)
    """
    batch, output_tokens = np.asarray(batch, np.float64), np.asarray(output_tokens, np.float64)
    ttft_s = np.where(batch > 1, QUEUED_PROMPTS, 1.0) * prompt_s
    tpot_s = np.asarray(step_s + (batch - 1) * prompt_s / output_tokens)
    return Served(ttft_s, tpot_s, batch / (ttft_s + (output_tokens - 1) * tpot_s))
