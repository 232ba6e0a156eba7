"""The app in AppTest with a lab that does what the test says."""

import re
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.ui import visit_key
from core.ui.lab import service
from tests.pages.fake_lab import FakeLab

ROOT = Path(__file__).parents[2]

Open = Callable[..., AppTest]


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    fake = FakeLab()
    monkeypatch.setattr(service, "lab", lambda: fake)
    return fake


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> service.Visits:
    own = service.Visits()
    monkeypatch.setattr(service, "visits", lambda: own)
    return own


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Answers for the browser when it is asked for its tab's key: each visitor has one, or ``key``."""
    given: dict[str, str] = {}

    def answer() -> str:
        key: str = st.session_state.setdefault("visit_key_known", given.get("key") or secrets.token_hex(16))
        return key

    monkeypatch.setattr(visit_key, "ask", answer)
    return given


@pytest.fixture
def open_app(lab: FakeLab, visits: service.Visits, tab: dict[str, str]) -> Iterator[Open]:
    """Open the app as a new visitor; afterwards, prove that no visit brought torch in."""

    def open_as_visitor(page: str = "lab", **params: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
        for name, value in params.items():
            app.query_params[name] = value
        return settled(app.switch_page(f"pages/{page}.py").run())

    yield open_as_visitor
    assert "torch" not in sys.modules


def settled(app: AppTest) -> AppTest:
    """The app, once it is sure that no script broke."""
    assert not app.exception, app.exception
    return app


def words(app: AppTest) -> str:
    """Every text a visitor can read, in order, without markup."""
    groups = (
        app.title,
        app.header,
        app.markdown,
        app.caption,
        app.html,
        app.warning,
        app.error,
        app.info,
        app.code,
    )
    return re.sub(r"<[^>]+>", " ", "\n".join(str(item.value) for group in groups for item in group))


def state(app: AppTest) -> str:
    """The state that the card shows."""
    found = [re.search(r'data-state="(\w+)"', item.value) for item in app.html]
    states = [match[1] for match in found if match]
    assert len(states) == 1, states
    return states[0]
