"""How many threads compute best here: tried out, not guessed.

More threads than cores, or than memory channels can feed, make small operators slower. The usual
choice is the number of physical cores; another is taken only where it is clearly better on a quiet
host.
"""

from __future__ import annotations

from typing import Final

import torch

from core.engine.engine import Engine
from core.lab.host import LoadProbe, physical_cores, usable_cores
from core.lab.timing import spread

#: Another number of threads must be faster by this part.
_CLEARLY: Final = 0.1
_CONTEXT: Final = 32
_STEPS: Final = 10


def candidates(usual: int, most: int) -> list[int]:
    """Numbers of threads worth a try, the usual one first.

    >>> candidates(8, 16)
    [8, 4, 7, 16]
    """
    others = (usual // 2, usual - 1, most)
    return [usual, *dict.fromkeys(n for n in others if 1 <= n <= most and n != usual)]


def choose_threads(engine: Engine) -> int:
    """Time decode steps with each candidate, set torch to the best, and return it."""
    usual = physical_cores()
    load, medians_s = LoadProbe(), {}
    for count in candidates(usual, usable_cores()):
        torch.set_num_threads(count)
        medians_s[count] = spread(engine.measure_steps(_CONTEXT, steps=_STEPS)).median_s
    best = min(medians_s, key=medians_s.__getitem__)
    if load.stop().reasons() or medians_s[best] > (1 - _CLEARLY) * medians_s[usual]:
        best = usual
    torch.set_num_threads(best)
    return best
