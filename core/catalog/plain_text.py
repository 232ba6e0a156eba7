"""Text that came from a visitor, made safe to keep: shortened, on one line, without control characters.

Nothing is escaped here. The text stays text: whoever draws it escapes it for the place it is drawn in.
"""

from __future__ import annotations

import unicodedata
from typing import Final

#: Unicode categories that show nothing or turn the text around: controls, formats, surrogates, private.
_REFUSED: Final = {"Cc", "Cf", "Cs", "Co", "Cn"}


def plain_text(text: str, longest: int) -> str:
    """The text on one line, without characters that cannot be seen, at most ``longest`` of them.

    >>> plain_text("  my" + chr(10) + " model" + chr(0), 80)
    'my model'
    """
    # A file may hold megabytes: what comes after this many characters cannot be wanted.
    start = text[: 4 * longest + 64]
    shown = (
        " " if c.isspace() else c for c in start if c.isspace() or unicodedata.category(c) not in _REFUSED
    )
    return " ".join("".join(shown).split())[:longest].strip()
