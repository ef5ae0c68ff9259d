"""What the processes of plugins have installed for them: each set of requirements once."""

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory

from satchel.errors import DefinitionError
from satchel.sources.file_reader import digest_of
from satchel.sources.state_files import make_folder
from satchel.text import one_line, shorten


def installed(requirements: Iterable[str], seconds: float) -> str:
    """Return the folder in which requirements are installed, and install them if need be.

    It is in the user's cache, and never changes. Raises `DefinitionError` if it cannot be made.
    """
    wanted = sorted(set(requirements))
    key = digest_of("\0".join((sys.version, sys.platform, *wanted)).encode())
    base = _cache_folder()
    folder = os.path.join(base, key)
    if os.path.isdir(folder):
        return folder
    make_folder(base)
    try:
        with TemporaryDirectory(prefix=".", dir=base, ignore_cleanup_errors=True) as scratch:
            made = os.path.join(scratch, "made")
            os.mkdir(made)  # also for requirements whose markers leave nothing
            _run([*_installer(), "--target", made, "--", *wanted], seconds)
            with suppress(OSError):  # somebody else was quicker
                os.rename(made, folder)
    except OSError as error:
        raise DefinitionError(f"cannot be installed: {error.strerror}") from error
    if not os.path.isdir(folder):
        raise DefinitionError("cannot be installed: the cache cannot be written")
    return folder


def _cache_folder() -> str:
    # Lazy: most hosts install nothing.
    from platformdirs import user_cache_dir

    return os.path.join(user_cache_dir("satchel", appauthor=False), "plugins")


def _installer() -> list[str]:
    """Return the command that installs: uv, which is quick, or else the pip of this Python."""
    from shutil import which

    if uv := which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]


def _run(command: Sequence[str], seconds: float) -> None:
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - what the manifest names was checked
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"were not installed within {seconds:g} s (limit plugin_install)"
        raise DefinitionError(message) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "no reason was given")
        raise DefinitionError(f"cannot be installed: {shorten(one_line(last), 300)}")
