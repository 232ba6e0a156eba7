"""The server's options are read as they were meant; one of them is hidden and could vanish."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from core.ui.palette import INK, PAGE

ROOT = Path(__file__).parents[2]
OPTIONS = {
    "runner.postScriptGC": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.maxUploadSize": 1,
    "server.port": 8501,
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "client.showErrorDetails": "none",
    "browser.gatherUsageStats": False,
}


@pytest.fixture(scope="module")
def options() -> dict[str, object]:
    program = (
        "import json; from streamlit import config; "
        f"print(json.dumps({{name: config.get_option(name) for name in {list(OPTIONS)}}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    read: dict[str, object] = json.loads(done.stdout)
    return read


@pytest.mark.parametrize("name", OPTIONS)
def test_the_server_reads_the_option(options: dict[str, object], name: str) -> None:
    assert options[name] == OPTIONS[name]


def test_the_theme_is_the_palettes() -> None:
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
    for mode in ("light", "dark"):
        assert theme[mode]["backgroundColor"] == getattr(PAGE, mode)
        assert theme[mode]["textColor"] == getattr(INK, mode)
