"""Seeded prompts of about so many tokens, for a server whose tokenizer is not known.

A prompt is a row of common English words, most of which are one token in any tokenizer. How many tokens
a server really counts is learnt from its answer to two prompts of known length (``Words``), which also
tells what its chat template adds. No two prompts begin alike, so that a cache of prefixes has nothing
to share.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_TEXT: Final = """
time year people way day man thing woman life child world school state family student group country
problem hand part place case week company system program question work number night point home water room
mother area money story fact month lot right study book eye job word business issue side kind head house
service friend father power hour game line end member law car city community name team minute idea body
back parent face level office door health person art history party result change morning reason research
girl moment air teacher force education foot boy age policy process music market sense nation plan college
interest experience effect use class control field development role effort rate heart show leader light
voice wife mind price report decision son view town road arm difference value building action season
society tax director position player record paper space ground form event matter center couple site
project star table need court oil half
"""
_WORDS: Final = tuple(_TEXT.split())


@dataclass(frozen=True, slots=True)
class Words:
    """How a server counts words: ``tokens = extra + each * words``."""

    each: float = 1.0
    extra: float = 0.0

    def of(self, tokens: int) -> int:
        """Words of a prompt that comes nearest to so many tokens; one or more.

        >>> Words(each=1.25, extra=30).of(155)
        100
        """
        return max(round((tokens - self.extra) / self.each), 1)


def prompt(seed: int, index: int, words: int) -> str:
    """The words of one prompt: the same for the same seed and index, on every machine.

    >>> prompt(0, 1, 40) == prompt(0, 1, 40), prompt(0, 1, 40) == prompt(0, 2, 40)
    (True, False)
    """
    draw = random.Random(f"{seed}/{index}")  # noqa: S311 (words, not secrets)
    return " ".join(draw.choices(_WORDS, k=words))


def learn(first: tuple[int, int], second: tuple[int, int]) -> Words:
    """From the words and tokens of two prompts, how a server counts.

    Where they do not lie on a rising line (a server that counts wrongly), a word is taken for a token.

    >>> learn((10, 42), (110, 142))
    Words(each=1.0, extra=32.0)
    """
    (few, few_tokens), (many, many_tokens) = sorted((first, second))
    if many == few or many_tokens <= few_tokens:
        return Words()
    each = (many_tokens - few_tokens) / (many - few)
    return Words(each, few_tokens - each * few)
