"""What a name that is not known may have meant, and where all names are listed."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

#: A list of so many names is given whole.
_SHORT: Final = 8
_MOST_NEAR: Final = 3
_LONGEST: Final = 80


def spelled(name: str, known: Collection[str]) -> str:
    """The known name that differs in case only; the name itself where there is none.

    >>> spelled("Llama-3.1-8B", ["llama-3.1-8b"])
    'llama-3.1-8b'
    """
    if name in known:
        return name
    lower = name.casefold()
    return next((one for one in known if one.casefold() == lower), name)


def near_names(name: str, known: Collection[str]) -> list[str]:
    """Up to three known names that are likely meant: those that contain it, then those spelled alike.

    >>> near_names("lama-3.1-8b", ["llama-3.1-8b", "gpt2"]), near_names("h100", ["h100-sxm-80gb", "t4"])
    (['llama-3.1-8b'], ['h100-sxm-80gb'])
    """
    lower = name[:_LONGEST].casefold()
    by_lower = {one.casefold(): one for one in known}
    inside = [one for one in by_lower if len(lower) > 1 and lower in one]
    alike = difflib.get_close_matches(lower, by_lower, _MOST_NEAR)
    return [by_lower[one] for one in dict.fromkeys([*inside, *alike])][:_MOST_NEAR]


def one_of(what: str, name: str, known: Collection[str], kind: str, *, otherwise: str = "") -> str:
    """The refusal of an unknown name: the whole list where it is short, else near names and where all are.

    Args:
        what: must be one of them.
        name: that came.
        known: the names.
        kind: of names, as ``python -m core list`` has it.
        otherwise: what else may be given, as a half-sentence.

    >>> one_of("The device", "tpu", ["cpu", "cuda"], "devices")
    "The device must be one of cpu, cuda; got 'tpu'. Choose one of them."
    """
    came = repr(name[:_LONGEST])
    if len(known) <= _SHORT:
        return f"{what} must be one of {', '.join(known)}{otherwise}; got {came}. Choose one of them."
    near = near_names(name, known)
    meant = f" Did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}?" if near else ""
    return (
        f"{what} must be one of the {len(known)} known here{otherwise}; got {came}.{meant} See all of them "
        f"with `python -m core list {kind}`."
    )
