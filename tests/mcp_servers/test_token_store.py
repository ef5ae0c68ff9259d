"""Logins in the keyring of the system, or else in files."""

import json
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

from satchel import DefinitionError, HttpServer, OAuthClient, SatchelError
from satchel.mcp_servers.oauth_client import may_carry_tokens
from satchel.mcp_servers.token_store import SavedLogin, TokenStore

SERVER = HttpServer("https://user:pass@mcp.example.org/mcp?key=hush")
LOGIN = SavedLogin(
    tokens={"access_token": "acc-1", "refresh_token": "ref-1"},
    client={"client_id": "me", "client_secret": "sec-1"},
    metadata={"issuer": "https://auth.example.org"},
    resource={"resource": "https://mcp.example.org/mcp"},
    expires_at=1234.5,
    wanted="read",
)


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 5

    def __init__(self):
        super().__init__()
        self.kept, self.fault = {}, None

    def get_password(self, service, username):
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        if self.fault:
            raise self.fault
        self.kept[service, username] = password

    def delete_password(self, service, username):
        if (service, username) not in self.kept:
            raise PasswordDeleteError("not found")
        del self.kept[service, username]


@pytest.fixture
def ring(monkeypatch):
    created = Ring()
    monkeypatch.setattr(keyring, "get_keyring", lambda: created)
    return created


@pytest.fixture
def store(tmp_path):
    return TokenStore(str(tmp_path / "state"), SERVER)


def test_a_login_is_in_a_file_where_there_is_no_keyring(store):
    store.save(LOGIN)
    assert store.load() == LOGIN
    assert Path(store.path).stat().st_mode & 0o777 == 0o600
    assert store.delete()
    assert (store.load(), store.delete()) == (None, False)


def test_secrets_are_in_the_keyring_if_there_is_one(store, ring):
    store.save(LOGIN)
    assert store.load() == LOGIN
    assert len(ring.kept) == 1
    text = Path(store.path).read_text()
    assert not any(secret in text for secret in ("acc-1", "ref-1", "sec-1", "hush", "pass"))
    store.delete()
    assert (ring.kept, store.load()) == ({}, None)


def test_secrets_are_in_the_file_if_the_keyring_does_not_take_them(store, ring):
    store.save(LOGIN)
    ring.fault = KeyringLocked("it is locked")
    store.save(LOGIN)
    assert ring.kept == {}  # no older one remains
    assert store.load() == LOGIN
    assert "acc-1" in Path(store.path).read_text()


def test_a_keyring_that_is_not_safe_is_not_used(store, ring, monkeypatch):
    monkeypatch.setattr(Ring, "priority", 0.5)
    store.save(LOGIN)
    assert (ring.kept, store.load()) == ({}, LOGIN)


def test_a_keyring_without_the_secret_is_no_login(store, ring):
    store.save(LOGIN)
    ring.kept.clear()
    assert store.load().tokens == {}


def test_a_renewed_login_changes_the_stamp(store, ring):
    store.save(LOGIN)
    before = store.stamp
    store.save(SavedLogin(tokens={"access_token": "acc-2"}, client={"client_id": "me"}))
    assert store.stamp != before


@pytest.mark.parametrize("data", ["", "[]", "{", '{"secrets": 3}', '{"secrets": {"tokens": 4}}'])
def test_a_broken_file_says_how_to_replace_it(store, data):
    store.save(LOGIN)
    Path(store.path).write_text(data)
    with pytest.raises(SatchelError, match="is not a valid login"):
        store.load()
    store.save(LOGIN)
    assert store.load() == LOGIN


def test_a_login_belongs_to_the_address_and_the_client(tmp_path):
    servers = [
        SERVER,
        HttpServer("https://mcp.example.org/other"),
        HttpServer(SERVER.url, oauth=OAuthClient(client_id="me")),
    ]
    paths = {TokenStore(str(tmp_path), server).path for server in servers}
    assert len(paths) == 3
    assert not any("hush" in path or "pass" in path for path in paths)


def test_no_record_shows_its_secrets():
    assert not any(secret in repr(LOGIN) for secret in ("acc-1", "ref-1", "sec-1"))
    client = OAuthClient(client_id="me", client_secret="sec-1", issuer="https://a.example")
    assert "sec-1" not in repr(client) + repr(HttpServer("https://a.example", oauth=client))
    assert "sec-1" in HttpServer("https://a.example", oauth=client).secrets


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"client_id": 3}, "must be a string"),
        ({"client_id": "a", "client_secret": "b"}, "needs its client id and its issuer"),
        ({"grant": "client-credentials", "client_id": "a"}, "need a client id, its secret"),
        ({"grant": "password"}, "authorization-code or client-credentials"),
        ({"scopes": ("a b",)}, "without spaces"),
        ({"scopes": 3}, "without spaces"),
        ({"issuer": "auth.example.org"}, "https:// URL"),
        ({"redirect": "https://example.org/back"}, "an address of this machine"),
        ({"redirect": "http://127.0.0.1/back"}, "an address of this machine"),
        ({"redirect": "http://127.0.0.1:99999/back"}, "an address of this machine"),
        ({"redirect": "http://10.0.0.1:80/back"}, "an address of this machine"),
    ],
)
def test_a_client_that_cannot_work_is_refused(fields, why):
    with pytest.raises(DefinitionError, match=why):
        OAuthClient(**fields)


def test_scopes_may_be_one_text():
    assert OAuthClient(scopes="read  write").scopes == ("read", "write")
    assert OAuthClient(redirect="http://[::1]:8765/back").redirect


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://example.org/mcp", True),
        ("http://localhost:80/mcp", True),
        ("http://127.0.0.2/mcp", True),
        ("http://[::1]/mcp", True),
        ("http://example.org/mcp", False),
        ("http://localhost.example.org/mcp", False),
    ],
)
def test_tokens_are_sent_only_over_https_or_to_this_machine(url, may):
    assert may_carry_tokens(url) is may


def test_the_record_has_a_version(store):
    store.save(LOGIN)
    assert json.loads(Path(store.path).read_text())["version"] == 1


def test_oauth_needs_a_url_that_no_one_else_reads():
    with pytest.raises(DefinitionError, match="https://"):
        HttpServer("http://mcp.example.org/mcp", oauth=OAuthClient())
    with pytest.raises(DefinitionError, match="must be an OAuthClient"):
        HttpServer("https://mcp.example.org/mcp", oauth={})
