"""Where the catalogue's files are, and how their rows are read."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "assets"


def read_csv(name: str) -> list[dict[str, str]]:
    """The rows of ``assets/NAME.csv``, each a dict by column."""
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_toml(name: str) -> dict[str, Any]:
    """The tables of ``assets/NAME.toml``."""
    with (FOLDER / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)
