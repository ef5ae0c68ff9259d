"""The tools that run code that the model writes, in a sandbox where the system has one."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from satchel.errors import ToolError
from satchel.runtime.program_runner import Program, run_with
from satchel.tools import Text, ToolContext, ToolResult, tool
from satchel.tools.callables import in_thread

LONGEST = 600
"""The longest time limit that the model may ask for, in seconds."""
_WHOLE_CALL = LONGEST + 30  # the process must end before the host's limit ends the call

_NO_CONTEXT = ToolContext()
# -I: without the host's import path. -u: keep what was printed before the time limit.
_PYTHON = (sys.executable, "-I", "-u", "-X", "utf8")


@tool(state=["base_directory"], timeout=_WHOLE_CALL)
async def execute_python_code(
    code: str,
    timeout: float = 60,  # noqa: ASYNC109 - the model chooses it
    *,
    base_directory: Path | None = None,
    context: ToolContext = _NO_CONTEXT,
) -> ToolResult:
    """Run Python code in a new interpreter and return its output.

    Args:
        code: The program; only what it prints is returned.
        timeout: Seconds after which the program is ended, 1 to 600.
        base_directory: The working folder; without one, a temporary folder.
        context: The context of the call.
    """
    _check(code, timeout)
    async with _folders(base_directory) as (folder, scratch):
        command = [*_PYTHON, _program(code, scratch)]
        program = _program_for("python", command, folder, timeout, scratch)
        return _answer(await _run(program, context), timeout)


@tool(state=["base_directory"], timeout=_WHOLE_CALL)
async def execute_shell_command(
    command: str,
    timeout: float = 60,  # noqa: ASYNC109 - the model chooses it
    *,
    base_directory: Path | None = None,
    context: ToolContext = _NO_CONTEXT,
) -> ToolResult:
    """Run a shell command and return its output.

    Args:
        command: One or more command lines for /bin/sh (cmd on Windows).
        timeout: Seconds after which the command is ended, 1 to 600.
        base_directory: The working folder; without one, a temporary folder.
        context: The context of the call.
    """
    _check(command, timeout)
    # "--": the shell must not read a command that begins with a hyphen as an option.
    shell = ("cmd", "/c") if sys.platform == "win32" else ("/bin/sh", "-c", "--")
    async with _folders(base_directory) as (folder, scratch):
        program = _program_for("shell", [*shell, command], folder, timeout, scratch)
        return _answer(await _run(program, context), timeout)


def _program_for(
    kind: str, command: list[str], folder: str, seconds: float, scratch: str
) -> Program:
    # The user named the working folder, so that programs may change it.
    return Program(
        command=command,
        folder=folder,
        seconds=seconds,
        kind=kind,
        readable=(scratch,),
        writable=(folder,),
    )


async def _run(program: Program, context: ToolContext) -> dict[str, Any]:
    runner, sandbox = context.programs or (None, None)
    return await run_with(runner, replace(program, sandbox=sandbox or program.sandbox))


def _answer(outcome: dict[str, Any], seconds: float) -> ToolResult:
    """Return the output as text for the model, and the parts as the structured value."""
    parts = [outcome["stdout"].rstrip("\n")]
    if outcome["stderr"]:
        parts += ["[stderr]", outcome["stderr"].rstrip("\n")]
    if outcome["timed_out"]:
        parts.append(f"[ended after {seconds:g} s, the time limit]")
    elif outcome["returncode"] != 0:
        parts.append(f"[exit code {outcome['returncode']}]")
    text = "\n".join(filter(None, parts)) or "[no output]"
    return ToolResult(content=(Text(text),), structured=outcome)


def _check(text: str, seconds: float) -> None:
    # Not "seconds < 1": NaN would pass.
    if not 1 <= seconds <= LONGEST:
        raise ToolError(f"The timeout must be between 1 and {LONGEST} seconds.")
    try:
        is_invalid = b"\0" in text.encode()
    except UnicodeEncodeError:
        is_invalid = True
    if is_invalid:
        raise ToolError("The text contains a null or invalid Unicode character. Remove it.")


def _program(code: str, folder: str) -> str:
    """Write a program to a file: a file has no limit of length and gives good tracebacks."""
    path = os.path.join(folder, "code.py")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(code)
    return path


@asynccontextmanager
async def _folders(base: Path | None) -> AsyncIterator[tuple[str, str]]:
    """Yield the working folder and a temporary folder for our own files, removed at the end."""
    from tempfile import TemporaryDirectory

    scratch = TemporaryDirectory(prefix="satchel-", ignore_cleanup_errors=True)

    def remove() -> None:
        # RecursionError: folders may be nested more deeply than Python can follow.
        with suppress(OSError, RecursionError):
            scratch.cleanup()

    try:
        yield _working_folder(base, scratch.name), scratch.name
    finally:
        await in_thread(remove)


def _working_folder(base: Path | None, scratch: str) -> str:
    if base is None:
        folder = os.path.join(scratch, "work")
        os.mkdir(folder)
        return folder
    folder = os.path.abspath(os.path.expanduser(os.fspath(base)))  # as the sandbox needs it
    if not os.path.isdir(folder):
        raise ToolError("The working folder does not exist. Ask the user to create it.")
    return folder
