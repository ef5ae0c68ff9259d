"""A redis with TLS and users: what is right works, and what is wrong is said in one line."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from satchel import Satchel
from satchel.errors import DefinitionError

pytest.importorskip("docket", reason="pydocket is not installed")
if not (shutil.which("redis-server") and shutil.which("openssl")):
    pytest.skip("redis-server or openssl is not installed", allow_module_level=True)

from satchel.remote import CatalogPublisher, RemoteRunner, ToolWorker

pytestmark = pytest.mark.slow

KEY = "0123456789abcdef0123456789abcdef"
PASSWORD = "pass/word@1"
QUOTED = "pass%2Fword%401"
TOOLS = """
from satchel import tool

@tool
async def work() -> str:
    "Work."
    return "done"
"""
CONFIGURATION = f"""
port 0
tls-port {{port}}
tls-cert-file cert.pem
tls-key-file key.pem
tls-ca-cert-file cert.pem
tls-auth-clients no
save ""
user ann on >{PASSWORD} ~satchel:* &* +@all -@dangerous
user ned on >{PASSWORD} ~satchel:* &satchel:* +@all
user bob on >{PASSWORD} ~other:* &* +@all
user default off
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Start a redis with TLS and users; return its host and port, and its certificate."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "redis.conf").write_text(CONFIGURATION.format(port=port))
    process = subprocess.Popen(
        ["redis-server", "redis.conf"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = []
    for line in process.stdout:
        output.append(line)
        if "ready to accept connections" in line.lower():
            break
    else:
        process.wait(60)
        process.stdout.close()
        if "tls" in "".join(output).lower():
            pytest.skip("this redis-server has no TLS")
        raise AssertionError("".join(output))
    yield f"localhost:{port}", folder / "cert.pem"
    process.kill()
    process.wait(60)
    process.stdout.close()


@pytest.fixture
def folder(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "acme", tools=TOOLS)
    return tmp_path / "plugins"


@asynccontextmanager
async def hosting(folder, url):
    with Satchel(plugins=[folder]) as app:
        runner = RemoteRunner(url, key=KEY, otherwise="refuse")
        app.register_runner(runner)
        try:
            async with asyncio.timeout(120):
                yield app.session(), runner
        finally:
            await runner.aclose()


def test_calls_run_over_tls_with_a_user_that_may_use_only_our_keys(folder, address, start_worker):
    place, certificate = address
    url = f"rediss://ann:{QUOTED}@{place}?ssl_ca_certs={certificate}"
    start_worker(folder, url)

    async def main():
        async with hosting(folder, url) as (session, runner):
            assert (await session.call("work")).text == "done"
            assert runner.diagnostics == ()
        async with CatalogPublisher(url, key=KEY) as publisher:
            with Satchel(plugins=[folder]) as app:
                published = await publisher.publish(app.catalog)
            assert await publisher.slots(published) == {"acme": 10}

    asyncio.run(main())


WRONG = {
    "rediss://ann:wrong-word@{place}?ssl_ca_certs={certificate}": "refuses the user or the passw",
    "rediss://{place}?ssl_ca_certs={certificate}": "refuses the user or the password",
    "rediss://ann:{password}@{place}": "certificate is not trusted -> Add ?ssl_ca_certs=FILE",
    "rediss://bob:{password}@{place}?ssl_ca_certs={certificate}": "its ACL forbids the user a key",
    "redis://ann:{password}@{place}": "ConnectionError -> Start redis, and check the URL",
}


@pytest.mark.parametrize("url", WRONG)
def test_one_line_says_what_to_do_and_has_no_password(folder, address, caplog, url):
    place, certificate = address
    expected = WRONG[url]
    url = url.format(place=place, certificate=certificate, password=QUOTED)

    async def main():
        async with hosting(folder, url) as (session, runner):
            result = await session.call("work")
            assert result.error_code == "no_worker"
            (diagnostic,) = runner.diagnostics
            assert expected in str(diagnostic)

    asyncio.run(main())
    lines = [r.getMessage() for r in caplog.records if r.name.startswith("satchel")]
    assert len(lines) == 1
    assert expected in lines[0]
    assert not any(word in caplog.text for word in (PASSWORD, QUOTED, "wrong-word"))


CHANNEL = {
    "rediss://ned:{password}@{place}?ssl_ca_certs={certificate}": "its ACL forbids the user a key"
}


@pytest.mark.parametrize("url", [*WRONG, *CHANNEL])
def test_a_worker_says_once_why_it_does_not_begin(folder, address, url):
    place, certificate = address
    expected = (WRONG | CHANNEL)[url]
    url = url.format(place=place, certificate=certificate, password=QUOTED)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "satchel", "worker"),
            *("--plugins", str(folder), "--redis", url),
        ],
        env={**os.environ, "SATCHEL_REMOTE_KEY": KEY},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first = process.stderr.readline()
    finally:
        process.terminate()
        _, rest = process.communicate(timeout=120)
    assert expected in first
    assert "remote-unreachable" not in rest
    assert not any(word in first + rest for word in (PASSWORD, QUOTED, "wrong-word"))


@pytest.mark.parametrize(
    "url", ["http://ann:pass@h", "redis://ann:pa/ss@h", "redis://[ann:pass@h", "pass"]
)
def test_a_url_that_cannot_be_right_is_refused_at_once_and_not_shown(url):
    with Satchel() as app:
        for make in (
            lambda: RemoteRunner(url, key=KEY),
            lambda: ToolWorker(app, url, key=KEY),
            lambda: CatalogPublisher(url, key=KEY),
        ):
            with pytest.raises(DefinitionError, match="the URL of redis") as caught:
                make()
            assert "ann" not in str(caught.value)
