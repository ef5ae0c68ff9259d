"""Run the official MCP suite and Inspector against `satchel serve`, and connect a server.

    python tests/conformance/run.py [PAGE]

It needs npx, which fetches both and their Node. The variables CONFORMANCE and INSPECTOR may name
installed commands instead. With a PAGE, the results are written to it as a table.
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
    """Yield the options that name a copy of what is served, since the suite changes it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("plugins", "skills"):
            shutil.copytree(HERE / name, Path(folder, name))
        yield [word for n in ("plugins", "skills") for word in (f"--{n}", str(Path(folder, n)))]


@contextmanager
def served(options: list[str]) -> Iterator[str]:
    """Yield the address of a server over HTTP."""
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
            if match := re.search(r"at (http://\S+),", line):
                yield match[1]
                return
        raise SystemExit("satchel serve did not start")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def run(url: str, options: list[str]) -> tuple[bool, str]:
    """Run a part of the suite; return whether it passed, and its output."""
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
            passed, output = run(url, options)
            print(f"===== {name}\n{output}")
            rows.append((name, passed, summary(output)))
    connected = everything.run()
    for name, passed, details in [*rows, *connected]:
        print(f"{'pass' if passed else 'FAIL'}  {name}: {details}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(rows) + everything.section(connected))
    return 0 if all(passed for _, passed, _ in [*rows, *connected]) else 1


def summary(output: str) -> str:
    """Return how many scenarios passed; those that the suite does not score are counted apart."""
    if match := re.search(r"Passed: (\d+/\d+), (\d+) failed, (\d+) warnings", output):
        return f"{match[1]} checks, {match[3]} warnings"
    unscored = dict(re.findall(r"^  [✓✗] ([\w-]+) \(([\w-]+)\)", output, re.MULTILINE))
    ran = dict(re.findall(r"^(?!  )[✓✗] ([\w-]+): \d+ passed, (\d+) failed", output, re.MULTILINE))
    scored = [failed == "0" for name, failed in ran.items() if name not in unscored]
    failures = [name for name, failed in ran.items() if name in unscored and failed != "0"]
    text = f"{sum(scored)} of {len(scored)} scenarios"
    if unscored:
        text += f"; {len(unscored) - len(failures)} of {len(unscored)} that are not scored"
    return text + (f"; failed: {', '.join(failures)}" if failures else "")


def page(rows: list[tuple[str, bool, str]]) -> str:
    """Return the results as a page."""
    today = dt.datetime.now(tz=dt.UTC).date()
    table = "\n".join(
        f"| {name} | {'pass' if passed else 'FAIL'} | {details} |" for name, passed, details in rows
    )
    return PAGE.format(suite=SUITE, inspector=inspector.VERSION, today=today, table=table)


PAGE = """\
# Conformance to MCP

`make conformance` runs the official suite, `@modelcontextprotocol/conformance` {suite}, against
`satchel serve --http`. The server has a plugin with the tools and prompts that the suite calls
(`tests/conformance`). The command line of the official Inspector,
`@modelcontextprotocol/inspector` {inspector}, then lists, verifies and calls the same over stdio
and HTTP. `make conformance` needs npx, and writes this page. Skills are verified with the later
protocol version only, since the earlier one has no extensions.

Last run: {today}.

| test | result | details |
| --- | --- | --- |
{table}
"""

if __name__ == "__main__":
    sys.exit(main())
