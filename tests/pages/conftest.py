"""The app in AppTest with a lab that does what the test says."""

import json
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.ui import choice_list, visit_key
from core.ui.choice_list import Offer
from core.ui.lab import service
from core.ui.lesson import recorded
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


@pytest.fixture(autouse=True)
def _no_recorded_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are tested as where nothing was recorded; a test that is about records brings its own."""
    monkeypatch.setattr(recorded, "shipped", lambda folder: ())
    monkeypatch.setattr(recorded, "shipped_experiments", lambda folder: {})


@pytest.fixture(autouse=True)
def _offers_can_be_pressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest cannot press what a component draws, so each offered change gets a button beside it."""
    draw = choice_list.show

    def show(offers: Sequence[Offer], button: str, key: str, on_choose: Callable[[str], None]) -> None:
        draw(offers, button, key, on_choose)
        for number, offer in enumerate(offers):
            st.button(button, key=f"{key}_{number}", on_click=on_choose, args=(offer.id,))

    monkeypatch.setattr(choice_list, "show", show)


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
    """Every text a visitor can read, in order of kind, without markup."""
    groups = (app.title, app.header, app.markdown, app.caption, app.warning, app.error, app.info, app.code)
    texts = [str(item.value) for group in groups for item in group]
    texts += [unescape(re.sub(r"<[^>]+>", " ", item.value)) for item in app.html]
    return "\n".join([*texts, *component_words(app)])


def component_data(app: AppTest) -> list[dict[str, Any]]:
    """What every component of ours was given."""
    return [json.loads(item.proto.json) for item in app.get("bidi_component") if item.proto.json]


def component_words(app: AppTest) -> list[str]:
    """The texts of pictures (heading and caption) and of offered changes."""
    found = []
    for data in component_data(app):
        found += [data[name] for name in ("title", "look") if name in data]
        found += [f"{row['label']}: {row['value']}. {row['sentence']}" for row in data.get("rows", ())]
    return found


def tables(app: AppTest) -> list[list[list[str]]]:
    """Every table that can be saved: its rows, the head first, as texts."""
    return [
        [
            [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", item.value)
        ]
        for item in app.html
        if 'role="region"' in item.value
    ]


def state(app: AppTest) -> str:
    """The state that the card shows."""
    found = [re.search(r'data-state="(\w+)"', item.value) for item in app.html]
    states = [match[1] for match in found if match]
    assert len(states) == 1, states
    return states[0]
