"""Ask the user whether to continue; without a terminal the answer is no."""

import click

from satchel.cli.terminal import Terminal
from satchel.text import one_line

NOT_AGREED = 3
"""The exit code if the user did not agree."""


class NotAgreedError(click.ClickException):
    """The user did not agree, or could not be asked."""

    exit_code = NOT_AGREED


def require_agreement(terminal: Terminal, question: str, *, yes: bool) -> None:
    """Return if the user agrees. Raises `NotAgreedError`; `yes` is the option `--yes`."""
    if yes:
        return
    if not terminal.is_there:
        message = f"{question} Nothing was changed: there is no terminal to ask on"
        raise NotAgreedError(f"{one_line(message)} (read the above, then give --yes)")
    answer = terminal.answer(f"{question} [y/N]", secret=False)
    if answer.strip().lower() not in {"y", "yes"}:
        raise NotAgreedError("nothing was changed")
