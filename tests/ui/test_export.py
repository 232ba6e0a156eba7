"""Files hold the exact numbers; a spreadsheet finds no formula in them."""

import csv
import io
import json

from core.ui.export import to_csv, to_json

COLUMNS = ("name", "seconds", "count")
ROWS = [("a,b", 0.1234567890123, 3), ('say "hi"', None, 0), ("=1+1", -0.5, -2)]


def test_csv_is_exact_and_safe() -> None:
    read = list(csv.reader(io.StringIO(to_csv(COLUMNS, ROWS))))
    assert read == [
        list(COLUMNS),
        ["a,b", "0.1234567890123", "3"],
        ['say "hi"', "", "0"],
        ["'=1+1", "-0.5", "-2"],
    ]


def test_json_is_exact_and_keeps_the_unknown() -> None:
    assert json.loads(to_json(COLUMNS, ROWS))[:2] == [
        {"name": "a,b", "seconds": 0.1234567890123, "count": 3},
        {"name": 'say "hi"', "seconds": None, "count": 0},
    ]
