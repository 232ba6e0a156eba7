"""Standard output, which may be closed, cut off by the next program in a pipe, or a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from core.catalog.plain_text import plain_text
from core.errors import RecordError

#: What a shell reports of a program whose reader went away: 128 and the number of SIGPIPE.
READER_LEFT: Final = 141
_MISTAKE: Final = 2
_LONGEST_SENTENCE: Final = 4_000


class OutputLost(Exception):  # noqa: N818 (a reader that leaves is no error)
    """Nobody takes the answer any more.

    Attributes:
        status: to exit with. The text is a sentence for standard error, empty where nobody made a mistake.
    """

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def write(text: str) -> None:
    """Write to standard output, at once.

    Raises:
        OutputLost: it is closed, full, or nobody reads it.
    """
    if sys.stdout is None:
        raise OutputLost(
            "Standard output must be open; it is closed. Send it to a file or /dev/null.", _MISTAKE
        )
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # a terminal that cannot show it
            encoding = sys.stdout.encoding or "ascii"
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        _send_nowhere()
        raise OutputLost("", READER_LEFT) from None
    except OSError as problem:
        _send_nowhere()
        raise OutputLost(
            f"The answer must fit where standard output goes; it does not ({problem.strerror}). Make room, "
            "or send it elsewhere.",
            _MISTAKE,
        ) from None


def complain(sentence: str) -> None:
    """Write one sentence to standard error; what it quotes cannot break the line or move the cursor."""
    with contextlib.suppress(OSError):  # nobody listens
        print(plain_text(sentence, _LONGEST_SENTENCE), file=sys.stderr, flush=True)  # noqa: T201


def check_writable(out: Path) -> None:
    """Find out whether ``--out`` can be written, before anything is measured for it.

    Raises:
        RecordError: it cannot.
    """
    try:
        if out.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}."):
            pass
    except OSError as problem:
        raise RecordError(
            f"--out must name a file in a folder that can be written; {str(out)[:200]!r} cannot be "
            f"({problem.strerror}). Choose another."
        ) from None


def _send_nowhere() -> None:
    """What is left in the buffer goes nowhere, so that the interpreter does not fail on it as it ends."""
    with contextlib.suppress(OSError, ValueError):  # a stand-in for standard output has no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
