"""Run the official suite and Inspector of MCP against `satchel serve`, and carry a server.

    python tests/conformance/run.py [PAGE]

It needs npx; both and the Node that they want come by npx, or CONFORMANCE and INSPECTOR name
commands that are there already. With a PAGE, the results are written there as a table.
"""

import datetime as dt
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import everything
import inspector

HERE = Path(__file__).parent
SUITE = "0.2.0-alpha.12"
COMMAND = f"npx --yes -p node@22 -p @modelcontextprotocol/conformance@{SUITE} conformance"
RUNS = {
    "required by 2025-11-25": ["--requirements", "2025-11-25"],
    "required by 2026-07-28": ["--requirements", "2026-07-28"],
    "skills: folders": ["--scenario", "sep-2640-skills-directory"],
    "skills: listing": ["--scenario", "sep-2640-skills-enumeration"],
    "skills: SKILL.md": ["--scenario", "sep-2640-skills-manifest"],
    "DNS rebinding": ["--scenario", "dns-rebinding-protection"],
}
LIMIT = 900


@contextmanager
def fixtures() -> Iterator[list[str]]:
    """Copy what is served, which changes itself; yields the options that name it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("plugins", "skills"):
            shutil.copytree(HERE / name, Path(folder, name))
        yield [word for n in ("plugins", "skills") for word in (f"--{n}", str(Path(folder, n)))]


@contextmanager
def served(options: list[str]) -> Iterator[str]:
    """Serve over HTTP; yields the address."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "satchel", "serve", "--http", "127.0.0.1:0"),
            *("--rate", "0", *options),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"at (http://\S+),", line):
                yield found[1]
                return
        raise SystemExit("satchel serve did not begin")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def run(url: str, options: list[str]) -> tuple[bool, str]:
    """Run a part of the suite; return whether it passed, and what it said."""
    command = shlex.split(os.environ.get("CONFORMANCE", COMMAND))
    done = subprocess.run(
        [*command, "server", "--url", url, *options],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    """Run everything, print it, and write the page if one is named."""
    rows = []
    with fixtures() as named, served(named) as url:
        rows += inspector.rows(url, named)
        for name, options in RUNS.items():
            passed, said = run(url, options)
            print(f"===== {name}\n{said}")
            rows.append((name, passed, summary(said)))
    carried = everything.run()
    for name, passed, told in [*rows, *carried]:
        print(f"{'pass' if passed else 'FAIL'}  {name}: {told}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(rows) + everything.section(carried))
    return 0 if all(passed for _, passed, _ in [*rows, *carried]) else 1


def summary(said: str) -> str:
    """Say how many scenarios passed, and apart from them those that the suite does not score."""
    if one := re.search(r"Passed: (\d+/\d+), (\d+) failed, (\d+) warnings", said):
        return f"{one[1]} checks, {one[3]} warnings"
    aside = dict(re.findall(r"^  [✓✗] ([\w-]+) \(([\w-]+)\)", said, re.MULTILINE))
    ran = dict(re.findall(r"^(?!  )[✓✗] ([\w-]+): \d+ passed, (\d+) failed", said, re.MULTILINE))
    scored = [failed == "0" for name, failed in ran.items() if name not in aside]
    others = [name for name, failed in ran.items() if name in aside and failed != "0"]
    told = f"{sum(scored)} of {len(scored)} scenarios"
    if aside:
        told += f"; of {len(aside)} that are not scored {len(aside) - len(others)}"
    return told + (f", not: {', '.join(others)}" if others else "")


def page(rows: list[tuple[str, bool, str]]) -> str:
    """Return the results as a page."""
    today = dt.datetime.now(tz=dt.UTC).date()
    table = "\n".join(
        f"| {name} | {'pass' if passed else 'FAIL'} | {told} |" for name, passed, told in rows
    )
    return PAGE.format(suite=SUITE, inspector=inspector.VERSION, today=today, table=table)


PAGE = """\
# Conformance to MCP

`make conformance` runs the official suite, `@modelcontextprotocol/conformance` {suite}, against
`satchel serve --http` with a plugin that offers what the suite calls by name
(`tests/conformance`), and has the command line of the official Inspector,
`@modelcontextprotocol/inspector` {inspector}, list, verify and call the same over stdio and HTTP.
It needs npx, and writes this page. Skills are verified by the later protocol, since the earlier
one has no room for extensions.

Last run: {today}.

| what | result | told |
| --- | --- | --- |
{table}
"""

if __name__ == "__main__":
    sys.exit(main())
