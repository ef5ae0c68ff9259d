"""The person at the terminal, as a setup asks and tells them."""

import sys
import time

import click

from satchel.cli.console import Console
from satchel.text import one_line, visible

_MIB = 1024 * 1024
_PAUSE = 0.1
"""Seconds between two pictures of a progress."""


class Terminal:
    """Asks on the terminal and tells on stderr; `no_input` says that nobody is to be asked."""

    def __init__(self, console: Console, *, no_input: bool) -> None:
        self._console, self._no_input = console, no_input
        self._what, self._drawn = "", 0.0
        self._is_drawing = False

    @property
    def is_there(self) -> bool:
        """Tell whether somebody can be asked."""
        return not self._no_input and sys.stdin is not None and sys.stdin.isatty()

    def say(self, text: str) -> None:
        """Tell them something."""
        self._end_drawing()
        self._console.say(visible(text))

    def answer(self, question: str, *, secret: bool) -> str:
        """Ask them. Raises `KeyboardInterrupt` if they rather end it all."""
        self._end_drawing()
        try:
            given: str = click.prompt(
                one_line(question), default="", show_default=False, hide_input=secret, err=True
            )
        except click.Abort:
            # No `Exception`, so that the code that asks does not take it for a fault of its own.
            raise KeyboardInterrupt from None
        return given

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Draw how far a download is; where nothing can be drawn, say that it goes on."""
        size = f" of {total / _MIB:.1f}" if total is not None else ""
        if not sys.stderr.isatty():
            if what != self._what:
                self.say(f"downloading {what}" + (f" ({total / _MIB:.1f} MiB)" if total else ""))
            self._what = what
            return
        is_done, now = done == total, time.monotonic()
        if is_done or now - self._drawn > _PAUSE:
            line = one_line(f"downloading {what}: {done / _MIB:.1f}{size} MiB")
            click.echo(f"\r{line}\x1b[K", nl=is_done, err=True)
            self._drawn, self._is_drawing = now, not is_done

    def _end_drawing(self) -> None:
        if self._is_drawing:
            self._is_drawing = False
            click.echo(err=True)
