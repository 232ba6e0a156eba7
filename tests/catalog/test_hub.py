"""A config from the hub is read where there is one, and everything else is one sentence."""

import doctest
import json
import sys
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


def stand_in(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """Put a hub in place of the real one."""

    def download(name: str, file: str, etag_timeout: int) -> str:
        assert (name, file) == ("someone/model", "config.json")
        assert etag_timeout <= 10
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(hf_hub_download=download))


def test_a_config_of_the_hub_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    stand_in(monkeypatch, path)
    assert json.loads(hub.hub_config("someone/model")) == CONFIG
    assert main(["model", "someone/model", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["architecture"] == "llama"


def test_offline_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(monkeypatch, ConnectionError("no route"))
    assert main(["model", "someone/model"]) == 2
    said = capsys.readouterr().err
    assert "getting it failed (ConnectionError). This machine may be offline" in said
    assert said.count("\n") == 1


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
