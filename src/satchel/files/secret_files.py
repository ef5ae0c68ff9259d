"""Files that usually hold secrets, which no model and no client is ever shown."""

import os
import re

_ENV_FILE = ".env"
_COPY = re.compile(r"(~|\.(bak|old|orig|save|sw[a-z]))+$")
"""What editors and people add to the name of a copy."""


def is_secret_file(name: str) -> bool:
    """Return whether a path leads through a name that begins with `.env`, or ends with it.

    Case does not matter, nor what editors add to a copy, such as `prod.env~` or `prod.env.bak`.

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
    name = _COPY.sub("", part.rstrip(". ").casefold())
    return name.startswith(_ENV_FILE) or name.endswith(_ENV_FILE)
