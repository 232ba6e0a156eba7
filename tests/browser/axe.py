"""axe-core, which finds what is hard to use without sight, a mouse, or full colour vision."""

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
VERSION = "4.14.1"
PLACES = (ROOT / ".venv" / "node_modules", ROOT / "node_modules")
#: What counts: the two upper grades of four.
GRADES = {"serious", "critical"}
#: A page that is still being drawn is looked at again.
TRIES = 4
PAUSE_MS = 1500


def axe_script() -> str:
    """The script's text. A developer's machine may lack it; the project's checks may not."""
    found = next((p for place in PLACES if (p := place / "axe-core" / "axe.min.js").exists()), None)
    if found is None and os.environ.get("CI") != "true":
        pytest.skip(f"axe-core is not installed: npm install --prefix .venv axe-core@{VERSION}.")
    assert found is not None, f"The checks need axe-core: npm install --prefix .venv axe-core@{VERSION}."
    return found.read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    """Serious and critical findings of the page, one line each; what is gone a moment later is none."""
    page.evaluate(axe_script())
    found = _findings(page)
    for _ in range(TRIES - 1):
        if not found:
            break
        page.wait_for_timeout(PAUSE_MS)
        found = _findings(page)
    return found


def _findings(page: Page) -> list[str]:
    found = json.loads(page.evaluate("axe.run(document).then((r) => JSON.stringify(r.violations))"))
    return [
        f"{entry['id']} ({entry['impact']}): {entry['help']}: "
        + " | ".join(str(node["target"]) + " " + str(node["html"])[:160] for node in entry["nodes"][:3])
        for entry in found
        if entry["impact"] in GRADES
    ]
