"""Signed JSON messages between hosts and workers, which share a key."""

import hashlib
import hmac
import json
from typing import Any

from satchel.errors import DefinitionError, SatchelError

VERSION = 1
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
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return json.dumps({"v": VERSION, "kind": kind, "body": text, "sign": _sign(key, kind, text)})


def open_sealed(key: bytes, kind: str, message: str | bytes) -> dict[str, Any]:
    """Return the body of a message that a peer sealed. Raises `EnvelopeError` for any other."""
    try:
        match json.loads(message):
            case {"v": int() as version} if version != VERSION:
                raise EnvelopeError(f"a message of version {version}; this is {VERSION}")
            case {"kind": str() as given, "body": str() as text, "sign": str() as sign}:
                if given != kind or not hmac.compare_digest(sign, _sign(key, kind, text)):
                    raise EnvelopeError(f"a {kind} message that is not signed with our key")
                body = json.loads(text)
                if isinstance(body, dict):
                    return body
    except (ValueError, RecursionError):
        pass
    raise EnvelopeError(f"not a {kind} message")


def _sign(key: bytes, kind: str, text: str) -> str:
    signed = f"{VERSION}\0{kind}\0{text}".encode("utf-8", "surrogatepass")
    return hmac.new(key, signed, hashlib.sha256).hexdigest()
