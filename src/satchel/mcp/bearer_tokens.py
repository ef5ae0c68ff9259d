"""The tokens by which clients of a network prove themselves, from a file that is its owner's alone.

A line is a token, and behind it the groups that whoever bears it sees; without any, all that the
server shows. What stands behind `#` is a remark.
"""

import hashlib
import hmac
import os
import stat
from dataclasses import dataclass

from satchel.errors import SatchelError
from satchel.sources.file_reader import Stamp

SHORTEST = 16
"""Characters of the shortest token that is taken: a shorter one could be guessed."""
_LARGEST = 256 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# A pipe would make whoever opens it wait; not every system has the words.
_CAREFULLY = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Credential:
    """Whoever bears a token."""

    digest: bytes
    """Names the token, and does not tell it."""
    groups: frozenset[str] | None = None
    """The groups that it sees, `None` for all that are shown."""


class BearerTokens:
    """The tokens of a file, as they are there at the moment: a line that is deleted counts no more.

    Raises `SatchelError` at the start for a file that cannot be used; if it becomes such a one
    later, nobody is let in.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp, self._credentials = _read(path)

    def counts(self, credential: Credential) -> bool:
        """Tell whether somebody who was let in would be now, for the same groups."""
        self._refresh()
        return credential in self._credentials

    def bearer(self, token: str) -> Credential | None:
        """Return whoever bears a token."""
        self._refresh()
        digest = _digest(token)
        found = None
        for known in self._credentials:  # all of them, so that the time tells nothing
            if hmac.compare_digest(known.digest, digest):
                found = known
        return found

    def _refresh(self) -> None:
        try:
            if Stamp.of(os.stat(self._path)) != self._stamp:
                self._stamp, self._credentials = _read(self._path)
        except (OSError, SatchelError):
            self._stamp, self._credentials = Stamp(), ()


def _read(path: str) -> tuple[Stamp, tuple[Credential, ...]]:
    try:
        with open(os.open(path, os.O_RDONLY | _CAREFULLY), "rb") as file:
            status = os.fstat(file.fileno())
            _require_usable(path, status)
            text = file.read(_LARGEST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise SatchelError(f"the token file cannot be read: {reason}", where=path) from problem
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    credentials = tuple(_credential(path, *words) for words in lines if words)
    if not credentials:
        raise SatchelError(
            "the token file holds no token", where=path, fix="openssl rand -hex 32 makes one"
        )
    return Stamp.of(status), credentials


def _require_usable(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SatchelError("the token file is no regular file", where=path)
    if status.st_size > _LARGEST:
        raise SatchelError(f"the token file has more than {_LARGEST} bytes", where=path)
    if status.st_mode & _OTHERS:
        raise SatchelError("others may read the token file", where=path, fix=f"chmod 600 {path}")


def _credential(path: str, token: str, *groups: str) -> Credential:
    if len(token) < SHORTEST:
        raise SatchelError(
            f"a token has {len(token)} characters, fewer than {SHORTEST}",
            where=path,
            fix="openssl rand -hex 32 makes a good one",
        )
    return Credential(_digest(token), frozenset(groups) or None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
