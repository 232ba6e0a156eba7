"""The text that perplexity is measured on; it ships with the project, and everybody may use it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from core.catalog.assets import FOLDER

#: The file's lines of facts begin so.
_FACT: Final = "# "
EVALUATION_TEXT: Final = "alice_chapter_1"


@dataclass(frozen=True, slots=True)
class PublicText:
    """A text in the public domain.

    Attributes:
        title, author, year: what it is. reason: why it is in the public domain. source: where it can be read.
        text: its words, one paragraph a line.
    """

    title: str
    author: str
    year: str
    reason: str
    source: str
    text: str


@cache
def public_text(name: str = EVALUATION_TEXT) -> PublicText:
    """Read ``assets/texts/NAME.txt``: lines of facts, an empty line, the text.

    >>> public_text().text[:28]
    'Alice was beginning to get v'
    """
    head, _, text = (FOLDER / "texts" / f"{name}.txt").read_text(encoding="utf-8").partition("\n\n")
    lines = [line.removeprefix(_FACT).partition(": ") for line in head.splitlines()]
    facts = {name: value for name, _, value in lines}
    return PublicText(
        facts["title"], facts["author"], facts["year"], facts["public domain"], facts["source"], text.strip()
    )
