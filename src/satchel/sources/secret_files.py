"""Files that usually hold secrets, which no model and no client is ever shown."""

import os
from pathlib import PureWindowsPath

_ENV_FILE = ".env"


def is_secret_file(name: str) -> bool:
    """Return whether a path leads through `.env`, `.env.*` or `.envrc`, in any case.

    `name` is relative to the skill, with `/` or the system's separator.
    """
    may_be_secret = _ENV_FILE in name.casefold()  # Splitting the path takes long.
    return may_be_secret and any(map(_is_secret_part, PureWindowsPath(name).parts))


def leads_to_secret(path: str, root: str) -> bool:
    """Return whether a resolved path leads, below `root`, to such a file."""
    return is_secret_file(os.path.relpath(path, root))


def _is_secret_part(part: str) -> bool:
    # Windows ignores dots and spaces at the end, and what follows a colon.
    name = part.partition(":")[0].rstrip(". ").casefold()
    return name in {_ENV_FILE, ".envrc"} or name.startswith(f"{_ENV_FILE}.")
