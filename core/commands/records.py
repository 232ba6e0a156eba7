"""``python -m core records``: the recorded runs that ship with the app, or a file that is to join them.

Listing never fails: a file that is no whole record is named with its reason. A file that is given by
name must be a whole record, else the command says why and exits with status 2.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from core.errors import RecordError, UserError
from core.lab.gallery import FOLDER, Refused, gallery, read
from core.lab.gallery_entry import Entry


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="records to check, each must be whole; else all"
    )


def run(args: Namespace) -> dict[str, Any]:
    """Read the recorded runs, or the files that were given.

    Raises:
        RecordError: a given file is no whole record.
    """
    if args.files:
        return _result([_checked(path) for path in args.files], [])
    found = gallery(FOLDER)
    return _result(list(found.entries), list(found.refused))


def _checked(path: Path) -> Entry:
    try:
        return read(path)
    except UserError as problem:
        raise RecordError(f"{str(path)[-80:]}: {problem}") from problem


def _result(entries: list[Entry], refused: list[Refused]) -> dict[str, Any]:
    return {
        "records": [
            {
                "file": entry.name,
                "kind": entry.kind,
                "created_at": entry.created_at,
                "device": entry.device,
                "machine": entry.machine,
                "model": entry.model,
                "formats": entry.formats,
                "what": entry.what,
                "noisy": list(entry.noisy),
            }
            for entry in entries
        ],
        "refused": [{"file": each.name, "why": each.why} for each in refused],
    }


def render(result: dict[str, Any]) -> str:
    """Write the same list for a person."""
    lines = []
    for entry in result["records"]:
        where = f"{entry['machine']} ({entry['device']}), {entry['created_at'][:10]}"
        lines.append(f"{entry['file']}: {entry['kind']}, {where}")
        lines.append(f"  {entry['model']}, {entry['formats']}: {entry['what']}")
        lines += [f"  noisy: {reason}" for reason in entry["noisy"]]
    lines += [f"{each['file']}: not a whole record. {each['why']}" for each in result["refused"]]
    counts = f"{len(result['records'])} whole, {len(result['refused'])} refused."
    return "\n".join([*lines, counts])
