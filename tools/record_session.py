"""Record `docs/session.md` anew: run its commands beside a real `satchel watch`.

The page is the script: each block `console` is run in a folder made here, and the block `text`
after it is replaced by what the watch prints. Its first block starts the watch.
"""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/session.md"
STEP = re.compile(r"```console\n\$ ([^\n]*)\n```\n\n```text\n(.*?)```", re.DOTALL)
PATIENCE, QUIET = 120.0, 2.0
"""Seconds to wait for a line that the page has, and for one more."""
_OF_A_BUSY_MACHINE = "is still being imported"


def environment(folder: Path, *, with_pip: bool) -> dict[str, str]:
    """Make an environment that has the packages of this one, to install a plugin into."""
    venv.create(folder / "venv", with_pip=with_pip)
    scripts = folder / "venv" / "bin"
    inner = subprocess.check_output(
        [scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        text=True,
    )
    ours = sysconfig.get_path("purelib")
    Path(inner.strip(), "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    starter = scripts / "satchel"
    starter.write_text(f"#!{scripts / 'python'}\nfrom satchel.cli.main import main\nmain()\n")
    starter.chmod(0o755)
    path = os.pathsep.join([str(scripts), os.environ["PATH"]])
    own = {f"SATCHEL_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "STATE")}
    return {**os.environ, **own, "PATH": path}


def world(folder: Path) -> Path:
    """Make the folder that the page describes, with what its commands copy in."""
    here = folder / "here"
    for name in ("skills/write-a-skill", "plugins/clock", "plugins/satchel-units"):
        shutil.copytree(ROOT / name, here / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "skills/write-a-plugin", here / "write-a-plugin")
    return here


class Watch:
    """A running `satchel watch`; both of its streams are one, as on a terminal."""

    def __init__(self, command: str, here: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command.split(), cwd=here, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if _OF_A_BUSY_MACHINE not in line:
                self.lines.put(line)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the watch for a while, so that it sees no half of a command on a busy machine."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the watch."""
        with self.process:  # closes its stream
            self.process.terminate()
            self._reader.join()

    def printed(self, expected: int) -> str:
        """Return the lines of one step: as many as before, and those until it is quiet again."""
        lines: list[str] = []
        while True:
            try:
                timeout = PATIENCE if len(lines) < expected else QUIET
                lines.append(self.lines.get(timeout=timeout))
            except queue.Empty:
                return "".join(lines)


def record(text: str) -> str:
    """Return the page with what the commands print now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        here, env = world(folder), environment(folder, with_pip="$ pip " in text)
        running: list[Watch] = []

        def run(match: re.Match[str]) -> str:
            command = match[1]
            if running:
                shell = ["sh", "-c", command]
                with running[0].stopped():
                    subprocess.run(shell, check=True, cwd=here, env=env, stdout=subprocess.DEVNULL)
            else:
                running.append(Watch(command, here, env))
            # Another package of this environment may count as a plugin, too.
            printed = re.sub(
                r"(builtin \([^)]*\)).*", r"\1", running[0].printed(match[2].count("\n"))
            )
            return f"```console\n$ {command}\n```\n\n```text\n{printed}```"

        try:
            return STEP.sub(run, text)
        finally:
            for watch in running:
                watch.close()


def without_times(text: str) -> str:
    """Return a page without the times of its lines."""
    return re.sub(r"(?m)^\d\d:\d\d:\d\d ", "", text)


if __name__ == "__main__":
    before = PAGE.read_text("utf-8")
    after = record(before)
    # Other times alone are no news.
    if without_times(after) != without_times(before):
        PAGE.write_text(after, "utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {len(STEP.findall(after))} steps\n")
