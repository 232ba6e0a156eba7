"""How a page writes an option that is a key of the catalogue: a chip or a model by its name."""

from __future__ import annotations

from core.catalog.accelerators import accelerators
from core.catalog.models import catalogue


def option_name(option: str) -> str:
    """The name behind a key; any other text stands for itself.

    >>> option_name("h100-sxm-80gb"), option_name("llama-3.1-8b"), option_name("16 bits")
    ('NVIDIA H100 SXM5 80GB', 'Llama 3.1 8B', '16 bits')
    """
    if option in accelerators():
        return accelerators()[option].name
    return catalogue()[option].name if option in catalogue() else option
