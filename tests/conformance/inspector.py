"""List, verify and call with the official Inspector's command line, over stdio and HTTP.

It needs npx; the variable INSPECTOR may name an installed command instead.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator

VERSION = "2.12.0"
COMMAND = f"npx --yes -p node@22 -p @modelcontextprotocol/inspector@{VERSION} mcp-inspector --cli"
LIMIT = 300
_TOOL_ERROR = 5
"""Its exit code when a tool returned an error."""

EVERYWHERE = (
    ("--method tools/list --strict", "test_simple_text"),
    ("--method tools/call --tool-name test_simple_text", "This is a simple text response"),
    ("--method tools/call --tool-name test_error_handling", "intentionally returns an error"),
    ("--method prompts/list", "skill_prompt"),
    ("--method prompts/get --prompt-name test_simple_prompt", "This is a simple prompt"),
    ("--method resources/list", "skill://greeting/SKILL.md"),
    ("--method resources/read --uri test://static-text", "the content of the static text"),
    ("--method resources/templates/list", "skill://{name}/{+path}"),
)
"""Each command, and a text that its output must contain."""
OF_SKILLS = (
    ("--method skills/list --verify --require-digests", "verified"),
    ("--method skills/get --verify --uri skill://greeting/SKILL.md", "verified"),
    ("--method resources/directory/read --uri skill://greeting", "skill://greeting/templates"),
)
"""The commands of the skills extension, which exists since 2026-07-28."""
ERAS = {"2025-11-25": ("legacy", EVERYWHERE), "2026-07-28": ("modern", EVERYWHERE + OF_SKILLS)}


def rows(url: str, options: Iterable[str]) -> Iterator[tuple[str, bool, str]]:
    """Yield for each transport and version its name, whether all passed, and how many."""
    targets = {
        "stdio": [sys.executable, "-m", "satchel", "serve", *options],
        "HTTP": ["--transport", "http", "--server-url", url],
    }
    for transport, target in targets.items():
        for version, (era, commands) in ERAS.items():
            failed = [
                text for text, expected in commands if not passes(target, era, text, expected)
            ]
            details = f"{len(commands) - len(failed)} of {len(commands)} commands"
            details += f"; failed: {'; '.join(failed)}" if failed else ""
            yield f"Inspector, {transport}, {version}", not failed, details


def passes(target: list[str], era: str, text: str, expected: str) -> bool:
    """Return whether a command has the expected output; otherwise print the output."""
    command = shlex.split(os.environ.get("INSPECTOR", COMMAND))
    options = ["--format", "json", "--quiet", "--protocol-era", era, "--connect-timeout", "60000"]
    done = subprocess.run(
        [*command, *options, *shlex.split(text), *target],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    passed = expected in done.stdout and done.returncode == (
        _TOOL_ERROR if "error" in expected else 0
    )
    if not passed:
        print(f"===== {text}: {done.returncode}\n{done.stdout}{done.stderr}")
    return passed
