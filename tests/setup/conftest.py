"""A person who answers as they were told, and a server that breaks as it was told."""

import http.server
import threading
from dataclasses import dataclass, field

import pytest

from satchel.setup import SetupContext


@dataclass
class Scripted:
    """Answers questions from a list; with none left, nobody is there."""

    answers: list[str] = field(default_factory=list)
    is_there: bool = False
    told: list[str] = field(default_factory=list)
    asked: list[tuple[str, bool]] = field(default_factory=list)
    progressed: list[tuple[str, int, int | None]] = field(default_factory=list)

    def say(self, text):
        self.told.append(text)

    def answer(self, question, *, secret):
        self.asked.append((question, secret))
        return self.answers.pop(0)

    def progress(self, step, done, total):
        self.progressed.append((step, done, total))


@pytest.fixture
def person() -> Scripted:
    return Scripted()


@pytest.fixture
def someone(person):
    """Let the person be there, with these answers."""

    def someone(*answers: str) -> Scripted:
        person.is_there, person.answers = True, [*answers]
        return person

    return someone


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Where the data of the plugin `demo` lies."""
    monkeypatch.setenv("SATCHEL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data/plugins/demo"


@pytest.fixture
def ctx(tmp_path, person, data):
    (tmp_path / "demo").mkdir()
    return SetupContext(plugin="demo", folder=tmp_path / "demo", person=person)


class Server(http.server.ThreadingHTTPServer):
    """Gives one file; `script` holds what it does wrong, request by request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = b""
        self.script: list[str] = []
        self.requests: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/files/model.bin"

    def handle_error(self, request, client_address):
        """A client that goes away is part of some tests."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_):
        """Tests read what was asked from `requests`."""

    def do_GET(self):
        server = self.server
        server.requests.append(dict(self.headers))
        step = server.script.pop(0) if server.script else ""
        if step.isdecimal():
            self._answer(int(step), b"")
        elif step.startswith("to "):
            self._answer(302, b"", Location=step.removeprefix("to "))
        elif step.startswith("says "):
            self.wfile.write(step.removeprefix("says ").encode() + b"\r\n\r\n")
        else:
            self._file(step)

    def _file(self, step: str):
        body, headers = self.server.body, {}
        if step.startswith("break after "):
            headers["Content_Length"] = str(len(body))
            body = body[: int(step.removeprefix("break after "))]
        if step == "endless":
            headers["Content_Length"] = ""
        if step == "packed":
            headers["Content_Encoding"] = "gzip"
        self._answer(200, body, **headers)

    def _answer(self, status: int, body: bytes, **headers: str):
        self.send_response(status)
        headers.setdefault("Content_Length", str(len(body)))
        for name, value in headers.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
