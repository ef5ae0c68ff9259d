"""`dev`: what it asks for, what it prints, and that it costs nothing until it runs."""

import http.client
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def serve(start, here, write_skill):
    """Start the command, and return the process with the printed address."""

    def serve(*args):
        write_skill(here / "skills", "pdf")
        process = start("dev", "--skills", "skills", "--no-browser", "--port", "0", *args)
        return process, process.until("^http")

    return serve


def get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_printed_address_opens_the_page(serve):
    process, url = serve()
    status, headers, _ = get(url)
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"].split(";")[0]
    status, _, page = get(url.partition("?")[0], cookie=cookie)
    assert (status, b"pdf" in page) == (200, True)
    process.until("press Ctrl-C to stop", "stderr")
    process.process.terminate()
    assert process.process.wait(60) == 0


def test_a_token_can_be_given(serve):
    _, url = serve("--token", "a-token-of-some-length")
    assert url.endswith("/?token=a-token-of-some-length")


def test_the_next_start_at_a_port_has_the_same_token():
    from satchel.web.dev_server import kept_token

    assert kept_token(7317) == kept_token(7317)
    assert kept_token(7317) != kept_token(7318)
    assert len(kept_token(7317)) > 40
    assert kept_token(0) != kept_token(0)


def test_only_the_user_can_read_the_token(config_folder):
    from satchel.web.dev_server import kept_token

    kept_token(7317)
    (file,) = Path(f"{config_folder}-state").rglob("7317.token")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::"])
def test_an_address_that_others_reach_needs_a_token(run, host):
    result = run("dev", "--host", host, "--port", "0")
    assert result.exit_code == 2
    assert "reachable from other machines, so --token is required" in result.stderr


def test_an_address_that_others_reach_is_said_with_a_warning(serve):
    process, _ = serve("--host", "0.0.0.0", "--token", "a-token-of-some-length")
    process.until("^warning: 0.0.0.0 is reachable from other machines", "stderr")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--token", "short"), "16 characters"),
        (("--host", "example.com"), "an IP address or localhost"),
        (("--editor", "nano"), "{path}"),
        (("--editor", "{path}"), "{path}"),
        (("--port", "70000"), "65535"),
    ],
)
def test_wrong_options_are_refused(run, args, words):
    result = run("dev", *args)
    assert (result.exit_code, words in result.stderr) == (2, True)


def test_a_port_that_is_taken_is_named(run, serve):
    _, url = serve()
    result = run("dev", "--port", urlsplit(url).port, "--no-browser")
    assert result.exit_code == 1
    assert f"127.0.0.1:{urlsplit(url).port}" in result.stderr
    assert "give another port" in result.stderr


@pytest.mark.parametrize("package", ["jinja2", "uvicorn"])
def test_without_its_packages_the_command_says_what_to_install(run, monkeypatch, package):
    for name in ("satchel.http.quiet_server", "satchel.web"):
        for module in [item for item in sys.modules if item.startswith(name)]:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    result = run("dev", "--no-browser")
    assert result.exit_code == 1
    assert f"satchel dev needs {package}" in result.stderr
    assert "pip install '.[web]'" in result.stderr


@pytest.mark.parametrize("args", [("--help",), ("list", "--skills", "."), ("dev", "--help")])
def test_nothing_of_the_page_is_imported_without_the_command(here, args):
    code = (
        "import sys\nfrom satchel.cli.main import cli\n"
        f"try: cli.main({args!r}, standalone_mode=False)\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=here)
    heavy = {"starlette", "uvicorn", "jinja2", "markdown_it", "satchel.web.workbench"}
    assert "satchel.cli.main" in done.stderr
    assert not heavy & set(done.stderr.split())


def test_the_page_does_not_need_the_sdk_of_mcp():
    code = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "import satchel.web.dev_server"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_wheel_has_the_script_the_stylesheet_and_the_templates(tmp_path):
    line = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(REPOSITORY)]
    subprocess.run(line, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = REPOSITORY / "src"
    expected = {
        path.relative_to(source).as_posix()
        for folder in ("static", "templates")
        for path in (source / "satchel/web" / folder).iterdir()
    }
    assert "satchel/web/static/dev.js" in expected
    assert expected <= names
