"""The app as a server runs it: the real client, a worker without torch, a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.page

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys, time
from streamlit.testing.v1 import AppTest
from core.lab.client import LabClient
from core.ui.lab import service
from tests.lab.conftest import fake_command

lab = LabClient(command=fake_command)
service.lab = lambda: lab
app = AppTest.from_file("app.py", default_timeout=30).switch_page("pages/lab.py").run()
while lab.status().state != "ready":
    time.sleep(0.02)
app.text_area(key="lab_prompt").set_value("steps 3 0.01").run()
app.button(key="lab_run").click().run()
deadline = time.monotonic() + 20
while "lab_trouble" not in app.session_state and time.monotonic() < deadline:
    time.sleep(0.05)
    app.run()
lab.close()
assert not app.exception, app.exception
# The stand-in's result is no run record, and the page says so.
assert "A run record must" in app.session_state["lab_trouble"][0]
print("torch" in sys.modules)
"""


def test_every_page_opens_and_runs_without_torch_in_the_server() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["False"], done.stderr
