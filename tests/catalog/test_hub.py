"""A config from the hub is read where there is one, and everything else is one sentence."""

import doctest
import json
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.__main__ import main
from core.catalog import hub
from core.errors import ConfigError

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}


def stand_in(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[bool]:
    """Put a hub in place of the real one; gives whether each question was for the cache alone."""
    asked: list[bool] = []

    def download(name: str, file: str, etag_timeout: int, *, local_files_only: bool) -> str:
        assert (name, file) == ("someone/model", "config.json")
        assert etag_timeout <= 10
        asked.append(local_files_only)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    parts: dict[str, dict[str, Any]] = {
        "": {"hf_hub_download": download},
        ".constants": {"ENDPOINT": "https://hub.invalid"},
    }
    for part, values in parts.items():
        monkeypatch.setitem(sys.modules, f"huggingface_hub{part}", SimpleNamespace(**values))
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: nullcontext())
    return asked


def test_a_config_of_the_hub_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    stand_in(monkeypatch, path)
    assert json.loads(hub.hub_config("someone/model")) == CONFIG
    assert main(["model", "someone/model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["architecture"] == "llama"


@pytest.mark.parametrize(
    "problem", [ConnectionError("no route"), PermissionError("gated"), ValueError("no such id")]
)
def test_offline_or_gated_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problem: Exception
) -> None:
    stand_in(monkeypatch, problem)
    assert main(["model", "someone/model"]) == 2
    said = capsys.readouterr().err
    assert "it could not be fetched. This machine may be offline" in said
    assert "give the path of its config.json" in said
    assert type(problem).__name__ not in said
    assert said.count("\n") == 1


def test_without_a_network_only_the_cache_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stand_in(monkeypatch, FileNotFoundError("not in the cache"))

    def unreachable(address: tuple[str, int], timeout: float) -> None:
        assert address == ("hub.invalid", 443)
        raise OSError(f"no route within {timeout} s")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr(hub, "getproxies", dict)
    with pytest.raises(ConfigError, match=r"could not be fetched\. This machine may be offline"):
        hub.hub_config("someone/model")
    assert asked == [True]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match="needs the package huggingface_hub, which is not installed"):
        hub.hub_config("someone/model")


@pytest.mark.parametrize("name", ["model", "a/b/c", "../x", "https://x/y", "", "a/" + "b" * 200])
def test_what_is_no_id_is_refused(name: str) -> None:
    assert not hub.is_hub_id(name)
    with pytest.raises(ConfigError, match="must have the form owner/model"):
        hub.hub_config(name)


def test_examples_hold() -> None:
    assert doctest.testmod(hub).failed == 0
