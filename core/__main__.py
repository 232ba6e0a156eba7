"""The command line: ``python -m core COMMAND``, for scripts and for machines without a browser.

``--json`` prints one JSON object on standard output and nothing else there. A user's mistake
prints one sentence on standard error and exits with status 2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from typing import Any, Final, NoReturn, Protocol

from core.errors import UserError

COMMANDS: Final[dict[str, str]] = {
    "model": "count a model's parameters, weights and KV cache",
    "plan": "memory, time and limits of a model on an accelerator",
    "generate": "write text with the engine on this machine",
    "bench": "calibrate this machine, predict, measure and compare",
    "validate": "hold the predictor against published measurements",
    "search": "chips, formats and plans for a model, ranked",
}
USER_MISTAKE: Final = 2
INTERRUPTED: Final = 130


class Command(Protocol):
    """What each module of ``core.commands`` offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> dict[str, Any]:
        """Do the work and return what ``--json`` prints."""

    def render(self, result: dict[str, Any]) -> str:
        """Write the same result for a person."""


class SentenceParser(argparse.ArgumentParser):
    """An argument parser whose errors are one sentence, without the usage block."""

    def error(self, message: str) -> NoReturn:
        """Print the mistake and where to read on."""
        sentence = message[:1].upper() + message[1:]
        self.exit(USER_MISTAKE, f"{sentence}. See: {self.prog} --help\n")


class _Defaults(argparse.ArgumentDefaultsHelpFormatter):
    """Help that names each default, where there is one to name."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        unset = action.default is None or action.default is False
        return action.help if unset else super()._get_help_string(action)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(_overview(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else USER_MISTAKE
    name = arguments[0]
    if name not in COMMANDS:
        print(
            f"The command must be one of {', '.join(COMMANDS)}; got {name!r}. See: python -m core --help",
            file=sys.stderr,
        )
        return USER_MISTAKE
    try:
        # Only the chosen command is imported, so that counting a model does not load torch.
        command: Any = importlib.import_module(f"core.commands.{name}")
        return _run(name, command, arguments[1:])
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED


def _run(name: str, command: Command, arguments: list[str]) -> int:
    parser = SentenceParser(
        prog=f"python -m core {name}",
        description=f"{COMMANDS[name].capitalize()}.",
        formatter_class=_Defaults,
    )
    command.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    try:
        args = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse has printed its sentence, or its help
        return stop.code if isinstance(stop.code, int) else USER_MISTAKE
    try:
        result = command.run(args)
    except UserError as mistake:
        print(mistake, file=sys.stderr)
        return USER_MISTAKE
    print(json.dumps(result, indent=2, allow_nan=False) if args.json else command.render(result))
    return 0


def _overview() -> str:
    lines = [f"  {name:10}{summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        ["Usage: python -m core COMMAND [options]", "", *lines, "", "Each takes --help and --json."]
    )


if __name__ == "__main__":
    sys.exit(main())
