"""The Python that draws a picture again: its function, called with today's arguments.

A function of ``core.ui.figures`` that is marked ``redrawable`` remembers what it was called with; the
program is only written when somebody saves it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

import numpy as np

_NUMPY: Final = "import numpy as np"
_SCALARS: Final = (str, bool, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Call:
    """A function and what it was called with."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]


def call_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """A call with every argument named."""
    return Call(function, inspect.signature(function).bind(*args, **kwargs).arguments)


def program(call: Call) -> str:
    """Python that makes the picture again and prints its numbers as CSV.

    It is run in the project's folder, for the drawing is the project's.

    Raises:
        TypeError: an argument is of a kind that cannot be written down.
    """
    writer = _Writer()
    writer.imports.add(f"from {call.function.__module__} import {call.function.__name__}")
    lines = [f"    {name}={writer.literal(value)}," for name, value in call.arguments.items()]
    return "\n".join(
        (
            "# Makes the picture again and prints its numbers. Run it in the project's folder:",
            "# PYTHONPATH=. .venv/bin/python FILE",
            *sorted({*writer.imports, "from core.ui.export import to_csv"}),
            "",
            f"picture = {call.function.__name__}(",
            *lines,
            ")",
            'print(to_csv(picture.columns, picture.rows), end="")',
            "# picture.markup() is the drawing as SVG.",
            "",
        )
    )


class _Writer:
    """Writes values as Python, and remembers what that Python must import."""

    def __init__(self) -> None:
        self.imports: set[str] = set()

    def literal(self, value: Any) -> str:  # noqa: ANN401 - a picture takes many kinds of argument
        """A value as Python that makes it again, exactly."""
        if isinstance(value, np.ndarray | np.generic):
            self.imports.add(_NUMPY)
            return f"np.array({self.literal(value.tolist())})"
        if isinstance(value, _SCALARS):
            infinite = isinstance(value, float) and not math.isfinite(value)
            return f'float("{value}")' if infinite else repr(value)
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{key!r}: {self.literal(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(self.literal, value)) + "]"
        raise TypeError(
            f"A {type(value).__name__} cannot be written as Python; give numbers, texts or records."
        )

    def _record(self, value: Any) -> str:  # noqa: ANN401 - any of our records
        kind = type(value)
        self.imports.add(f"from {kind.__module__} import {kind.__name__}")
        inner = ", ".join(
            f"{field.name}={self.literal(getattr(value, field.name))}"
            for field in fields(value)
            if field.init
        )
        return f"{kind.__name__}({inner})"
