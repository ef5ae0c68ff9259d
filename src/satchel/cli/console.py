"""Output of the command line: stdout for data, stderr for messages, and a reliable exit."""

import faulthandler
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from textwrap import wrap
from typing import Any, NoReturn, TextIO

import click

from satchel.errors import SatchelError
from satchel.reports.printed_commands import completed
from satchel.reports.short_texts import with_short_paths
from satchel.text import one_line, visible


def _discard(stream: TextIO) -> None:
    """Send a stream to /dev/null, so that its buffer does not fail again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


_LONGEST_EXIT = 10.0
"""Seconds for what Python and plugins do at the exit, before the process ends without it."""


def leave(code: int) -> NoReturn:
    """End the process, even while threads of a plugin still run, or its finalizers never end."""
    data, sys.stdout = sys.stdout, sys.stderr  # a plugin may print at exit, too
    with suppress(OSError):
        data.close()
    with suppress(OSError, AttributeError):  # None if the process started with it closed
        sys.stderr.flush()
    if threading.active_count() > 1:
        # The interpreter would wait for them, or crash on one that is printing.
        os._exit(code)
    with suppress(RuntimeError, ValueError, OSError):  # there is no stderr
        # Finalizers of plugins run next. This timer is one of C: it needs no thread of Python.
        faulthandler.dump_traceback_later(_LONGEST_EXIT, exit=True)
    sys.exit(code)


_SEVERITY = re.compile(r"(?<!\S)(?:(error)|warning)(?:\[[a-z-]+\])?(?=: )", re.IGNORECASE)
"""The word in a message that says how bad it is, with the code of a diagnostic."""


def show_in_colour(show: Callable[[TextIO], None], _file: Any = None) -> None:
    """Write what an exception of click shows to stderr, with its severity coloured."""
    text = StringIO()
    show(text)
    complain(text.getvalue().removesuffix("\n"))


_OPTIONS = "satchel.source-options"
"""The key in `Context.meta` of the options that select the sources of the running command."""


def remember_options(options: Sequence[str]) -> None:
    """Keep the options that select the sources of the running command, for its messages."""
    click.get_current_context().meta[_OPTIONS] = tuple(options)


def complain(text: str) -> None:
    """Write a message to stderr; on a terminal it is wrapped, and its severity is coloured."""
    click.echo(_with_colour(wrapped(text, sys.stderr)), err=True)


HANG = " " * 4
"""The indent of a line that continues another."""
_LEAST_LINE = 20
"""In a narrower terminal nothing is wrapped."""
_COMMAND = re.compile(r"(?<![\w.-])satchel [^,;'()]{,60}(?=[,;'()]|$)")
"""A short command in a message; it is pasted from the terminal."""


def wrapped(text: str, stream: TextIO | None) -> str:
    """Return a text whose lines are wrapped if the stream is a terminal; a pipe gets whole lines.

    What continues a line is indented by 4 characters more. Words stay whole, and commands if they
    fit.
    """
    if stream is None or not stream.isatty() or (width := _width(stream) or 0) < _LEAST_LINE:
        return text
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip(" "))) + HANG
    if len(line) <= width or len(indent) >= width:
        return line
    # A text has no NUL: control characters are escaped.
    joined = _COMMAND.sub(lambda match: match[0].replace(" ", "\0"), line)
    lines = wrap(
        joined, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def _width(stream: TextIO) -> int | None:
    columns = os.environ.get("COLUMNS", "")
    if re.fullmatch("[1-9][0-9]{0,4}", columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def _with_colour(text: str) -> str:
    return _SEVERITY.sub(_painted, text, count=1) if _is_coloured(sys.stderr) else text


def _painted(match: re.Match[str]) -> str:
    return click.style(match[0], fg="red" if match[1] else "yellow")


def _is_coloured(stream: TextIO | None) -> bool:
    if stream is None or not stream.isatty():  # None if the process started with it closed
        return False
    return os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


class Console:
    """The output of one command."""

    def __init__(self, data: TextIO) -> None:
        self.stream = data
        """The stream of the data, for a command that writes to it directly."""
        self.is_gone = False
        """Whether the reader of stdout has gone; further output is discarded."""
        self._colour = _is_coloured(data)
        # Kept here: messages of the watch come in a thread of its own, which has no context.
        context = click.get_current_context(silent=True)
        self._meta: dict[str, Any] = context.meta if context else {}

    def out(self, text: str = "", end: str = "\n") -> None:
        """Write a line of data and flush it."""
        try:
            self.stream.write(text + end)
            self.stream.flush()
        except BrokenPipeError:
            self.is_gone = True
            _discard(self.stream)
        except OSError as problem:
            raise SatchelError(f"cannot write to stdout: {problem.strerror}") from problem

    def completed(self, text: str) -> str:
        """Return a message with short paths, whose commands select the sources of this command."""
        return with_short_paths(completed(text, self._meta.get(_OPTIONS, ())))

    def wrapped(self, text: str, **style: Any) -> None:
        """Write a message to stdout as data; on a terminal it is wrapped, and may have a style."""
        self.out(self.paint(self.fitting(text), **style))

    def fitting(self, text: str) -> str:
        """Return a message for stdout: completed, and on a terminal wrapped."""
        return wrapped(self.completed(text), self.stream)

    def json(self, value: Any) -> None:
        """Write a JSON document in ASCII, so that an invalid file name cannot break the output."""
        self.out(json.dumps(value, indent=2))

    def labelled(self, lines: Iterable[tuple[str, str]]) -> None:
        """Write values with their labels in a column; empty values are left out."""
        for label, value in lines:
            if value:
                self.out(f"  {label:13} {one_line(value)}")

    def say(self, text: str, *, as_is: bool = False) -> None:
        """Write a message to stderr; on a terminal it is wrapped, and its severity is coloured.

        `as_is` keeps the paths and commands of a text from outside.
        """
        try:
            complain(text if as_is else self.completed(text))
        except OSError:  # the reader has gone
            _discard(sys.stderr)

    def warn(self, text: str, near: Sequence[str] = ()) -> None:
        """Write a warning to stderr, with similar names as suggestions."""
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        self.say(one_line(f"warning: {text}{hint}"))

    def paint(self, text: str, **style: Any) -> str:
        """Colour a text if stdout is a terminal and NO_COLOR is not set."""
        return click.style(text, **style) if self._colour else text

    @property
    def columns(self) -> int | None:
        """Return the width of the terminal, or `None` if stdout is not a terminal."""
        return _width(self.stream)


@contextmanager
def console() -> Iterator[Console]:
    """Reserve stdout for the data of one command; all other output goes to stderr."""
    data = sys.stdout
    with redirect_stdout(sys.stderr):
        yield Console(data)


def log_to_stderr() -> None:
    """Write Satchel's log to stderr, with the escape sequences of tool errors made visible."""
    # Lazy: only commands that run plugin code write a log.
    import logging

    class Visible(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(visible(self.format(record)), err=True)

    log = logging.getLogger("satchel")
    if not any(type(handler).__name__ == Visible.__name__ for handler in log.handlers):
        log.addHandler(Visible())
    logging.getLogger("satchel.loader.plugin_loader").setLevel(logging.INFO)  # slow imports
