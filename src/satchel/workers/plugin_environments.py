"""Install the requirements of isolated plugins, each set of requirements once."""

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory

from satchel.errors import DefinitionError
from satchel.files.file_reader import digest_of
from satchel.files.installed_programs import find_program
from satchel.files.process_group import run_in_group
from satchel.files.state_files import make_folder, user_folder
from satchel.text import one_line, shorten


def installed(requirements: Iterable[str], seconds: float) -> str:
    """Return the folder with these requirements, which are installed if necessary.

    It is in the user's cache and never changes. Raises `DefinitionError` if installing fails.
    """
    unique = sorted(set(requirements))
    key = digest_of("\0".join((sys.version, sys.platform, *unique)).encode())
    base = os.path.join(user_folder("cache", ""), "plugins")
    folder = os.path.join(base, key)
    if os.path.isdir(folder):
        return folder
    make_folder(base)
    try:
        with TemporaryDirectory(prefix=".", dir=base, ignore_cleanup_errors=True) as scratch:
            target = os.path.join(scratch, "made")
            os.mkdir(target)  # exists even if the markers exclude all requirements
            _run([*_installer(), "--target", target, "--", *unique], seconds, scratch)
            with suppress(OSError):  # another process was faster
                os.rename(target, folder)
    except OSError as error:
        raise DefinitionError(f"cannot be installed: {error.strerror}") from error
    if not os.path.isdir(folder):
        raise DefinitionError("cannot be installed: the cache cannot be written")
    return folder


def _installer() -> list[str]:
    """Return the install command: uv, which is faster, or this Python's pip."""
    if uv := find_program("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    return [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
    ]


def _run(command: Sequence[str], seconds: float, folder: str) -> None:
    import subprocess

    try:
        result = run_in_group(
            command,
            seconds,
            cwd=folder,  # a uv.toml of the current one could name the index to install from
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except subprocess.TimeoutExpired:
        message = f"were not installed within {seconds:g} s (limit plugin_install)"
        raise DefinitionError(message) from None
    if result.returncode:
        lines = result.stderr.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "no reason was given")
        raise DefinitionError(f"cannot be installed: {shorten(one_line(last), 300)}")
