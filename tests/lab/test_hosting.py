"""Who may reach out from this computer: its owner, at its own screen, and nobody else."""

import doctest

import pytest

from core.lab import hosting
from core.lab.hosting import HOSTED_VARIABLE, is_at_this_computer, is_hosted


@pytest.mark.parametrize(
    ("value", "hosted"),
    [(None, False), ("", False), ("0", False), ("1", True), ("yes", True), ("false", True)],
)
def test_a_host_says_so(monkeypatch: pytest.MonkeyPatch, value: str | None, hosted: bool) -> None:
    monkeypatch.delenv(HOSTED_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(HOSTED_VARIABLE, value)
    assert is_hosted() is hosted


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("127.0.0.1", {"host": "localhost:8501"}),
        ("127.0.0.1", {"HOST": "127.0.0.1"}),
        ("::ffff:127.0.0.1", {"host": "127.0.0.1:8501"}),
        ("::1", {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}),
    ],
)
def test_a_browser_on_this_computer(address: str, headers: dict[str, str]) -> None:
    assert is_at_this_computer(address, headers)


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.168.1.7", {"host": "localhost:8501"}),
        ("::ffff:192.168.1.7", {"host": "localhost:8501"}),
        ("", {"host": "localhost:8501"}),
        ("unknown", {"host": "localhost:8501"}),
        ("127.0.0.1", {}),
        ("127.0.0.1", {"host": ""}),
        ("127.0.0.1", {"host": "[::1"}),
        ("127.0.0.1", {"host": "lab.example.org"}),
        ("127.0.0.1", {"host": "localhost.example.org"}),
        ("127.0.0.1", {"host": "localhost", "X-Forwarded-For": "203.0.113.9"}),
        ("127.0.0.1", {"host": "localhost", "x-forwarded-host": "lab.example.org"}),
        ("127.0.0.1", {"host": "localhost", "Forwarded": "for=203.0.113.9"}),
        ("127.0.0.1", {"host": "localhost", "Via": "1.1 proxy"}),
        ("127.0.0.1", {"host": "localhost", "Origin": "https://example.org"}),
        ("127.0.0.1", {"host": "localhost", "Origin": "null"}),
    ],
)
def test_everybody_else(address: str, headers: dict[str, str]) -> None:
    assert not is_at_this_computer(address, headers)


def test_the_examples_hold() -> None:
    assert doctest.testmod(hosting).failed == 0
