"""Findings of a scan in the formats of other tools."""

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from satchel.cli.rendering import workflow_command
from satchel.reports.short_texts import relative
from satchel.scan.file_scanner import ScanFinding
from satchel.scan.scan_rules import SCAN_RULES


def sarif_report(findings: Iterable[ScanFinding]) -> dict[str, Any]:
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


def github_line(finding: ScanFinding) -> str:
    """Return a finding as a command of GitHub Actions, which marks the line in a change."""
    place = {
        "file": relative(finding.path),
        "line": max(finding.line, 1),
        "title": finding.rule,
    }
    return workflow_command("warning", place, f"{finding.meaning}: {finding.text}")


def _result(finding: ScanFinding) -> dict[str, Any]:
    from urllib.parse import quote

    return {
        "ruleId": finding.rule,
        "level": "warning",
        "message": {"text": f"{finding.meaning}: {finding.text}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(finding.path.replace("\\", "/"), "/:")},
                    "region": {"startLine": max(finding.line, 1)},
                }
            }
        ],
    }
