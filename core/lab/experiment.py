"""Jobs of the lab that are not a plain run: their names, and what identifies one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from core.errors import JobError

#: A sweep over settings; it also needs the calibration, so the worker itself does it.
SWEEP: Final = "sweep"
#: The kinds of experiments; ``core.lab.worker.experiments`` says what each of the others does.
KINDS: Final = ("serve-trace", "speculate", "quality", "split", SWEEP)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a visitor asks the lab to do.

    Two experiments are the same where their keys are: a result is shown beside exactly the settings
    it was made with.

    Attributes:
        kind: one of ``KINDS``. payload: its request as plain JSON (a typed request's ``to_json``).
        title: what it is, in the words of a page, for example "the trace of page 14".
        settings: what identifies it, where the payload also holds what is done of it; else the payload.

    Raises:
        JobError: the kind is not known.
    """

    kind: str
    payload: dict[str, Any]
    title: str
    settings: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        check_kind(self.kind)

    @property
    def key(self) -> str:
        """A text that is the same for the same request.

        >>> Experiment("quality", {"b": 1, "a": 2}, "").key
        'quality {"a": 2, "b": 1}'
        """
        own = self.payload if self.settings is None else self.settings
        return f"{self.kind} {json.dumps(own, sort_keys=True)}"


def check_kind(kind: str) -> None:
    """Refuse a kind that no worker knows.

    Raises:
        JobError: it is not one of ``KINDS``.
    """
    if kind not in KINDS:
        raise JobError(f"An experiment must be one of {', '.join(KINDS)}; got {kind!r}. Choose one of them.")
