"""Encrypted JSON messages between hosts and workers, which share a key."""

import binascii
import hashlib
import hmac
import json
import os
from base64 import b64decode, b64encode
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from satchel.errors import DefinitionError, SatchelError

VERSION = b"satchel/4"
"""The version of the messages; a peer refuses any other."""
SHORTEST_KEY = 16
"""Characters of the shortest key: a shorter one could be guessed."""
_SALT = 16
"""Random bytes in front of each message."""
_NONCE = b"\0" * 12
"""Always the same, since each message has an encryption key of its own."""


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


def mark_of(key: bytes, text: str) -> str:
    """Return a mark for a text that only peers with the key can make; it hides the key."""
    return hmac.digest(key, b"%b\0mark\0%b" % (VERSION, text.encode()), hashlib.sha256).hex()[:24]


def seal(key: bytes, kind: str, body: dict[str, Any]) -> bytes:
    """Return an encrypted message, which only peers with the key can read or make.

    `kind` is part of the encryption key, so no message poses as one of another kind.
    """
    salt = os.urandom(_SALT)
    text = json.dumps(body, separators=(",", ":")).encode()
    return b"%b %b%b" % (VERSION, salt, _cipher(key, kind, salt).encrypt(_NONCE, text, None))


def as_text(message: bytes) -> str:
    """Return a message as text, for what takes only text."""
    return f"{VERSION.decode()} {b64encode(message[len(VERSION) + 1 :]).decode()}"


def open_sealed(key: bytes, kind: str, message: str | bytes) -> dict[str, Any]:
    """Return the body of a message that a peer sealed. Raises `EnvelopeError` for any other."""
    data = message.encode("utf-8", "replace") if isinstance(message, str) else message
    version, _, sealed = data.partition(b" ")
    if version != VERSION:
        shown = version[:20].decode("ascii", "replace")
        raise EnvelopeError(f"a {kind!r} message of version {shown!r}; this is {VERSION.decode()}")
    try:
        if isinstance(message, str):
            sealed = b64decode(sealed, validate=True)
        salt, text = sealed[:_SALT], sealed[_SALT:]
        body = json.loads(_cipher(key, kind, salt).decrypt(_NONCE, text, None))
    except (InvalidTag, binascii.Error):
        raise EnvelopeError("a message that is not encrypted with our key") from None
    if not isinstance(body, dict):
        raise EnvelopeError(f"not a {kind!r} message")
    return body


def _cipher(key: bytes, kind: str, salt: bytes) -> AESGCM:
    """Return the cipher of one message; an attacker cannot choose its key, nor see it twice."""
    return AESGCM(hmac.digest(key, b"%b\0%b\0%b" % (VERSION, kind.encode(), salt), hashlib.sha256))
