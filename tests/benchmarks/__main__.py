"""Runs every benchmark in a process of its own, prints the tables and writes ``bench.json``.

A benchmark is a module of this folder that calls ``report(measure)`` when it is run. Run one alone
with ``python -m tests.benchmarks.NAME``. Nothing here is a test: machines differ, so a missed
target is printed and does not fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parent.parent
RESULT: Final = ROOT / "bench.json"
NOT_BENCHMARKS: Final = {"__init__", "__main__", "figure"}


def benchmarks() -> list[str]:
    """The names of the benchmark modules: those that report figures."""
    names = (path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem not in NOT_BENCHMARKS)
    return [name for name in names if "report(" in (FOLDER / f"{name}.py").read_text()]


def main() -> int:
    """Run them all; the exit status counts the modules that broke."""
    figures, broken = [], 0
    for name in benchmarks():
        print(f"\n{name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "figures.json"
            command = [sys.executable, "-m", f"tests.benchmarks.{name}", "--out", str(out)]
            if subprocess.run(command, cwd=ROOT, check=False).returncode or not out.exists():
                print(f"{name} did not finish.")
                broken += 1
                continue
            figures += json.loads(out.read_text())
    RESULT.write_text(json.dumps(figures, indent=2))
    print(f"\n{len(figures)} figures in {RESULT.name}")
    return broken


if __name__ == "__main__":
    sys.exit(main())
