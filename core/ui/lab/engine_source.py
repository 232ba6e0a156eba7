"""The engine's functions as text, found without running them: the server must not load torch.

Python is found in its syntax tree, C++ by its name and its braces.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from core.ui.source import ROOT, Source

_ENGINE: Final = "core/engine"
#: Where the classes of products are.
_KERNELS: Final = tuple(
    f"{_ENGINE}/{name}.py" for name in ("kernels", "nibble_kernels", "float8_kernels", "native/products")
)


@dataclass(frozen=True, slots=True)
class _Class:
    path: str
    node: ast.ClassDef

    def text_of(self, name: str) -> str | None:
        """The text that a class gives a name, as ``few_name``; None where it gives none."""
        for item in self.node.body:
            if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant):
                targets = [target.id for target in item.targets if isinstance(target, ast.Name)]
                if name in targets:
                    return str(item.value.value)
        return None

    def method(self, name: str) -> ast.FunctionDef | None:
        """A method that is written in the class itself."""
        methods = (item for item in self.node.body if isinstance(item, ast.FunctionDef))
        return next((item for item in methods if item.name == name), None)


def python_source(gives: str, path: str, name: str) -> Source | None:
    """A method, "Class.method"; None where the file has none of that name."""
    kind, _, method = name.partition(".")
    found = _classes(path).get(kind)
    node = found.method(method) if found is not None else None
    return None if node is None else _cut(gives, path, name, node)


def cpp_source(gives: str, path: str, name: str) -> Source | None:
    """A function's definition in C++; None where the file has none of that name."""
    text = _read(path)
    head = rf"^[ \t]*(?!return\b)[\w<>&:\" ]+[ \*&]{re.escape(name)}\([^;{{]*\{{"
    start = re.search(head, text, re.MULTILINE)
    if start is None:
        return None
    depth, end = 1, start.end()
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return Source(gives, name, path, text.count("\n", 0, start.start()) + 1, text[start.start() : end] + "\n")


def product_source(gives: str, kernel: str, *, few: bool) -> Source | None:
    """The product behind a kernel's name in a record.

    Args:
        gives: what it gives on the page.
        kernel: the name of one product, as a record has it.
        few: it is the class's product for few rows.
    """
    names = ("name", "few_name") if few else ("name", "many_name", "wide_name", "cpp_name")
    methods = {"name": "__call__", "few_name": "few_rows"}
    for found in _products():
        # A class with one product for all rows has one name for it, and perhaps one for fp32.
        alone = ("wide_name",) if few and found.text_of("many_name") is None else ()
        for name in (*names, *alone):
            if found.text_of(name) == kernel:
                method = "few_rows" if name in alone else methods.get(name, "many_rows")
                return _inherited(gives, found, method)
    return None


def number(path: str, name: str) -> int:
    """A whole number that a file of the engine gives a name.

    >>> number("core/engine/native/step.py", "MOST_ROWS") > 0
    True
    """
    for node in ast.parse(_read(path)).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return int(ast.literal_eval(node.value)) if node.value is not None else 0
    raise LookupError(f"{path} gives no number the name {name}")


def _inherited(gives: str, found: _Class, method: str) -> Source | None:
    """A method of a class or of the nearest class that it is derived from."""
    every = {one.node.name: one for one in _products()}
    while True:
        node = found.method(method)
        if node is not None:
            return _cut(gives, found.path, f"{found.node.name}.{method}", node)
        bases = [base.id for base in found.node.bases if isinstance(base, ast.Name) and base.id in every]
        if not bases:
            return None
        found = every[bases[0]]


@cache
def _products() -> tuple[_Class, ...]:
    return tuple(found for path in _KERNELS for found in _classes(path).values())


@cache
def _classes(path: str) -> dict[str, _Class]:
    nodes: list[Any] = ast.parse(_read(path)).body
    return {node.name: _Class(path, node) for node in nodes if isinstance(node, ast.ClassDef)}


def _cut(gives: str, path: str, name: str, node: ast.FunctionDef) -> Source:
    lines = _read(path).splitlines(keepends=True)
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    return Source(gives, name, path, first, "".join(lines[first - 1 : node.end_lineno]))


@cache
def _read(path: str) -> str:
    return (Path(ROOT) / path).read_text(encoding="utf-8")
