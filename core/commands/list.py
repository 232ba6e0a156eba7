"""``python -m core list``: the names that the other commands take."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any, Final

from core.catalog.accelerators import accelerators, links
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.models import catalogue

KINDS: Final = ("models", "accelerators", "formats", "networks")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=f"{', '.join(KINDS)}; or all")


def run(args: Namespace) -> dict[str, Any]:
    """Names by kind, each with what it stands for."""
    names = {
        "models": {key: spec.name for key, spec in catalogue().items()},
        "accelerators": {key: chip.name for key, chip in accelerators().items()},
        "formats": {key: f"{f.name} ({' and '.join(f.uses)})" for key, f in STORAGE_FORMATS.items()},
        "networks": {key: link.name for key, link in links().items()},
    }
    return names if args.kind is None else {args.kind: names[args.kind]}


def render(result: dict[str, Any]) -> str:
    """Write the same result for a person."""
    blocks = []
    for kind, names in result.items():
        width = max(map(len, names)) + 2
        blocks.append("\n".join([f"{kind}:", *(f"  {key:{width}}{name}" for key, name in names.items())]))
    return "\n\n".join(blocks)
