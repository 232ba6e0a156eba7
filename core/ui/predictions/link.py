"""What the page's link holds: which published rows are shown, how their errors are split, and which is open.

Defaults are left out. A value that does not hold is replaced, and that is said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from core.analytic.validation.error_table import FACETS, classes
from core.analytic.validation.judged import judged_runs
from core.lab import gallery as folder
from core.ui.scenario.page_part import PagePart

#: What the rows can be filtered by.
FILTERS: Final = ("metric", "family", "batch", "format", "source")
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown; an empty text means all, or none for ``row`` and ``record``.

    Attributes:
        metric, family, batch, format, source: a class of that facet. by: the facet of the error table.
        row: the id of the row that is worked out. record: the name of the recorded run that is open.
    """

    metric: str = ""
    family: str = ""
    batch: str = ""
    format: str = ""
    source: str = ""
    by: str = "group"
    row: str = ""
    record: str = ""


def now() -> Shown:
    """What the visitor looks at."""
    return _PART.now()


def notes() -> tuple[str, ...]:
    """What had to be repaired in the address; empty once something was changed."""
    return _PART.notes()


def adopt(*, comes_in: bool) -> None:
    """Bring what is shown in step with the address, see ``PagePart.adopt``."""
    _PART.adopt(comes_in=comes_in)


def show(**values: object) -> None:
    """Change what is shown; a value that does not exist is left as it was. Meant for callbacks."""
    holds = {name: value for name, value in values.items() if value in known(name)}
    _PART.change(replace(now(), **holds))  # type: ignore[arg-type]


def show_all() -> None:
    """Take every filter away. Meant for callbacks."""
    _PART.change(Shown(by=now().by, record=now().record))


def known(name: str) -> Collection[str]:
    """The values that one field can have."""
    if name == "by":
        return tuple(FACETS)
    if name == "row":
        return ("", *(judged.run.id for judged in judged_runs()))
    if name == "record":  # a name is only ever looked for among those that are there
        return ("", *(entry.name for entry in folder.gallery(folder.FOLDER).entries))
    return ("", *classes(judged_runs(), name))


def written(shown: Shown) -> dict[str, str]:
    """Query parameters; defaults are left out.

    >>> written(Shown(batch="1", row="r001"))
    {'batch': '1', 'row': 'r001'}
    """
    default = Shown()
    return {
        field.name: getattr(shown, field.name)
        for field in fields(Shown)
        if getattr(shown, field.name) != getattr(default, field.name)
    }


def read(params: Mapping[str, str]) -> tuple[Shown, tuple[str, ...]]:
    """Read them back, with a sentence for each value that was replaced.

    >>> read({"row": "r9999"})[1]
    ("The row 'r9999' of the link is not one of those here, so it is left out.",)
    """
    holds, said = {}, []
    for field in fields(Shown):
        if field.name not in params:
            continue
        if params[field.name] in known(field.name):
            holds[field.name] = params[field.name]
        else:
            value = params[field.name][:_LONGEST]
            said.append(
                f"The {field.name} {value!r} of the link is not one of those here, so it is left out."
            )
    return Shown(**holds), tuple(said)


_PART: Final = PagePart(
    "predictions_link", frozenset(field.name for field in fields(Shown)), Shown(), read, written
)
