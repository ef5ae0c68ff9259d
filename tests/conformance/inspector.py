"""What the official Inspector's command line lists, verifies and calls, over stdio and HTTP.

It needs npx, or INSPECTOR names a command that is there already.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator

VERSION = "2.12.0"
COMMAND = f"npx --yes -p node@22 -p @modelcontextprotocol/inspector@{VERSION} mcp-inspector --cli"
LIMIT = 300
_TOLD = 5
"""Its exit code when a tool told of an error."""

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
"""What is asked for, and what has to be in the answer."""
OF_SKILLS = (
    ("--method skills/list --verify --require-digests", "verified"),
    ("--method skills/get --verify --uri skill://greeting/SKILL.md", "verified"),
    ("--method resources/directory/read --uri skill://greeting", "skill://greeting/templates"),
)
"""The same of the extension, which there is since 2026-07-28."""
ERAS = {"2025-11-25": ("legacy", EVERYWHERE), "2026-07-28": ("modern", EVERYWHERE + OF_SKILLS)}


def rows(url: str, options: Iterable[str]) -> Iterator[tuple[str, bool, str]]:
    """Run everything; yields what it was, whether all of it went well, and how much did."""
    ways = {
        "stdio": [sys.executable, "-m", "satchel", "serve", *options],
        "HTTP": ["--transport", "http", "--server-url", url],
    }
    for way, target in ways.items():
        for version, (era, asked) in ERAS.items():
            failed = [words for words, wanted in asked if not answers(target, era, words, wanted)]
            told = f"{len(asked) - len(failed)} of {len(asked)} commands"
            told += f", not: {'; '.join(failed)}" if failed else ""
            yield f"Inspector, {way}, {version}", not failed, told


def answers(target: list[str], era: str, words: str, wanted: str) -> bool:
    """Tell whether a command is answered as it should be; print what was said if not."""
    command = shlex.split(os.environ.get("INSPECTOR", COMMAND))
    how = ["--format", "json", "--quiet", "--protocol-era", era, "--connect-timeout", "60000"]
    done = subprocess.run(
        [*command, *how, *shlex.split(words), *target],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    is_well = wanted in done.stdout and done.returncode == (_TOLD if "error" in wanted else 0)
    if not is_well:
        print(f"===== {words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return is_well
