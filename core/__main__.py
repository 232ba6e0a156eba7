"""The command line: ``python -m core COMMAND``, for scripts and for machines without a browser.

``--json`` prints one JSON object on standard output and nothing else there. A user's mistake
prints one sentence on standard error and exits with status 2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from core.catalog.near_names import near_names, one_of
from core.commands.output import OutputLost, complain, write
from core.errors import UserError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COMMANDS: Final[dict[str, str]] = {
    "model": "count a model's parameters, weights and KV cache",
    "plan": "memory, time and limits of a model on an accelerator",
    "generate": "write text with the engine on this machine",
    "serve": "replay a trace of requests with the engine, beside the simulator",
    "split": "run a model split over processes, and hold it against one process",
    "quality": "what each number format loses, and how fast it is on this machine",
    "endpoint": "measure a server of your own, beside its prediction",
    "bench": "calibrate this machine, predict, measure and compare",
    "records": "list the recorded runs, or check a file that is to join them",
    "validate": "hold the predictor against published measurements",
    "search": "chips, formats and plans for a model, ranked",
    "list": "the names of models, accelerators, formats and networks",
}
USER_MISTAKE: Final = 2
INTERRUPTED: Final = 130
_KINDS: Final = {"int": "a whole number", "float": "a number"}


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
        sentence = re.sub(r"^argument (\S+?)(/\S+)?: must", r"\1 must", message)
        sentence = sentence if sentence.startswith("-") else sentence[:1].upper() + sentence[1:]
        end = "" if sentence.endswith("`.") else f" See: {self.prog} --help"
        complain(f"{sentence.rstrip('.')}.{end}")
        self.exit(USER_MISTAKE)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if file is sys.stdout:
            write(message)
        else:
            super()._print_message(message, file)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:  # noqa: ANN401 (as it is declared)
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as problem:
            kind = _KINDS.get(getattr(action.type, "__name__", ""))
            if kind is None or not problem.message.startswith("invalid"):
                raise
            raise argparse.ArgumentError(action, f"must be {kind}; got {arg_string[:40]!r}") from None

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            sentence = one_of("", str(value), known, f"{action.dest}s")
            raise argparse.ArgumentError(action, sentence.strip())


class _Defaults(argparse.ArgumentDefaultsHelpFormatter):
    """Help that names each default, where there is one to name."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        unset = action.default is None or action.default is False or action.default == []
        return action.help if unset else super()._get_help_string(action)


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    try:
        return _dispatch(sys.argv[1:] if argv is None else argv)
    except OutputLost as lost:
        if str(lost):
            complain(str(lost))
        return lost.status
    except KeyboardInterrupt:
        complain("Stopped.")
        return INTERRUPTED


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        print(_overview(), file=sys.stderr)
        return USER_MISTAKE
    if arguments[0] in {"-h", "--help"}:
        write(_overview() + "\n")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        near = near_names(name, COMMANDS)
        meant = f" Did you mean {near[0]}?" if near else ""
        complain(
            f"The command must be one of {', '.join(COMMANDS)}; got {name[:80]!r}.{meant} "
            "See: python -m core --help"
        )
        return USER_MISTAKE
    # Only the chosen command is imported, so that counting a model does not load torch.
    command: Any = importlib.import_module(f"core.commands.{name}")
    return _run(name, command, arguments[1:])


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
        complain(str(mistake))
        return USER_MISTAKE
    answer = json.dumps(result, indent=2, allow_nan=False) if args.json else command.render(result)
    write(answer + "\n")
    return 0


def _overview() -> str:
    lines = [f"  {name:10}{summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        ["Usage: python -m core COMMAND [options]", "", *lines, "", "Each takes --help and --json."]
    )


if __name__ == "__main__":
    sys.exit(main())
