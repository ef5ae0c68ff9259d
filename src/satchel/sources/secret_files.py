"""Files that usually hold secrets, which no model and no client is ever shown."""

import os
import re

_ENV_FILE = ".env"


def is_secret_file(name: str) -> bool:
    """Return whether a path leads through `.env`, `.env.*` or `.envrc`, in any case.

    `name` is relative to the skill, with `/` or the system's separator.
    """
    may_be_secret = _ENV_FILE in name.casefold()  # Splitting the path takes long.
    # On Windows a colon ends the drive, and begins a stream of a file.
    return may_be_secret and any(map(_is_secret_part, re.split(r"[/\\:]", name)))


def leads_to_secret(path: str, root: str) -> bool:
    """Return whether a resolved path leads, below `root`, to such a file."""
    return is_secret_file(os.path.relpath(path, root))


def _is_secret_part(part: str) -> bool:
    # Windows ignores dots and spaces at the end.
    name = part.rstrip(". ").casefold()
    return name in {_ENV_FILE, ".envrc"} or name.startswith(f"{_ENV_FILE}.")
