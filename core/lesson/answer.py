"""A number as people type it: "1.07", "1,07", "1.07 GB", "1e9", "2 x 10^9".

A point or a comma may be the decimal mark. One comma before exactly three digits separates
thousands, as everywhere in this app.
"""

from __future__ import annotations

import math
import re
from typing import Final

from core.errors import AnswerError
from core.lesson.amount import UNITS, Amount

LONGEST_ANSWER: Final = 60
_NUMBER: Final = re.compile(
    r"^[=~≈\s]*(?P<sign>[-+−]?)(?P<digits>\d[\d.,_'\s]*|[.,]\d+)"
    r"(?:[eE](?P<e>[-+]?\d{1,3})|\s*(?:x|×|\*|·)?\s*10\s*(?:\^|\*\*)\s*(?P<power>[-+]?\d{1,3}))?"
    r"\s*(?P<unit>[^\d\s].*)?$"
)
#: "10^6" is short for 1 x 10^6.
_BARE_POWER: Final = re.compile(r"^10(?=\s*(?:\^|\*\*))")
#: Past it a float is infinite, and no such answer is right.
_LARGEST_POWER: Final = 308
#: What else people write for a unit.
_ALIASES: Final[dict[str, str]] = {
    "bytes": "B", "byte": "B", "kb": "kB", "mb": "MB", "gb": "GB", "tb": "TB", "kib": "KiB", "mib": "MiB",
    "gib": "GiB", "tib": "TiB", "gigabytes": "GB", "megabytes": "MB", "sec": "s", "second": "s",
    "seconds": "s", "msec": "ms", "milliseconds": "ms", "us": "µs", "μs": "µs", "x": "×", "times": "×",
    "percent": "%", "tok/s": "tokens/s", "token/s": "tokens/s", "t/s": "tokens/s", "token": "tokens",
    "tflop": "TFLOP", "tflops": "TFLOP", "tflop/s": "TFLOP/s", "gb/s": "GB/s", "tb/s": "TB/s",
    "flop": "FLOP", "flops": "FLOP", "gflop": "GFLOP", "gflops": "GFLOP", "mflop": "MFLOP", "mflops": "MFLOP",
}  # fmt: skip
_BITS: Final = frozenset(
    {"b", "Kb", "Mb", "Gb", "Tb", "bit", "bits", "kbit", "Mbit", "Gbit", "Tbit", "Gibit"}
)


def read_number(text: str, unit: str) -> Amount:
    """Read an answer; one without a unit is in the unit that was asked for.

    Args:
        text: what was typed.
        unit: what was asked for; a unit of the same kind is converted to it.

    Raises:
        AnswerError: it is empty, no number, or of another kind than was asked for.

    >>> read_number("1,07", "GB").value, read_number("1.0 GiB", "GB").text, read_number("60e-3 s", "ms").value
    (1.07, '1.07 GB', 60.0)
    """
    if not text.strip():
        raise AnswerError("An answer must be a number, and this one is empty. Type one, for example 1.5.")
    if len(text) > LONGEST_ANSWER:
        raise AnswerError(
            f"An answer may have up to {LONGEST_ANSWER} characters; this one has {len(text):,}. Type a "
            "single number."
        )
    match = _NUMBER.match(_BARE_POWER.sub("1x10", text.strip()))
    if match is None:
        raise AnswerError(
            f"An answer must be a number, like 1.5 or 2e9{_in(unit)}; {_shown(text)} is none. Type digits, "
            "then a unit if you like."
        )
    power = int(match["e"] or match["power"] or 0)
    value = _digits(match["digits"].strip(), text) * (10.0**power if power <= _LARGEST_POWER else math.inf)
    if match["sign"] in {"-", "−"} or value == 0 or not math.isfinite(value):
        raise AnswerError(f"The answer here is above zero and finite; got {_shown(text)}. Check the sign.")
    return Amount(value, _unit(match["unit"], unit)).in_unit(unit)


def _digits(digits: str, text: str) -> float:
    """The value of digits with points, commas and thin marks in them."""
    plain = re.sub(r"[_'\s]", "", digits).rstrip(".,")
    separated = re.search(r"\d\s+\d", digits) and not re.fullmatch(r"\d{1,3}(\s\d{3})+([.,]\d*)?", digits)
    marks = re.sub(r"\d", "", plain)
    if separated or (len(set(marks)) == 2 and not re.fullmatch(r",+\.|\.+,", marks)):
        raise _unclear(text)
    if len(set(marks)) == 2:  # the last mark is the decimal one
        thousands, decimal = marks[0], marks[-1]
        return float(plain.replace(thousands, "").replace(decimal, "."))
    if len(marks) > 1 or (marks == "," and re.fullmatch(r"[1-9]\d{0,2},\d{3}", plain)):
        if not re.fullmatch(r"\d{1,3}([.,]\d{3})+", plain):
            raise _unclear(text)
        return float(re.sub(r"[.,]", "", plain))
    return float(plain.replace(",", "."))


def _unclear(text: str) -> AnswerError:
    return AnswerError(
        f"It must be clear where the decimals begin; in {_shown(text)} it is not. Write 1234.5, without "
        "separators."
    )


def _unit(typed: str | None, asked: str) -> str:
    if typed is None:
        return asked
    word = typed.strip().rstrip(".")
    if word in _BITS and UNITS[asked][0] == "bytes":
        raise AnswerError(
            f"The answer must be in bytes; {word!r} stands for bits, 8 to a byte. Write B for bytes, as in "
            f"{asked}."
        )
    found = word if word in UNITS else _ALIASES.get(word.lower())
    if found is None or UNITS[found][0] != UNITS[asked][0]:
        wanted = f"in {asked}" if asked else "without a unit"
        raise AnswerError(
            f"The answer must be {wanted}, and {_shown(word)} is another thing. Convert it first."
        )
    return found


def _in(unit: str) -> str:
    return f" (in {unit})" if unit else ""


def _shown(text: str) -> str:
    return repr(text.strip()[:30])
