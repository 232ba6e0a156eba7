"""Whether something fits into the memory that is free right now, asked before it is built."""

from __future__ import annotations

import psutil
import torch

from core.catalog.formats import engine_format
from core.engine.pages import PageAllocator
from core.errors import RequestError
from core.units import format_gib

#: Part of the free memory that may be taken; the rest is for everything that is not counted here.
USABLE_PART = 0.9


def require_room(num_bytes: int, what: str, device: torch.device) -> None:
    """Refuse what does not fit.

    Raises:
        RequestError: there is less free memory than ``num_bytes``.
    """
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available
    if num_bytes > USABLE_PART * free:
        raise RequestError(
            f"{what} must fit into the free memory of this machine; it needs {format_gib(num_bytes)} and "
            f"{format_gib(free)} are free. Choose a smaller model, a smaller format or a shorter context."
        )


def require_known(weights: str, kv: str, page_tokens: int) -> None:
    """Refuse what no device has, before anything is read.

    Raises:
        FormatError, RequestError: the engine has no such format, or there is no such page.
    """
    engine_format(weights, "weights")
    engine_format(kv, "kv")
    PageAllocator(1, page_tokens)
