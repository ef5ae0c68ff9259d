"""Run the checks of every adapter, each in an environment of its own, and print the table.

python tests/adapters/run.py [--turns N] [--write PAGE] [FRAMEWORK ...]

An environment is made in build/adapters from the package index, and kept for the next run, as are
the results: a page has those of all frameworks, with the date of the oldest.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

import over_mcp

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / "build" / "adapters"

FRAMEWORKS = {
    "pydantic_ai": ("pydantic-ai-slim",),
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "langchain": ("langchain", "langgraph"),
    "openai_agents": ("openai-agents",),
    "google_adk": ("google-adk",),
    "agent_framework": ("agent-framework-core",),
    "strands": ("strands-agents>=1.60",),
    # With pydantic 2.14 its memory cannot be written into a saved context.
    "llama_index": ("llama-index-core", "pydantic<2.14"),
    "haystack": ("haystack-ai",),
    "agentscope": ("agentscope>=2",),
    # It imports more than it asks for.
    "agentscope_1": ("agentscope<2", "mcp<2", "greenlet", "tqdm"),
    "smolagents": ("smolagents",),
    "claude_agent": ("claude-agent-sdk",),
    "crewai": ("crewai>=1.15",),
}
"""What to install for the hosts whose names begin with a key; the first has the version."""

WITHOUT_SATCHEL = frozenset({"crewai"})
"""Frameworks whose packages exclude those of Satchel: it runs in another environment."""

LIGHTEST = ("pydantic_ai", "openai", "anthropic")

PAGE = """\
# Adapters

The same checks run for every adapter, with a scripted model: `satchel.testing.adapter_checks`.
What a framework cannot do is listed below with the reason.
`make adapters` makes an environment for each framework from the package index, runs the checks in
it, and writes this page. No extra of Satchel installs a framework: use the version that you have;
the one below was tested. [Write your own](../how-to/write-an-adapter.md) with the same checks.

Last run: {date}. The two long checks make as many requests as the table says: ten runs of one
agent, in one session for one user, or in two sessions for two users at once.

{frameworks}

## What is checked

{checks}

## What a framework cannot do

The checks below fail for the reason that stands there, which the line of source shows. The run
fails when a framework can do it, and when its newest version does not have the line.

{reasons}

Some things are left out, because they would cost more than they give:

- A call of a tool whose group is off gets Satchel's words, which say how to switch the group on,
  from the loops over OpenAI's and Anthropic's libraries, from LangChain, LlamaIndex and
  AgentScope 1, and from the OpenAI Agents SDK with `agent.run_config()`. In the other frameworks
  the model reads that there is no such tool, in the framework's words.
- In LangChain, of more than 1,000 answers at once whose calls wait or were given up, the oldest are
  forgotten: their calls run on the newest step of the session.
- In `stream_openai`, calls without an id that a server gives one index are read as one call.

## Over MCP

{without_host}

- The **Claude Agent SDK** drops the messages by which a server in its process says that its tools
  changed. [`options()`](../how-to/use-with-claude-agent.md) runs `satchel serve` over stdio: \
an edit
  is in the next request; the prompt is that of the start.
- **CrewAI** fixes the tools of a run when the run begins, so groups, reload and search could not
  work in it. [Its MCP client](../how-to/use-with-crewai.md) has the tools of the start of a run.
"""


def main() -> int:
    """Run the checks; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", default="60")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--lightest", action="store_true")
    parser.add_argument("frameworks", nargs="*", choices=[*FRAMEWORKS, []])
    chosen = parser.parse_args()
    names = LIGHTEST if chosen.lightest else chosen.frameworks or FRAMEWORKS
    runs = {}
    for name in names:
        results = run_framework(name, chosen.turns)
        kept = json.dumps(results, indent=1)
        (ENVIRONMENTS / f"{name}.json").write_text(kept, encoding="utf-8")
        print(table_of(results), flush=True)
        runs |= results
    print(table_of(runs))
    if chosen.write:
        chosen.write.write_text(page_of(kept_runs()), encoding="utf-8")
    failed = [f"{host}: {check}" for host, run in runs.items() for check in run["failed"]]
    print(*failed or ["every adapter passed"], sep="\n")
    return 1 if failed else 0


def run_framework(name: str, turns: str) -> dict[str, dict]:
    """Run the checks of the hosts of one framework in its environment."""
    python = environment(name)
    report = ENVIRONMENTS / f"{name}.xml"
    hosts = [
        path.stem.removesuffix("_host")
        for path in sorted(Path(__file__).parent.glob("hosts/*_host.py"))
        if owner(path.stem) == name
    ]
    runs = {}
    if name in over_mcp.NAMES:
        runs[name] = {
            "passed": [],
            "failed": run_files(python, name, turns, report),
            "expected": [],
            "cannot": {},
            "name": over_mcp.NAMES[name],
            "turns": turns,
        }
    for host in hosts:
        tested = run_pytest(
            python, "test_conformance.py", f"[{host}-", host=host, turns=turns, report=report
        )
        runs[host] = {**result_of(report), **about(python, host), "turns": turns}
        runs[host]["failed"] += run_files(python, name, turns, report) if host == name else []
        if not tested and not runs[host]["failed"]:
            runs[host]["failed"].append("pytest itself")
    package = package_of(name)
    version = f"{package} {version_of(python, package)}"
    date = datetime.now(UTC).date().isoformat()
    return {host: {**run, "version": version, "date": date} for host, run in runs.items()}


def kept_runs() -> dict[str, dict]:
    """Return the newest results of all frameworks, with what their hosts say now."""
    runs: dict[str, dict] = {}
    for name in FRAMEWORKS:
        runs |= json.loads((ENVIRONMENTS / f"{name}.json").read_text(encoding="utf-8"))
    for host, run in runs.items():
        if host not in over_mcp.NAMES:
            run.update(about(environment(owner(host)), host))
    return runs


def run_files(python: Path, name: str, turns: str, report: Path) -> list[str]:
    """Run the how-to page and the own tests of a framework; return what failed."""
    files = {"its how-to page": "test_how_to.py", "its own tests": f"test_{name}.py"}
    if name in over_mcp.NAMES:
        files["the line that shows why it has no host"] = "test_over_mcp.py"
    return [
        title
        for title, file in files.items()
        if Path(__file__).with_name(file).exists()
        and not run_pytest(python, file, name, host=name, turns=turns, report=report)
    ]


def run_pytest(
    python: Path, file: str, selection: str, *, host: str, turns: str, report: Path
) -> bool:
    """Run some tests of a file in an environment; print what went wrong."""
    report.unlink(missing_ok=True)
    line = [python, "-m", "pytest", "--noconftest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    # The settings of the project are for its own tests, with plugins that are not installed.
    line += ["-o", "addopts=", "-o", "filterwarnings=", "-o", "junit_family=xunit2"]
    line += [f"--junit-xml={report}", "-k", selection, Path(__file__).with_name(file)]
    environ = {**os.environ, "SATCHEL_ADAPTER": host, "SATCHEL_ADAPTER_TURNS": turns}
    environ["PYTHONPATH"] = str(ROOT / "src")  # for an environment without Satchel
    done = subprocess.run(line, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:])
    return done.returncode == 0


def owner(stem: str) -> str:
    """Return the framework of a host: the longest key that its name begins with."""
    return max((key for key in FRAMEWORKS if stem.startswith(key)), key=len, default="")


def package_of(name: str) -> str:
    """Return the name of a framework's package."""
    return re.split("[<>=]", FRAMEWORKS[name][0])[0]


def environment(name: str) -> Path:
    """Return the Python of a framework's environment; make it if there is none."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {', '.join(FRAMEWORKS[name])}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        satchel = () if name in WITHOUT_SATCHEL else ("--editable", ROOT)
        subprocess.run([*pip, *satchel, "pytest", *FRAMEWORKS[name]], check=True)
        (folder / "installed").touch()
    return python


def about(python: Path, host: str) -> dict:
    """Return what a host says of itself."""
    code = (
        "import importlib, json, sys; "
        f"sys.path.insert(0, {str(Path(__file__).parent / 'hosts')!r}); "
        f"host = importlib.import_module('{host}_host').Host; "
        "cannot = {check: (it.reason, it.place(), it.lines) for check, it in host.cannot.items()}; "
        "print(json.dumps(dict(name=host.name, cannot=cannot)))"
    )
    line = [python, "-W", "ignore", "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def version_of(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    line = [python, "-c", f"from importlib.metadata import version; print(version({package!r}))"]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()


def result_of(report: Path) -> dict:
    """Return the names of the checks that passed, failed, and failed as expected."""
    results: dict[str, list[str]] = {"passed": [], "failed": [], "expected": []}
    for case in ET.parse(report).iter("testcase") if report.exists() else ():
        check = case.get("name", "").rpartition("-")[2].rstrip("]")
        kinds = {child.tag for child in case}
        kind = "failed" if kinds & {"failure", "error"} else "passed"
        results["expected" if "skipped" in kinds else kind].append(check)
    return results if report.exists() else {**results, "failed": ["nothing ran"]}


def table_of(runs: Mapping[str, dict]) -> str:
    """Return the table of all hosts."""
    rows = [
        (
            run["name"],
            run["version"],
            f"{len(run['passed'])} of {count(run)}",
            f"{int(run['turns']):,}",
            f"`{owner(host)}`",
        )
        for host, run in runs.items()
        if host not in over_mcp.NAMES
    ]
    head = ("agent of", "tested with", "checks passed", "long checks", "in satchel.adapters")
    return markdown(head, rows)


def source_of(place: str, lines: str) -> str:
    """Return where lines stand, and what they say."""
    return f"`{place}`: `{' '.join(lines.split())}`".replace("|", "\\|")


def count(run: Mapping) -> int:
    """Return how many checks a host has run."""
    return len(run["passed"]) + len(run["failed"]) + len(run["expected"])


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page_of(runs: Mapping[str, dict]) -> str:
    """Return the page of the documentation."""
    sys.path.insert(0, str(ROOT / "src"))
    from satchel.testing.adapter_checks import CHECKS

    checks = markdown(
        ("check", "what it means"),
        [(f"`{name}`", " ".join((check.__doc__ or "").split())) for name, check in CHECKS.items()],
    )
    agents: dict[tuple[str, ...], list[str]] = {}
    for run in runs.values():
        for check, cannot in run["cannot"].items():
            agents.setdefault((check, *cannot), []).append(run["name"])
    reasons = markdown(
        ("agent of", "check", "reason", "line of source"),
        [
            ("; ".join(names), f"`{check}`", reason, source_of(place, lines))
            for (check, reason, place, lines), names in agents.items()
        ],
    )
    date = min(run["date"] for run in runs.values())
    frameworks = table_of(runs)
    without_host = markdown(
        ("framework", "its page was run with", "why there is no adapter in its process", "source"),
        [
            (runs[key]["name"], runs[key]["version"], why.reason, source_of(why.module, why.lines))
            for key, why in over_mcp.WHY.items()
        ],
    )
    return PAGE.format(
        date=date,
        frameworks=frameworks,
        checks=checks,
        reasons=reasons,
        without_host=without_host,
    )


if __name__ == "__main__":
    sys.exit(main())
