"""Try `satchel serve` with the clients of others, and Satchel with the servers of others.

python tests/peers/run.py [--write PAGE] [CLIENT|SERVER ...]

Environments are made in build/peers from the package index and npm, and kept for the next run. Each
client connects over stdio and over HTTP, lists the tools and calls one; where it can, it leaves
while a call is open, which must end with its own timeout. Of each server the tools that Satchel
sees are compared with those that the plain SDK sees.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / "build" / "peers"
PATIENCE = 300

CLIENTS = {
    "mcp 1": ("mcp_client.py", ("mcp<2",)),
    "mcp 2": ("mcp_client.py", ("mcp>=2",)),
    "fastmcp 2": ("fastmcp_client.py", ("fastmcp>=2,<3",)),
    "fastmcp 3": ("fastmcp_client.py", ("fastmcp>=3,<4",)),
    "langchain": ("langchain_client.py", ("langchain-mcp-adapters",)),
    "openai-agents": ("openai_agents_client.py", ("openai-agents",)),
    "google-adk": ("google_adk_client.py", ("google-adk[mcp]",)),
    "typescript": ("typescript_client.mjs", ("@modelcontextprotocol/sdk",)),
}
"""The script of each client, and what to install for it; the first has the version."""

NPM = "@modelcontextprotocol/server-"
SERVERS = {
    "everything": (f"{NPM}everything", "mcp-server-everything"),
    "memory": (f"{NPM}memory", "mcp-server-memory"),
    "filesystem": (f"{NPM}filesystem", "mcp-server-filesystem", "{folder}"),
    "thinking": (f"{NPM}sequential-thinking", "mcp-server-sequential-thinking"),
    "time": ("mcp-server-time", "mcp-server-time"),
    "fetch": ("mcp-server-fetch", "mcp-server-fetch"),
    "git": ("mcp-server-git", "mcp-server-git"),
    "calculator": ("mcp-server-calculator", "mcp-server-calculator"),
}
"""What to install for each server, its program, and its arguments."""


def main() -> int:
    """Run what is named, or everything; return 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("names", nargs="*", choices=[*CLIENTS, *SERVERS, []])
    chosen = parser.parse_args()
    names = chosen.names or [*CLIENTS, *SERVERS]
    lines, failed = [], 0
    for heading, peers, row in (
        ("client | transport | tools | call | leaves with an open call", CLIENTS, client_rows),
        ("server | tools | same schemas | call | diagnostics", SERVERS, server_rows),
    ):
        if chosen_names := [name for name in names if name in peers]:
            columns = heading.split(" | ")
            lines += [f"| {heading} |", "|" + " --- |" * len(columns)]
            for name in chosen_names:
                for cells, is_good in row(name):
                    failed += not is_good
                    lines.append(f"| {' | '.join(cells)} |")
                    print(lines[-1], file=sys.stderr, flush=True)
            lines.append("")
    print("\n".join(lines))
    if chosen.write:
        chosen.write.write_text("\n".join(lines), encoding="utf-8")
    return 1 if failed else 0


def client_rows(name: str) -> Iterator[tuple[list[str], bool]]:
    """Try one client over both transports."""
    script, packages = CLIENTS[name]
    try:
        program, version = environment(f"client {name}", packages)
    except (subprocess.CalledProcessError, OSError) as problem:
        yield [name, "-", "cannot be installed", type(problem).__name__, ""], False
        return
    path = HERE / "clients" / script
    if program == ["node"]:  # it looks for packages beside the script
        path = home(f"client {name}") / script
        path.write_text((HERE / "clients" / script).read_text())
    for transport in ("stdio", "http"):
        result = run_client([*program, path], transport)
        cells = [f"{name} ({version})", transport, *(str(result.get(key, "")) for key in KEYS)]
        yield cells, is_good(result)


KEYS = ("tools", "called", "left")
TIMEOUTS = ("McpError", "MCPError", "TimeoutError")
"""Errors of clients for a call that they gave up; an `ExceptionGroup` hides theirs."""


def is_good(result: dict) -> bool:
    """Return whether a client saw and called the tool, and left with an error of its own."""
    return result.get("called") == "abab" and result.get("left") in TIMEOUTS


def run_client(program: list, transport: str) -> dict:
    """Run a client against `satchel serve`; return what it reports."""
    try:
        with target_of(transport) as target:
            return reported([*program, transport, *target])
    except RuntimeError as problem:
        return {"left": str(problem)}


@contextmanager
def target_of(transport: str) -> Iterator[list[str]]:
    """Yield the command that starts `satchel serve`, or its address over HTTP."""
    serve = [sys.executable, "-m", "satchel", "serve"]
    serve += ["--plugins", str(HERE / "plugins"), "--group", "all"]
    if transport == "stdio":
        yield serve
        return
    line = [*serve, "--http", "127.0.0.1:0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            while not (match := re.search(r"at (http://\S+),", process.stderr.readline())):
                if process.poll() is not None:
                    raise RuntimeError("satchel serve has ended")
            yield [match[1]]
        finally:
            process.terminate()


def server_rows(name: str) -> Iterator[tuple[list[str], bool]]:
    """Compare what is seen of one server."""
    package, program, *arguments = SERVERS[name]
    try:
        _, version = environment(f"server {name}", (package,))
    except (subprocess.CalledProcessError, OSError) as problem:
        yield [name, "cannot be installed", type(problem).__name__, "", ""], False
        return
    folder = home(f"server {name}")
    bins = folder / ("node_modules/.bin" if package.startswith("@") else "bin")
    filled = [item.replace("{folder}", str(folder)) for item in arguments]
    line = [sys.executable, HERE / "servers.py", name, bins / program, *filled]
    result = reported(line)
    seen, every = result.get("tools", 0), result.get("of", -1)
    problems = ", ".join(result.get("problems", [result.get("left", "")])) or "none"
    cells = [f"{name} ({version})", f"{seen} of {every}", str(result.get("same", ""))]
    yield [*cells, str(result.get("called", "")), problems], seen == every == result.get("same")


def reported(line: list) -> dict:
    """Run a program; return what it reports as JSON, or how it ended."""
    environ = {**os.environ, "SATCHEL_CONFIG_DIR": str(ENVIRONMENTS / "no-config")}
    try:
        done = subprocess.run(
            [*map(str, line)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environ,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"left": f"took longer than {PATIENCE} s"}
    for message in done.stdout.splitlines():
        if message.startswith("PEER "):
            return json.loads(message.removeprefix("PEER "))
    lines = [item for item in done.stderr.splitlines() if item.strip()]
    return {"left": f"failed: {lines[-1][:200] if lines else done.returncode}"}


def home(name: str) -> Path:
    """Return the folder of an environment."""
    return ENVIRONMENTS / re.sub(r"\W+", "-", name)


def environment(name: str, packages: tuple[str, ...]) -> tuple[list, str]:
    """Return the interpreter of an environment, made if needed, and the version of its package."""
    folder, package = home(name), packages[0]
    is_npm = package.startswith("@")
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {', '.join(packages)}", file=sys.stderr)
        if is_npm:
            folder.mkdir(parents=True, exist_ok=True)
            npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder]
            subprocess.run([*npm, *packages], check=True)
        else:
            venv.create(folder, with_pip=True, clear=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *packages], check=True)
        (folder / "installed").touch()
    if is_npm:
        manifest = folder / "node_modules" / package / "package.json"
        return ["node"], json.loads(manifest.read_text())["version"]
    plain = re.split(r"[<>=\[]", package)[0]
    code = f"from importlib.metadata import version; print(version({plain!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return [python], done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
