"""One streamed answer, piece by piece: when each came, and how many tokens it is.

A piece is an event that brings a part of the answer. Most servers send one token in each; where a server
says itself how many tokens it wrote (``usage``), that number is taken, and the pieces only give the times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Where a chat's piece may hold text: the answer, and a reasoning model's thoughts under its two names.
_TEXTS = ("content", "reasoning_content", "reasoning")
_MOST_TOKENS = 10_000_000
_ROOM = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """What one event brings.

    Attributes:
        is_text: a part of the answer. is_end: the reason why the answer ended.
        written, read, cached: tokens of answer, of prompt, and of prompt not computed; None where not said.
    """

    is_text: bool = False
    is_end: bool = False
    written: int | None = None
    read: int | None = None
    cached: int | None = None


@dataclass(slots=True)
class Answer:
    """An answer as it comes in; seconds since its request was sent.

    Attributes:
        limit: tokens asked for.
        pieces_s: when each part came. last_s: when the last part, or the reason of the end, came.
        is_ended: whether the server said that it is whole: a reason of the end, or ``[DONE]``.
    """

    limit: int
    pieces_s: list[float] = field(default_factory=list)
    last_s: float = 0.0
    written: int | None = None
    read: int | None = None
    cached: int | None = None
    is_ended: bool = False

    @property
    def is_too_long(self) -> bool:
        """Whether it has more than the tokens asked for, with some room for parts without text."""
        return max(len(self.pieces_s), self.written or 0) > self.limit + _ROOM

    def take(self, piece: Piece, now_s: float) -> None:
        """Add an event."""
        if piece.is_text:
            self.pieces_s.append(now_s)
        if piece.is_text or piece.is_end:
            self.last_s = now_s
        self.is_ended = self.is_ended or piece.is_end
        self.written = self.written if piece.written is None else piece.written
        self.read = self.read if piece.read is None else piece.read
        self.cached = self.cached if piece.cached is None else piece.cached


def piece_of(event: object) -> Piece:
    """Read an event of either interface.

    An event of completions without text counts as a token that has none, as special tokens do. In a chat
    the event that only names the role is no token.

    Raises:
        ValueError: it is no object with a list of choices.

    >>> piece_of({"choices": [{"text": "a", "finish_reason": None}]}).is_text
    True
    >>> piece_of({"choices": [{"delta": {"role": "assistant", "content": ""}}]}).is_text
    False
    """
    choices = event.get("choices") if isinstance(event, dict) else None
    if not isinstance(event, dict) or not isinstance(choices, list):
        raise ValueError("no list of choices")
    first = choices[0] if choices else {}
    if not isinstance(first, dict):
        raise ValueError("a choice that is no object")
    usage = _object(event.get("usage"))
    details = _object(usage.get("prompt_tokens_details"))
    return Piece(
        is_text=bool(choices) and _is_text(first),
        is_end=bool(first.get("finish_reason")),
        written=_count(usage, "completion_tokens"),
        read=_count(usage, "prompt_tokens"),
        cached=_count(details, "cached_tokens"),
    )


def _is_text(choice: dict[str, Any]) -> bool:
    delta, ends = choice.get("delta"), bool(choice.get("finish_reason"))
    if isinstance(delta, dict):
        texts = [delta[name] for name in _TEXTS if isinstance(delta.get(name), str)]
        return any(texts) or (bool(texts) and "role" not in delta and not ends)
    text = choice.get("text")
    if not isinstance(text, str):
        raise ValueError("a choice without text")
    return bool(text) or not ends


def _object(value: object) -> dict[str, Any]:
    """An object; an empty one in the place of anything else, since servers leave these out."""
    return value if isinstance(value, dict) else {}


def _count(usage: dict[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None
