"""Measure the pages of `satchel dev`: the first page, a filter, an idle page and open pages.

python benchmarks/developing.py [SKILLS]; needs Linux, which counts the processor time of a process.
"""

import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

CLIENTS, EDITS, ROUNDS = 20, 20, 6
IDLE_SECONDS = 10


class Server:
    """A process of `satchel dev`, with one page that is open."""

    def __init__(self, process: subprocess.Popen[str], entrance: str) -> None:
        self.pid, self.port = process.pid, urlsplit(entrance).port
        answer = self.connection(urlsplit(entrance).path + "?" + urlsplit(entrance).query)
        self.cookie = (answer.headers["set-cookie"] or "").partition(";")[0]
        self.page = self.connection("/events")

    def connection(self, path: str) -> http.client.HTTPResponse:
        """Return an answer whose body is still to be read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path, headers={"Cookie": getattr(self, "cookie", "")})
        return connection.getresponse()

    def milliseconds(self, path: str) -> float:
        """Return how long a page takes."""
        start = time.perf_counter()
        self.connection(path).read()
        return (time.perf_counter() - start) * 1_000

    def processor(self) -> float:
        """Return the processor time of all its threads, in milliseconds."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6

    def next_event(self) -> None:
        """Wait until the page is told of a change."""
        while not self.page.readline().startswith(b"data: "):
            pass


def write_skill(folder: Path, number: int, text: str) -> None:
    """Write one skill."""
    path = folder / f"skill-{number:05}" / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\nname: skill-{number:05}\ndescription: {text}.\n---\n{text}\n")


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Yield a server of the folder."""
    line = [sys.executable, "-m", "satchel", "dev", "--no-browser", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - it starts this program
        [*line, "--skills", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            printed = next(text for text in process.stdout if "http://" in text)
            match = re.search(r"http://\S+", printed)
            assert match is not None
            yield Server(process, match[0])
        finally:
            process.terminate()


def reload_time(server: Server, folder: Path, clients: int, mark: str) -> float:
    """Return the processor time of one reload, while more pages are open."""
    with ExitStack() as stack:
        for _ in range(clients):
            stack.callback(server.connection("/events").close)
        time.sleep(0.3)
        before = server.processor()
        for edit in range(EDITS):
            write_skill(folder, edit, f"edited {mark} {edit}")
            server.next_event()
        time.sleep(0.3)
        return (server.processor() - before) / EDITS


def main() -> None:
    """Measure, and print."""
    count = int(sys.argv[1]) if sys.argv[1:] else 5_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(count):
            write_skill(folder, number, f"Does the thing with number {number}")
        with serving(folder) as server:
            first = server.milliseconds("/")
            server.next_event()
            time.sleep(10)  # the search index is made
            pages = [server.milliseconds("/") for _ in range(20)]
            finds = [server.milliseconds(f"/?q=number+{number}") for number in range(50)]
            more = [server.milliseconds(f"/?start={100 * at}&part=rows") for at in range(40)]
            before = server.processor()
            time.sleep(IDLE_SECONDS)
            idle = (server.processor() - before) / IDLE_SECONDS / 10
            alone, many = [], []
            for at in range(ROUNDS):  # in turns, beside the same other work
                alone.append(reload_time(server, folder, 0, f"alone {at}"))
                many.append(reload_time(server, folder, CLIENTS, f"many {at}"))
    print(f"{count} skills, milliseconds")
    print(f"first page, the very first    {first:8.1f}")
    print(f"first page, median            {statistics.median(pages):8.1f}")
    print(f"filter, median                {statistics.median(finds):8.1f}")
    print(f"next rows, median             {statistics.median(more):8.1f}")
    print(f"idle page, % of a processor   {idle:8.2f}")
    print(f"reload, CPU, one page open    {statistics.median(alone):8.2f}")
    ratio = statistics.median(many) / statistics.median(alone)
    print(f"reload, CPU, {CLIENTS} more pages   {statistics.median(many):8.2f}   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
