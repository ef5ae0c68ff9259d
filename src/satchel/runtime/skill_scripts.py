"""Run the scripts of a skill: which files are scripts, and which interpreter runs them."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from satchel.errors import ToolError
from satchel.files.compiled_cache import compiled_cache
from satchel.files.file_reader import (
    UnreadableFileError,
    is_inside,
    is_utf8,
    read_regular,
    real_path,
)
from satchel.files.installed_programs import find_program
from satchel.runtime.program_runner import Program, ProgramRunner, run_with
from satchel.settings import Sandbox
from satchel.text import shorten

SCRIPTS_FOLDER = "scripts"
MOST_ARGUMENTS = 100
LONGEST_ARGUMENTS = 100 * 1024
"""Bytes of all arguments of a script together."""

# No -I: a script may import its neighbours. -u keeps what was printed before the time limit.
_PYTHON = (sys.executable, "-u", "-X", "utf8")
_INTERPRETERS = {
    ".py": _PYTHON,
    ".sh": ("/bin/sh",),
    ".bash": ("bash",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".rb": ("ruby",),
    ".pl": ("perl",),
}
_HEAD = 1024
"""Bytes at the beginning of a file that show its type."""


def scripts_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of scripts: files below `scripts/` that can be run."""
    return tuple(name for name in names if _is_script(name))


def scripts_inside(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the scripts of a skill, without links that lead out of its folder of scripts."""
    names = scripts_of(names)
    inside = real_path(f"{folder}/{SCRIPTS_FOLDER}") if names else ""
    return tuple(name for name in names if is_inside(real_path(f"{folder}/{name}"), inside))


async def run_script(
    path: str,
    folder: str,
    args: Sequence[str],
    seconds: float,
    *,
    runner: ProgramRunner | None = None,
    sandbox: Sandbox | None = None,
) -> dict[str, Any]:
    """Run a script in the folder of its skill, and return what `ProgramRunner.run` does.

    Raises `ToolError` if it cannot be started.
    """
    _check(args)
    sandbox = sandbox or Sandbox()
    program = Program(
        command=(*_command(path), *args),
        folder=folder,
        seconds=seconds,
        kind="script",
        readable=(folder,),
        writable=(folder,) if sandbox.write_skill else (),
        sandbox=sandbox,
    )
    return await run_with(runner, program)


def _is_script(name: str) -> bool:
    top, *below = name.split("/")
    if top != SCRIPTS_FOLDER or not below:
        return False
    if any(part == "__pycache__" or part.startswith(".") for part in below):
        return False
    return _suffix(name) in {"", *_INTERPRETERS}


def _check(args: Sequence[str]) -> None:
    if len(args) > MOST_ARGUMENTS:
        raise ToolError(f"A script takes at most {MOST_ARGUMENTS} arguments; give fewer.")
    if any("\0" in arg or not is_utf8(arg) for arg in args):
        raise ToolError(
            "An argument has a character that cannot be passed on; send it without that character."
        )
    if sum(len(arg.encode()) for arg in args) > LONGEST_ARGUMENTS:
        raise ToolError(f"The arguments are longer than {LONGEST_ARGUMENTS} bytes; shorten them.")


def _command(path: str) -> list[str]:
    """Return the command of a script: interpreter and path. Raises `ToolError`."""
    path = os.path.realpath(path)  # absolute, so that it never looks like an option
    shown = repr(shorten(os.path.basename(path), 200))
    try:
        head, _ = read_regular(path, _HEAD)
    except UnreadableFileError as problem:
        raise ToolError(f"{shown} cannot be started: {problem}.") from None
    if interpreter := _INTERPRETERS.get(_suffix(path)):
        program, *options = _shell(head) if interpreter == _INTERPRETERS[".sh"] else interpreter
        # Neither read nor written beside the script, also by a runner with another environment.
        compiled = ["-X", f"pycache_prefix={compiled_cache()}"] if interpreter == _PYTHON else []
        return [_path_of(program, shown), *options, *compiled, path]
    if not os.access(path, os.X_OK):
        reason = "it is not executable"
    # For other text, only a shell could guess the interpreter.
    elif not (head.startswith(b"#!") or b"\0" in head):
        reason = "it does not name its interpreter"
    else:
        return [path]
    suffixes = ", ".join(_INTERPRETERS)
    raise ToolError(f"{shown} cannot be started: {reason}; use a script that ends in {suffixes}.")


def _shell(head: bytes) -> tuple[str, ...]:
    """Return the shell of a `.sh` file: bash if its first line asks for it, as many do."""
    first, _, _ = head.partition(b"\n")
    return ("bash",) if first.startswith(b"#!") and b"bash" in first else ("/bin/sh",)


def _path_of(program: str, shown: str) -> str:
    path = find_program(program)
    if path is None:
        name = os.path.basename(program)
        raise ToolError(f"{shown} needs {name}, which is not installed here; tell the user.")
    return os.path.abspath(path)  # the script starts in another folder


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()
