"""A worked number with today's values: the formula, the numbers in it, each symbol, and Python that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.lesson.amount import Amount, LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.filled import fill
from core.lesson.lesson_records import Symbol, WorkedFormula
from core.lesson.quantities.quantity import Quantity


@dataclass(frozen=True, slots=True)
class WorkedSymbol:
    """A symbol, its meaning, today's amount, and where that comes from."""

    symbol: str
    meaning: str
    amount: Amount
    source: str


@dataclass(frozen=True, slots=True)
class Worked:
    """A worked number, ready to be shown.

    Attributes:
        name: what comes out. formula, substituted: in symbols, and with today's numbers.
        result: with its unit. symbols: of the formula. python: a program that prints the result's value,
            needing nothing else. note: what is left out. about: what the numbers are of.
    """

    name: str
    formula: str
    substituted: str
    result: Amount
    symbols: tuple[WorkedSymbol, ...]
    python: str
    note: str
    about: str


def work(formula: WorkedFormula, case: LessonCase, quantities: Mapping[str, Quantity]) -> Worked:
    """Fill a formula in for a case; a formula with a case of its own keeps that.

    Raises:
        FormatError: the case's machine cannot compute in its format.
    """
    own = catalogue_case(formula.case) if formula.case else case
    symbols = tuple(
        WorkedSymbol(s.symbol, s.meaning, quantities[s.quantity](own), s.source) for s in formula.symbols
    )
    result = quantities[formula.quantity](own)
    return Worked(
        name=formula.name,
        formula=formula.formula,
        substituted=_substituted(formula.formula, symbols),
        result=result,
        symbols=symbols,
        python=_program(formula, symbols, result),
        note=fill(formula.note, own, quantities),
        about=fill(formula.about, own, quantities),
    )


def _substituted(formula: str, symbols: tuple[WorkedSymbol, ...]) -> str:
    texts = {symbol.symbol: symbol.amount.text for symbol in symbols}
    longest_first = sorted(texts, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda match: texts[match[0]], formula)


def _program(formula: WorkedFormula, symbols: tuple[WorkedSymbol, ...], result: Amount) -> str:
    lines = [
        _assignment(symbol, worked.amount) for symbol, worked in zip(formula.symbols, symbols, strict=True)
    ]
    unit = result.unit or "a number without a unit"
    return "\n".join((*lines, formula.python, f"print(result)  # {formula.name}, {unit}"))


def _assignment(symbol: Symbol, amount: Amount) -> str:
    value = int(amount.value) if float(amount.value).is_integer() else float(amount.value)
    return f"{symbol.name} = {value!r}  # {symbol.meaning}{f', {amount.unit}' if amount.unit else ''}"
