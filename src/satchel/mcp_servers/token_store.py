"""Store the logins to servers, in the keyring of the system or else in files of the user.

A file for each login says which server it is for. Its tokens and secrets are in the keyring if
there is one, and otherwise in the file, which only its owner can read.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import field
from hashlib import blake2b
from typing import Any

from satchel.errors import SatchelError
from satchel.files.file_reader import StampedPath, UnreadableFileError
from satchel.files.state_files import StateFile
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.server_addresses import HttpServer, SseServer
from satchel.tools.empty_mapping import NOTHING

_SERVICE = "satchel-mcp"
"""The name of our entries in the keyring."""

_LOOK = 1.0
"""Seconds after which a file is looked at again, while a login is waited for."""

_RECOMMENDED = 1.0
"""The lowest priority of a keyring that keeps secrets safely, as the library `keyring` says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedLogin:
    """A login as it is stored; all but the last three as the SDK's models dump it."""

    tokens: Mapping[str, Any] = field(default=NOTHING, repr=False)
    client: Mapping[str, Any] = field(default=NOTHING, repr=False)
    """The registered client, with its secret."""
    metadata: Mapping[str, Any] = NOTHING
    """What the authorization server says of itself."""
    resource: Mapping[str, Any] = NOTHING
    """What the server says of its authorization servers."""
    expires_at: float | None = None
    """When the access token expires, in seconds since the epoch."""
    wanted: str = ""
    """Scopes that the server asked for since the login."""


class TokenStore:
    """The login to one server. Logins are stored by the server's URL and the client's id."""

    def __init__(self, folder: str, server: HttpServer | SseServer) -> None:
        client_id = server.oauth.client_id if server.oauth else ""
        digest = blake2b(f"{server.url}\0{client_id}".encode(), digest_size=12).hexdigest()
        self._address, self._user = str(server), f"{server.name}-{digest}"
        self._file = StateFile(folder, "mcp-logins", f"{self._user}.json")

    @property
    def path(self) -> str:
        """Return the path of the file."""
        return self._file.path

    @property
    def stamp(self) -> StampedPath:
        """Return a value that changes with the login."""
        return self._file.stamp

    async def until_changed(self, stamp: StampedPath | None, seconds: float) -> None:
        """Wait until the login has another stamp, at most `seconds`."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + seconds, min(_LOOK, seconds / 20)
        # Looked at now and then: there is no other signal for what another process writes.
        while self.stamp == stamp and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(pause)

    def load(self) -> SavedLogin | None:
        """Return the login, or `None` if there is none. Raises `SatchelError`."""
        try:
            data = self._file.read()
            return None if data is None else self._decoded(json.loads(data))
        except UnreadableFileError as problem:
            raise SatchelError(f"cannot be read: {problem}", where=self.path) from None
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise SatchelError(
                "is not a valid login",
                where=self.path,
                fix="log out, and log in again: satchel mcp logout, satchel mcp login",
            ) from None

    def _decoded(self, record: Mapping[str, Any]) -> SavedLogin:
        secrets = record.get("secrets")
        if secrets is None:
            _, text = _of_keyring(lambda keyring: keyring.get_password(_SERVICE, self._user))
            secrets = json.loads(text) if text else {}
        expires_at = record.get("expires_at")
        return SavedLogin(
            tokens=dict(secrets.get("tokens", {})),
            client=dict(secrets.get("client", {})),
            metadata=dict(record.get("metadata", {})),
            resource=dict(record.get("resource", {})),
            expires_at=None if expires_at is None else float(expires_at),
            wanted=str(record.get("wanted", "")),
        )

    def save(self, login: SavedLogin) -> None:
        """Replace the login. Raises `SatchelError`."""
        secrets = {"tokens": dict(login.tokens), "client": dict(login.client)}
        text = json.dumps(secrets)
        is_in_keyring, _ = _of_keyring(
            lambda keyring: keyring.set_password(_SERVICE, self._user, text)
        )
        if not is_in_keyring:
            # An older one there would be of another login.
            self._forget_secrets()
        record: dict[str, Any] = {
            "version": 1,
            "server": self._address,
            # A renewed login changes the file, too: other processes notice it.
            "mark": blake2b(text.encode(), digest_size=8).hexdigest(),
            "metadata": dict(login.metadata),
            "resource": dict(login.resource),
            "expires_at": login.expires_at,
            "wanted": login.wanted,
        }
        if not is_in_keyring:
            record["secrets"] = secrets
        self._file.change(lambda _: json.dumps(record, indent=1).encode())

    def delete(self) -> bool:
        """Remove the login. Return whether there was one. Raises `SatchelError`."""
        self._forget_secrets()
        return self._file.delete()

    def _forget_secrets(self) -> None:
        _of_keyring(lambda keyring: keyring.delete_password(_SERVICE, self._user))


def _keyring() -> Any:
    """Return the keyring of the system, or `None`."""
    try:
        # Lazy: it is optional, and slow to import.
        import keyring

        backend = keyring.get_keyring()
        is_safe = backend.priority >= _RECOMMENDED
    except Exception:  # any: a keyring may be broken in many ways, and files work
        return None
    return backend if is_safe else None


def _of_keyring(use: Callable[[Any], Any]) -> tuple[bool, Any]:
    """Use the keyring. Return whether that worked, and its answer."""
    try:
        return True, use(_keyring())
    except Exception:  # any: locked, refused, too long for it, not there, or no keyring at all
        return False, None
