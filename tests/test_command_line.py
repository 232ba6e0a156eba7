"""The command line keeps its contract: one object or one sentence, and the exit status."""

import subprocess
import sys
import types
from argparse import ArgumentParser, Namespace
from typing import Any

import pytest

from core.__main__ import COMMANDS, INTERRUPTED, USER_MISTAKE, main
from core.errors import ConfigError


def command(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    module = types.ModuleType("core.commands.model")

    def add_arguments(parser: ArgumentParser) -> None:
        parser.add_argument("config")
        parser.add_argument("--batch", type=int, default=1)

    module.__dict__.update(add_arguments=add_arguments, run=run, render=lambda result: f"text {result}")
    monkeypatch.setitem(sys.modules, "core.commands.model", module)


def test_json_prints_one_object_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(monkeypatch, lambda args: {"batch": args.batch})
    assert main(["model", "x", "--batch", "3", "--json"]) == 0
    assert capsys.readouterr() == ('{\n  "batch": 3\n}\n', "")


def test_without_json_it_is_for_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(monkeypatch, lambda args: {"batch": args.batch})
    assert main(["model", "x"]) == 0
    assert capsys.readouterr().out == "text {'batch': 1}\n"


def test_a_users_mistake_is_one_sentence_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Namespace) -> dict[str, Any]:
        raise ConfigError("The config must be JSON; got text. Paste the whole file.")

    command(monkeypatch, run)
    assert main(["model", "x", "--json"]) == USER_MISTAKE
    assert capsys.readouterr() == ("", "The config must be JSON; got text. Paste the whole file.\n")


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(_: Namespace) -> dict[str, Any]:
        raise KeyboardInterrupt

    command(monkeypatch, run)
    assert main(["model", "x"]) == INTERRUPTED
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            ["modle"],
            "The command must be one of model, plan, generate, bench, validate, search; got 'modle'.",
        ),
        (["model"], "The following arguments are required: config."),
        (["model", "x", "--batch", "many"], "Argument --batch: invalid int value: 'many'."),
        (["model", "x", "--speed"], "Unrecognized arguments: --speed."),
    ],
)
def test_wrong_arguments_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    command(monkeypatch, lambda args: {})
    assert main(argv) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(sentence)
    assert captured.err.count("\n") == 1


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown and summary in shown for name, summary in COMMANDS.items())
    assert main([]) == USER_MISTAKE


@pytest.mark.parametrize("name", ["model", "plan"])
def test_counting_does_not_load_torch(name: str) -> None:
    check = (
        f"import sys; from core.__main__ import main; main([{name!r}, '--help']); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("out", ["/", "/dev/null/x", "/proc/x/y.json", "a" * 300])
def test_a_file_that_cannot_be_written_is_refused_before_measuring(
    out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--quick", "--out", out]) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("--out must name a file in a folder that can be written;")


def test_an_interrupt_while_a_command_is_imported_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> types.ModuleType:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", interrupted)
    assert main(["generate", "hi"]) == INTERRUPTED
    assert capsys.readouterr().err == "Stopped.\n"
