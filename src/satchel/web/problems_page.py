"""The page of problems: by file, with the line, the fix and a link that opens the editor."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from satchel.diagnostics import RULES, Diagnostic, Severity, Where
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.reports.doctor_cases import DoctorCase, doctor_cases
from satchel.reports.printed_commands import completed
from satchel.reports.serializer import case_json
from satchel.reports.short_texts import location_text
from satchel.web.page_rendering import Page
from satchel.web.workbench import DevOptions, Workbench

_LARGEST_FILE = 2 * 1024 * 1024
_LINES_AROUND = 2
_LONGEST_LINE = 400
_MOST_SHOWN = 300


def problems(workbench: Workbench, request: Request) -> Page:
    """Return the diagnostics by file, the worst file first."""
    wanted_severity = request.query_params.get("severity", "")
    findings = [
        (item, finding)
        for case in doctor_cases(workbench.catalog)
        for item, finding in _findings(case, workbench.options)
    ]
    counts = {str(severity): 0 for severity in Severity}
    for item, _ in findings:
        counts[str(item.severity)] += 1
    # Infos only if asked for: most are about what a folder has beside its skills.
    asked = {wanted_severity} if wanted_severity else {*Severity} - {Severity.INFO}
    shown = [pair for pair in findings if pair[0].severity in asked]
    record = {
        "severity": wanted_severity,
        "counts": counts,
        "files": _by_file(shown[:_MOST_SHOWN], workbench.options.editor),
        "left_out": max(len(shown) - _MOST_SHOWN, 0),
    }
    return Page(template="problems.html", title="Problems", record=record, extra={})


def _findings(case: DoctorCase, options: DevOptions) -> Iterable[tuple[Diagnostic, dict[str, Any]]]:
    for item, finding in zip(case.diagnostics, case_json(case), strict=True):
        meaning = RULES[item.code].meaning if item.code in RULES else ""
        location = {"text": location_text(item), "href": editor_link(options.editor, item.where)}
        texts = {
            key: finding[key] and completed(finding[key], options.source_options)
            for key in ("command", "fix")
        }
        yield item, {**finding, **texts, "meaning": meaning, "location": location, "lines": []}


def _by_file(
    findings: Iterable[tuple[Diagnostic, dict[str, Any]]], editor: str
) -> list[dict[str, Any]]:
    """Return the files with their findings in the order of their lines, the worst file first."""
    files: dict[str, list[tuple[Diagnostic, dict[str, Any]]]] = {}
    for item, finding in findings:
        files.setdefault(item.where.path, []).append((item, finding))
    order = [str(severity) for severity in Severity]
    groups = []
    for path, pairs in files.items():
        pairs.sort(key=lambda it: it[0].where.line or 0)
        lines: list[str] = []
        if any(item.where.line for item, _ in pairs):
            with suppress(UnreadableFileError):
                data, _ = read_regular(path, _LARGEST_FILE)
                lines = data.decode("utf-8", "replace").splitlines()
        for item, finding in pairs:
            finding["lines"] = _around(lines, item.where.line)
        worst = min(order.index(finding["severity"]) for _, finding in pairs)
        first = pairs[0][0]
        groups.append(
            {
                "path": path,
                "href": editor_link(editor, first.where),
                "severity": order[worst],
                "findings": [finding for _, finding in pairs],
            }
        )
    return sorted(groups, key=lambda group: order.index(str(group["severity"])))


def editor_link(editor: str, where: Where) -> str:
    """Return the address that opens the editor at a place, or `""` if that is no file."""
    if not os.path.isabs(where.path):
        return ""
    return (
        editor.replace("{path}", quote(where.path))
        .replace("{line}", str(where.line or 1))
        .replace("{column}", str(where.column or 1))
    )


def _around(lines: list[str], line: int | None) -> list[dict[str, Any]]:
    if line is None or not 0 < line <= len(lines):
        return []
    first, last = max(1, line - _LINES_AROUND), min(len(lines), line + _LINES_AROUND)
    return [
        {"number": at, "text": lines[at - 1][:_LONGEST_LINE], "is_hit": at == line}
        for at in range(first, last + 1)
    ]
