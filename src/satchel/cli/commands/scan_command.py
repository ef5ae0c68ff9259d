"""`satchel scan`: what to look at before trusting skills and plugins of others."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from satchel.cli.base_command import Command, repeatable
from satchel.cli.console import Console
from satchel.cli.rendering import workflow_command
from satchel.cli.trust_report import shown_text
from satchel.files.file_reader import real_path
from satchel.names import near_misses
from satchel.reports.short_texts import count, relative
from satchel.scan.file_scanner import ScanFinding, scan_path
from satchel.scan.scan_rules import SCAN_RULES

_FORMATS = ("text", "json", "sarif", "github")


@click.command("scan", cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True))
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="text",
    help="How to print: text, json, sarif for code scanning, or github for a workflow.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@repeatable("--ignore", "ignore", "RULE", "Leave a rule out.")
def command(
    console: Console, *, paths: tuple[str, ...], form: str, as_json: bool, ignore: tuple[str, ...]
) -> int:
    """Look through files and folders for what a reviewer would want to see.

    Nothing is imported or run. Exit code 1 means that something was found: read it, it may be
    harmless. Exit code 0 does not mean that a skill is safe.
    """
    if unknown := [name for name in ignore if name not in SCAN_RULES]:
        near = near_misses(unknown[0], SCAN_RULES)
        hint = f"did you mean {', '.join(near)}?" if near else f"rules: {', '.join(SCAN_RULES)}"
        message = f"there is no rule {unknown[0]!r}; {hint}"
        raise click.BadParameter(message, param_hint="--ignore")
    # Each once: a SKILL.md and its neighbours may both be named.
    findings = dict.fromkeys(it for path in paths for it in scan_path(path))
    reported = [it for it in findings if it.rule not in ignore]
    match "json" if as_json else form:
        case "json":
            console.json([{**asdict(it), "meaning": it.meaning} for it in reported])
        case "sarif":
            console.json(_sarif_report(reported))
        case "github":
            for it in reported:
                console.out(_github_line(it))
        case _:
            for it in reported:
                place = shown_text(relative(it.path)) + (f":{it.line}" if it.line else "")
                console.out(f"{place}: {it.rule}: {it.text}")
            for rule, number in sorted(Counter(it.rule for it in reported).items()):
                console.say(f"{rule} ({number}): {SCAN_RULES[rule].meaning}")
    console.say(count(len(reported), "finding"))
    return 1 if reported else 0


def _sarif_report(findings: Iterable[ScanFinding]) -> dict[str, Any]:
    """Return findings as SARIF 2.1.0, which code scanning services read."""
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.meaning},
            "help": {"text": f"{rule.meaning}. Seen in: {rule.incident}."},
        }
        for rule in SCAN_RULES.values()
    ]
    driver = {"name": "satchel scan", "version": version("satchel"), "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(it) for it in findings]}],
    }


def _github_line(finding: ScanFinding) -> str:
    """Return a finding as a command of GitHub Actions, which marks the line in a change."""
    place = {
        "file": _place(finding.path),
        "line": max(finding.line, 1),
        "title": finding.rule,
    }
    return workflow_command("warning", place, f"{finding.meaning}: {finding.text}")


def _place(path: str) -> str:
    """Return a path as services that know the repository have it, so without links above it.

    It is relative, with `/`, if it is inside the current folder.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return relative(os.path.join(real_path(folder), name)).replace(os.sep, "/")


def _uri(path: str) -> str:
    """Return a path as SARIF has it: a relative reference, or else an absolute address."""
    place = _place(path)
    return Path(place).as_uri() if os.path.isabs(place) else quote(os.fsencode(place))


def _result(finding: ScanFinding) -> dict[str, Any]:
    return {
        "ruleId": finding.rule,
        "level": "warning",
        "message": {"text": f"{finding.meaning}: {finding.text}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.path)},
                    "region": {"startLine": max(finding.line, 1)},
                }
            }
        ],
    }
