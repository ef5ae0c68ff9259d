"""Downloads: whole or not there."""

import hashlib
import io
import os
import stat
from types import SimpleNamespace

import pytest
import requests

from satchel.errors import DefinitionError, SatchelError
from satchel.setup.downloads import Download, shown_url

BODY = bytes(range(256)) * 4096
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def body(server):
    server.body = BODY


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "model.bin"


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between tries, which the tests do not wait for."""
    pauses = []
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=pauses.append))
    return pauses


@pytest.fixture
def fetch(server, target, pauses):
    """Fetch the file of the server, without pauses; returns the steps of the progress."""

    def fetch(url: str = "", **options):
        steps = []
        options = {"tries": 3} | options
        Download(
            url=url or server.url,
            target=str(target),
            progress=lambda *step: steps.append(step),
            **options,
        ).run()
        return steps

    return fetch


def left(target):
    """The names beside the target."""
    return sorted(os.listdir(target.parent)) if target.parent.exists() else []


def test_a_file_is_fetched_and_its_progress_reported(fetch, target):
    messages = fetch(sha256=DIGEST.upper())
    assert target.read_bytes() == BODY
    assert left(target) == ["model.bin"]
    assert messages[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in messages] == sorted(done for done, _ in messages)


def test_a_file_with_the_right_checksum_is_not_fetched_again(fetch, server, target):
    fetch(sha256=DIGEST)
    fetch(sha256=DIGEST)
    assert len(server.requests) == 1
    target.write_bytes(b"changed")
    fetch(sha256=DIGEST)
    assert target.read_bytes() == BODY
    fetch()
    assert len(server.requests) == 3


def test_a_wrong_checksum_leaves_nothing_and_keeps_what_was_there(fetch, server, target):
    target.parent.mkdir()
    target.write_bytes(b"old")
    with pytest.raises(SatchelError, match=f"sha256 {DIGEST}, not 00"):
        fetch(sha256="00" * 32)
    assert (left(target), target.read_bytes()) == (["model.bin"], b"old")
    assert len(server.requests) == 1


def test_a_connection_that_breaks_off_is_tried_again(fetch, server, target):
    server.script = ["break after 1000", "break after 0"]
    fetch(sha256=DIGEST)
    assert target.read_bytes() == BODY
    server.script = ["break after 1000"] * 3
    with pytest.raises(SatchelError, match="cannot be reached"):
        fetch()
    assert left(target) == ["model.bin"]
    assert target.read_bytes() == BODY


def test_a_file_has_the_mode_of_any_other(fetch, target):
    fetch()
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask


def test_a_file_stays_as_the_server_packed_it(fetch, server, target):
    server.script = ["packed"]
    fetch(sha256=DIGEST)
    assert target.read_bytes() == BODY


def test_nothing_is_printed(fetch, server, capfd):
    server.script = ["503"]
    fetch(f"{server.url}?token=hunter2", sha256=DIGEST)
    assert capfd.readouterr() == ("", "")


def test_a_busy_server_is_asked_again_and_an_absent_file_is_not(fetch, server, target):
    server.script = ["503", "429"]
    fetch()
    assert len(server.requests) == 3
    server.script = ["404"]
    with pytest.raises(SatchelError, match=r"model.bin: the server returned 404"):
        fetch()
    assert len(server.requests) == 4


def test_the_pauses_grow(fetch, server, pauses):
    server.script = ["503"] * 4
    fetch(tries=5)
    assert pauses == [1, 2, 3, 4]


@pytest.mark.parametrize("message", ["announced", "endless"])
def test_a_file_that_is_too_large_is_not_kept(fetch, server, target, message):
    server.script = [message]
    with pytest.raises(SatchelError, match="larger than 1000 bytes"):
        fetch(most_bytes=1000)
    assert left(target) == []


def test_redirects_are_followed_within_the_web_only(fetch, server, target):
    server.script = [f"to {server.url}?elsewhere"]
    fetch(sha256=DIGEST)
    assert target.read_bytes() == BODY
    for place in ("file:///etc/passwd", "ftp://127.0.0.1/x"):
        server.script = [f"to {place}"]
        with pytest.raises(SatchelError, match="redirects"):
            fetch()
    server.script = [f"to {server.url}"] * 50
    with pytest.raises(SatchelError, match="redirects in a circle"):
        fetch()


def test_a_redirect_from_https_to_http_is_refused(fetch, server, monkeypatch):
    sent = []

    def answered(self, request, **_):
        sent.append(request.url)
        response = requests.Response()
        response.status_code, response.url, response.request = 302, request.url, request
        response.headers["Location"] = "http://x.invalid/a?token=hunter2"
        response.raw = io.BytesIO()
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", answered)
    with pytest.raises(SatchelError, match="http://, which is not allowed") as it:
        fetch("https://x.invalid/a")
    assert sent == ["https://x.invalid/a"]
    assert "hunter2" not in str(it.value)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x/y",
        "/etc/passwd",
        "http:///x",
        "http://a b/",
        "http://[",
        "http://x/é",
        "http://a..b/x",
        f"http://{'a' * 64}.org/x",
        "http://x:99999/y",
        "http://x:abc/y",
        "http://[::1/x",
    ],
)
def test_only_addresses_of_the_web_are_taken(fetch, url):
    with pytest.raises(DefinitionError, match="must begin with http"):
        fetch(url)


@pytest.mark.parametrize("user", ["bob:hunter2", "hunter2", "bob:p@hunter2", ":"])
def test_a_name_or_password_in_an_address_is_refused_and_never_shown(fetch, server, user):
    url = server.url.replace("//", f"//{user}@")
    for asked, address in enumerate((url, server.url)):
        server.script = [f"to {url}"]
        with pytest.raises(SatchelError, match="a user name or password") as caught:
            fetch(address)
        assert "hunter2" not in str(caught.value)
        assert len(server.requests) == asked


@pytest.mark.parametrize(
    "place",
    [
        "file:///x?key=hunter2",
        "http://a..b/hunter2",
        "http://[hunter2/x",
        "http://x:hunter2/y",
        "http://u:hunter2@x:y/",
    ],
)
def test_a_redirect_to_nowhere_is_reported_at_once_and_without_its_address(fetch, server, place):
    server.script = [f"to {place}"] * 3
    with pytest.raises(SatchelError) as caught:
        fetch()
    assert "hunter2" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_password_of_a_proxy_is_never_shown(fetch, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://bob:hunter2@127.0.0.1:x")
    with pytest.raises(SatchelError) as caught:
        fetch("http://nowhere.invalid/x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("line", ["HTTP/1.1 404 a\x1b[31mb", "no \x1b[2J server" + "x" * 999])
def test_what_a_server_says_is_one_short_line(fetch, server, line):
    server.script = [f"says {line}"] * 3
    with pytest.raises(SatchelError) as caught:
        fetch()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("sha256", ["abc", "g" * 64, DIGEST + "0", DIGEST + "\n"])
def test_what_is_no_checksum_is_reported_before_anything_is_asked(fetch, server, sha256):
    with pytest.raises(DefinitionError, match="64 hexadecimal digits"):
        fetch(sha256=sha256)
    assert server.requests == []


def test_a_server_that_is_not_there_is_reported_after_some_tries(fetch, server, target):
    unused = server.url.replace(f":{server.server_port}", ":1")
    with pytest.raises(SatchelError, match="cannot be reached") as caught:
        fetch(unused)
    assert "refused" in str(caught.value)


def test_a_target_that_cannot_be_written_is_reported(fetch, target):
    target.parent.write_text("a file")
    with pytest.raises(SatchelError, match="cannot write"):
        fetch()


def test_an_address_is_reported_without_its_secrets():
    assert shown_url("https://me:pw@x.org:1/a/b?token=s#f") == "https://x.org:1/a/b"
