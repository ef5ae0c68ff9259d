"""Read bearer tokens from a file that only its owner may read, or a secret that root mounted.

A line has a token and the groups that its clients see; without groups, they see all that the
server shows. `#` begins a comment.
"""

import hashlib
import hmac
import os
import stat

from satchel.errors import SatchelError
from satchel.files.file_reader import Stamp
from satchel.lazy_dataclass import dataclass

SHORTEST = 16
"""The minimum length of a token: a shorter one could be guessed."""
_LARGEST = 256 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Opening a pipe would block; not every system has this flag.
_CAREFULLY = getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Credential:
    """The identity and the permissions of a token."""

    digest: bytes
    """Identifies the token without revealing it."""
    groups: frozenset[str] | None = None
    """The groups that its clients see; `None` for all that the server shows."""


class BearerTokens:
    """The current tokens of a file: deleting a line revokes its token.

    Raises `SatchelError` if the file is not usable at the start. If it becomes unusable later,
    all requests are refused.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._stamp, self._credentials = _read(path)

    def counts(self, credential: Credential) -> bool:
        """Return whether a credential is still valid, with the same groups."""
        self._refresh()
        return credential in self._credentials

    def bearer(self, token: str) -> Credential | None:
        """Return the credential of a token, or `None`."""
        self._refresh()
        digest = _digest(token)
        match = None
        for credential in self._credentials:  # all of them, so that the time reveals nothing
            if hmac.compare_digest(credential.digest, digest):
                match = credential
        return match

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
    # A secret of a container belongs to root, and so does a credential of systemd: its mode is
    # not the reader's to change. (OpenSSH checks private keys in the same way.)
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if status.st_mode & (_OTHERS if is_own else _OTHERS_MAY_WRITE):
        action = "read" if is_own else "change"
        raise SatchelError(
            f"others may {action} the token file", where=path, fix=f"chmod 600 {path}"
        )


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
