"""`satchel completion`: completion of commands and options in the shell."""

import os
from contextlib import suppress

import click
from click.shell_completion import get_completion_class

from satchel.cli.base_command import Command
from satchel.cli.console import Console
from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, write_atomic

_SHELLS = ("bash", "zsh", "fish")
_LINE = (
    "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }; "
    'eval "$(satchel completion show zsh)"'
)


@click.group("completion")
def command() -> None:
    """Complete commands and options when you press Tab, in bash, zsh or fish."""


@command.command("show", cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def show(console: Console, shell: str | None) -> None:
    """Print the script for a shell, by default for yours."""
    console.out(_script(shell or _current_shell()).rstrip("\n"))


@command.command("install", cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def install(console: Console, shell: str | None) -> None:
    """Install the script where a shell, by default yours, reads it at its start.

    For bash and fish this writes one file. For zsh it appends a line to `.zshrc`.
    """
    shell = shell or _current_shell()
    path = _path(shell)
    with file_lock(path):
        text = _with_line(path) if shell == "zsh" else _script(shell)
        write_atomic(path, text.encode("utf-8", "surrogateescape"))
    console.out(path)
    needed = " (the package bash-completion reads this file)" if shell == "bash" else ""
    console.say(f"open a new {shell} to use it{needed}")


def _script(shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(click.Command("satchel"), {}, "satchel", "_SATCHEL_COMPLETE").source()


def _current_shell() -> str:
    shell = os.path.basename(os.environ.get("SHELL", ""))
    if shell not in _SHELLS:
        raise SatchelError(f"your shell is not known; name it: {', '.join(_SHELLS)}")
    return shell


def _path(shell: str) -> str:
    home = os.path.expanduser("~")
    if shell == "bash":
        data = os.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
        return f"{data}/bash-completion/completions/satchel"
    if shell == "fish":
        config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return f"{config}/fish/completions/satchel.fish"
    return f"{os.environ.get('ZDOTDIR') or home}/.zshrc"


def _with_line(path: str) -> str:
    text = ""
    with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="surrogateescape") as it:
        text = it.read()
    if _LINE in text.splitlines():
        return text
    return f"{text.rstrip(chr(10))}\n{_LINE}\n".lstrip("\n")
