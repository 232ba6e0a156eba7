"""Rules of the house that no linter knows: short functions, short files, one map of the tree."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_FUNCTION_LINES = 50
MAX_FILE_LINES = 300


def sources() -> Iterator[Path]:
    yield ROOT / "app.py"
    for folder in ("core", "pages"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def functions() -> list[tuple[int, str]]:
    found = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append((lines, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"))
    return sorted(found, reverse=True)


def test_no_function_is_long() -> None:
    longest = functions()[:10]
    assert longest[0][0] <= MAX_FUNCTION_LINES, "\n".join(f"{n:4} {where}" for n, where in longest)


def test_most_functions_are_short() -> None:
    lengths = [lines for lines, _ in functions()]
    assert lengths[len(lengths) // 10] <= 27, "one function in ten is longer than 27 lines"


def test_no_file_is_long() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for p in sources()
        if (n := len(p.read_text().splitlines())) > MAX_FILE_LINES
    }
    assert not long


def test_every_module_says_what_it_is_for() -> None:
    silent = [p for p in sources() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_the_readmes_tree_is_the_real_tree() -> None:
    """What the README's tree names exists, and it names every folder of ours and every top file."""
    block = re.search(r"```text\n(app\.py.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block, "the README has no tree"
    named = set(named_paths(block.group(1)))
    assert {name for name in named if not (ROOT / name).exists()} == set()
    folders = {path.parent.relative_to(ROOT).as_posix() for path in sources()} - {"."}
    top_files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "core").glob("*.py")}
    top_files |= {path.name for path in ROOT.glob("requirements*.txt")}
    assert folders | top_files - {"core/__init__.py", "core/__main__.py"} <= named


def test_the_files_that_the_readme_speaks_of_exist() -> None:
    text = (ROOT / "README.md").read_text()
    spoken = set(re.findall(r"`((?:core|tests|pages|assets)/[\w/.]+)`", text))
    assert spoken
    assert {name for name in spoken if not (ROOT / name).exists()} == set()


def test_every_requirement_has_its_reason() -> None:
    table = (ROOT / "README.md").read_text()
    pinned = [
        line.split("==")[0]
        for path in ROOT.glob("requirements*.txt")
        for line in path.read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert [name for name in pinned if not re.search(rf"^\|.*\b{name}\b.*\|", table, re.MULTILINE)] == []


def named_paths(tree: str) -> Iterator[str]:
    """The paths of a tree drawn by two-space indents: ``name/  words`` or ``name.py  words``."""
    stack: list[str] = []
    for line in tree.splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0].rstrip("/")
        stack = [*stack[:depth], name]
        yield "/".join(stack)
