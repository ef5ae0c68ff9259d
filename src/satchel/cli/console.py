"""Stdout for data, stderr for talk, and a way out that nothing can block."""

import json
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, NoReturn, TextIO

import click

from satchel.errors import SatchelError
from satchel.text import one_line, visible


def claim_stdout() -> TextIO:
    """Return a private stream to stdout, and lead everybody else who writes there to stderr.

    A plugin that prints when it is imported, or the C library that it loads, would otherwise
    corrupt the data.
    """
    private = _duplicate(1)
    with suppress(OSError):  # stderr may be closed; descriptor 1 then stays what it was
        os.dup2(2, 1)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return open(private, "w", encoding=encoding, errors="backslashreplace")


def _duplicate(descriptor: int) -> int:
    try:
        return os.dup(descriptor)
    except OSError:  # the process was started with it closed
        return os.open(os.devnull, os.O_WRONLY)


def _lead_nowhere(stream: TextIO) -> None:
    """Let what is in a stream's buffer vanish, instead of failing again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def leave(code: int) -> NoReturn:
    """End the process, even while threads of a plugin go on."""
    data, sys.stdout = sys.stdout, sys.stderr  # a plugin may print at exit, too
    with suppress(OSError):
        data.close()
    with suppress(OSError, AttributeError):  # it may be closed, and then is None
        sys.stderr.flush()
    if threading.active_count() > 1:
        # The interpreter would wait for them, or stumble over one that is printing.
        os._exit(code)
    sys.exit(code)


class Console:
    """What a command writes to."""

    def __init__(self, data: TextIO) -> None:
        self._data = data
        self.is_gone = False
        """Whether the reader of stdout has gone away; what is written then is lost, quietly."""
        is_terminal = data.isatty() and os.environ.get("TERM") != "dumb"
        self._colour = is_terminal and not os.environ.get("NO_COLOR")

    @property
    def stream(self) -> TextIO:
        """Return what data is written to, for a command that writes it in its own way."""
        return self._data

    def out(self, text: str = "", end: str = "\n") -> None:
        """Write a line of data at once."""
        try:
            self._data.write(text + end)
            self._data.flush()
        except BrokenPipeError:
            self.is_gone = True
            _lead_nowhere(self._data)
        except OSError as problem:
            raise SatchelError(f"stdout cannot be written: {problem.strerror}") from problem

    def json(self, value: Any) -> None:
        """Write a JSON document; plain ASCII, so that no broken file name can break the output."""
        self.out(json.dumps(value, indent=2))

    def json_line(self, value: Any) -> None:
        """Write one line of NDJSON."""
        self.out(json.dumps(value))

    def labelled(self, lines: Iterable[tuple[str, str]]) -> None:
        """Write lines with their labels in a column; those without a value are left out."""
        for label, value in lines:
            if value:
                self.out(f"  {label:13} {one_line(value)}")

    def say(self, text: str) -> None:
        """Tell the person something that is no data."""
        try:
            click.echo(text, err=True)
        except OSError:  # nobody listens
            _lead_nowhere(sys.stderr)

    def warn(self, text: str, near: Sequence[str] = ()) -> None:
        """Warn the person, with the names that were perhaps meant."""
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        self.say(one_line(f"warning: {text}{hint}"))

    def paint(self, text: str, **style: Any) -> str:
        """Colour a text if data goes to a terminal and nobody asked for no colour."""
        return click.style(text, **style) if self._colour else text

    @property
    def columns(self) -> int | None:
        """Return how wide the reader's screen is, or `None` for a reader that has none."""
        if (wanted := os.environ.get("COLUMNS", "")) and re.fullmatch("[1-9][0-9]{0,4}", wanted):
            return int(wanted)
        try:
            return os.get_terminal_size(self._data.fileno()).columns or None
        except (OSError, ValueError):
            return None


@contextmanager
def console() -> Iterator[Console]:
    """Keep stdout for the data of one command: whatever else is printed goes to stderr."""
    data = sys.stdout
    with redirect_stdout(sys.stderr):
        yield Console(data)


def log_visibly() -> None:
    """Send what Satchel logs to stderr, without the escape sequences of a tool's error."""
    # Lazy: only commands that run code have anything to log.
    import logging

    class Visible(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(visible(self.format(record)), err=True)

    log = logging.getLogger("satchel")
    if not any(type(handler).__name__ == Visible.__name__ for handler in log.handlers):
        log.addHandler(Visible())
