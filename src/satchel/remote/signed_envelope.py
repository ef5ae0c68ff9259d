"""Signed JSON messages between hosts and workers, which share a key."""

import hashlib
import hmac
import json
from typing import Any

from satchel.errors import DefinitionError, SatchelError

VERSION = "satchel/2"
"""The version of the messages; a peer refuses any other."""
SHORTEST_KEY = 16
"""Characters of the shortest key: a shorter one could be guessed."""


class EnvelopeError(SatchelError):
    """Raised for a message that this peer does not accept."""


def checked_key(key: str) -> bytes:
    """Return a key as bytes. Raises `DefinitionError` for one that could be guessed."""
    if len(key.strip()) < SHORTEST_KEY:
        raise DefinitionError(
            f"the key of the workers has fewer than {SHORTEST_KEY} characters",
            fix="make one with: openssl rand -hex 32",
        )
    return key.strip().encode()


def seal(key: bytes, kind: str, body: dict[str, Any]) -> str:
    """Return a signed message. `kind` is part of what is signed, so no message poses as another."""
    text = json.dumps(body, separators=(",", ":"))
    return f"{VERSION} {_sign(key, kind, text.encode())} {text}"


def open_sealed(key: bytes, kind: str, message: str | bytes) -> dict[str, Any]:
    """Return the body of a message that a peer sealed. Raises `EnvelopeError` for any other."""
    data = message.encode("utf-8", "replace") if isinstance(message, str) else message
    version, _, signed = data.partition(b" ")
    sign, _, text = signed.partition(b" ")
    if version != VERSION.encode():
        shown = version[:20].decode("ascii", "replace")
        raise EnvelopeError(f"a {kind} message of version {shown!r}; this is {VERSION}")
    if not hmac.compare_digest(sign, _sign(key, kind, text).encode()):
        raise EnvelopeError(f"a {kind} message that is not signed with our key")
    body = json.loads(text)
    if not isinstance(body, dict):
        raise EnvelopeError(f"not a {kind} message")
    return body


def _sign(key: bytes, kind: str, text: bytes) -> str:
    return hmac.new(key, f"{VERSION}\0{kind}\0".encode() + text, hashlib.sha256).hexdigest()
