"""Questions, messages and download progress on the terminal, for installing a plugin."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from satchel.cli.console import Console
from satchel.settings import MIB
from satchel.text import one_line, visible

_REDRAW_SECONDS = 0.1
NOT_AGREED = 3
"""The exit code if the user did not agree."""


class NotAgreedError(click.ClickException):
    """The user did not agree, or could not be asked."""

    exit_code = NOT_AGREED


def prompt(question: str, **options: Any) -> Any:
    """Ask a question on the terminal and return the answer.

    Raises `KeyboardInterrupt` on Ctrl-C, and `NotAgreedError` at the end of the input, on Ctrl-D.
    """
    try:
        return click.prompt(one_line(question), err=True, **options)
    except click.Abort as problem:
        if isinstance(problem.__context__, EOFError):
            click.echo(err=True)  # ends the line of the question
            message = "the input ended before you answered, so you did not agree"
            raise NotAgreedError(message) from None
        # Not an `Exception`, so that the setup code that asks does not catch it by accident.
        raise KeyboardInterrupt from None


class Terminal:
    """Asks on the terminal, as `prompt` does, and writes to stderr; with `no_input` never asks."""

    def __init__(self, console: Console, *, no_input: bool = False) -> None:
        self.console, self._no_input = console, no_input
        self._announced, self._drawn_at = "", 0.0
        self._ending = ""
        """What ends the line that is drawn."""

    @property
    def is_there(self) -> bool:
        """Whether a question can be asked."""
        return not self._no_input and sys.stdin is not None and sys.stdin.isatty()

    def say(self, text: str, *, as_is: bool = False) -> None:
        """Write a message; `as_is` keeps its paths and commands."""
        self._end_drawing()
        self.console.say(visible(text), as_is=as_is)

    def answer(self, question: str, *, secret: bool) -> str:
        """Ask a question and return the answer."""
        answer: str = self._prompt(question, default="", show_default=False, hide_input=secret)
        return answer

    def agrees(self, question: str) -> bool:
        """Ask a question and return whether the answer is yes."""
        answer = self.answer(f"{question} [y/N]", secret=False)
        return answer.strip().lower() in {"y", "yes"}

    def require_agreement(self, question: str, *, yes: bool) -> None:
        """Ask the user whether to continue, unless `yes`, the option `--yes`, says it.

        Raises `NotAgreedError`; without a terminal the answer is no.
        """
        if yes:
            return
        if not self.is_there:
            message = f"nothing was changed, as there is no terminal to ask on: {question}"
            raise NotAgreedError(f"{one_line(message)} (read the above, then give --yes)")
        if not self.agrees(question):
            raise NotAgreedError("nothing was changed")

    def choice(self, question: str, options: Sequence[str]) -> int:
        """Ask which option, by its number or what stands before its `:`, and return its index."""
        names = [option.partition(":")[0] for option in options]
        for number, option in enumerate(options, 1):
            self.say(one_line(f"{number}. {option}"))

        def index(answer: str) -> int:
            answer = answer.strip()
            if answer.isdecimal() and 0 < int(answer) <= len(names):
                return int(answer) - 1
            if answer in names:
                return names.index(answer)
            raise click.BadParameter(f"answer with a number from 1 to {len(names)}, or with a name")

        chosen: int = self._prompt(question, value_proc=index)
        return chosen

    def _prompt(self, question: str, **options: Any) -> Any:
        self._end_drawing()
        return prompt(question, **options)

    def progress(self, label: str, done: int, total: int | None) -> None:
        """Draw the progress of a download; without a terminal, announce the download once."""
        if not sys.stderr.isatty():
            if label != self._announced:
                self.say(f"downloading {label}" + (f" ({total / MIB:.1f} MiB)" if total else ""))
            self._announced = label
            return
        is_done, now = done == total, time.monotonic()
        if is_done or now - self._drawn_at > _REDRAW_SECONDS:
            size = f" of {total / MIB:.1f}" if total is not None else ""
            self._draw(f"downloading {label}: {done / MIB:.1f}{size} MiB", "\n")
            self._drawn_at = now
            if is_done:
                self._end_drawing()

    @contextmanager
    def working(self, on: str) -> Iterator[None]:
        """Draw what takes a while, only on a terminal, and remove it when it is done."""
        if sys.stderr.isatty():
            self._draw(on, "\r\x1b[K")
        try:
            yield
        finally:
            self._end_drawing()

    def _draw(self, text: str, ending: str) -> None:
        click.echo(f"\r{one_line(text)}\x1b[K", nl=False, err=True)
        self._ending = ending

    def _end_drawing(self) -> None:
        if self._ending:
            click.echo(self._ending, nl=False, err=True)
        self._ending = ""
