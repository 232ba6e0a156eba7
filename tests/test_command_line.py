"""The command line keeps its contract: one object or one sentence, and the exit status."""

import json
import os
import re
import shlex
import subprocess
import sys
import types
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import COMMANDS, INTERRUPTED, USER_MISTAKE, main
from core.catalog.accelerators import accelerators, links
from core.catalog.formats import STORAGE_FORMATS
from core.catalog.models import catalogue
from core.catalog.near_names import near_names
from core.commands.output import READER_LEFT
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
            f"The command must be one of {', '.join(COMMANDS)}; got 'modle'. Did you mean model? See: ",
        ),
        (["model"], "The following arguments are required: config."),
        (["model", "x", "--batch", "many"], "--batch must be a whole number; got 'many'."),
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


def run_in_shell(line: str) -> subprocess.CompletedProcess[str]:
    python = f"{shlex.quote(sys.executable)} -m core"
    command = ["bash", "-c", f"{line.replace('core', python)}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", ["plan --json", "list", "plan --help"])
def test_a_reader_that_leaves_is_no_mistake(options: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "core", *options.split()]
    with os.fdopen(writer) as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (READER_LEFT, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no /dev/full.")
@pytest.mark.parametrize("options", ["plan", "plan --json", "--help", "model --help"])
def test_a_full_disk_is_one_sentence(options: str) -> None:
    done = run_in_shell(f"core {options} > /dev/full")
    assert done.returncode == USER_MISTAKE
    assert done.stderr.startswith(
        "The answer must fit where standard output goes; it does not (No space left"
    )
    assert done.stderr.count("\n") == 1


def test_a_closed_output_is_one_sentence() -> None:
    done = run_in_shell("core plan >&-")
    assert done.returncode == USER_MISTAKE
    assert done.stderr.startswith("Standard output must be open; it is closed.")
    assert done.stderr.count("\n") == 1


def test_a_terminal_that_cannot_show_a_character_shows_its_number() -> None:
    shown = run_in_shell("PYTHONUTF8=0 PYTHONIOENCODING=ascii core plan --price 1")
    assert (shown.returncode, shown.stderr) == (0, "")


@pytest.mark.parametrize("name", ["model", "plan", "search", "validate", "list"])
def test_help_names_a_default_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "[]" not in shown
    assert not re.search(r"\(default [^)]*\) \(default|\(\d+\) \(default", shown)


@pytest.mark.parametrize("kind", ["models", "accelerators", "formats", "networks"])
def test_a_list_has_every_name(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    known = {"models": catalogue, "accelerators": accelerators, "networks": links}.get(
        kind, lambda: STORAGE_FORMATS
    )
    assert main(["list", kind, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)[kind]) == set(known())
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in known())


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("gpt-5", ["gpt2", "t4"], ["gpt2"]),
        ("H100", ["t4", "h100-a", "h100-b", "h100-c", "h100-d"], ["h100-a", "h100-b", "h100-c"]),
        ("zzz", ["gpt2"], []),
        ("", ["gpt2"], []),
        ("x" * 5000, ["gpt2"], []),
    ],
)
def test_near_names(name: str, known: list[str], near: list[str]) -> None:
    assert near_names(name, known) == near


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
