"""`satchel scan`: what to look at before trusting skills and plugins of others."""

from collections import Counter

import click

from satchel.cli.base_command import Command
from satchel.cli.console import Console
from satchel.names import near_misses
from satchel.reports.short_texts import count, relative

_FORMATS = ("text", "json", "sarif", "github")


@click.command("scan", cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(exists=True))
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="text",
    help="How to print: text, json, sarif for code scanning, or github for a workflow.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave a rule out. Repeatable.")
def command(
    console: Console, *, paths: tuple[str, ...], form: str, as_json: bool, ignore: tuple[str, ...]
) -> int:
    """Look through files and folders for what a reviewer would want to see.

    Nothing is imported or run. Exit code 1 means that something was found: read it, it may be
    harmless. Exit code 0 does not mean that a skill is safe.
    """
    # Lazy: not needed for `--help`.
    from satchel.cli.scan_report import github_line, sarif_report
    from satchel.scan.file_scanner import scan_path
    from satchel.scan.scan_rules import SCAN_RULES

    if unknown := [name for name in ignore if name not in SCAN_RULES]:
        near = near_misses(unknown[0], SCAN_RULES) or tuple(SCAN_RULES)
        raise click.BadParameter(
            f"there is no rule {unknown[0]!r}; did you mean {', '.join(near)}?",
            param_hint="--ignore",
        )
    # Each once: a SKILL.md and its neighbours may both be named.
    findings = dict.fromkeys(it for path in paths for it in scan_path(path))
    reported = [it for it in findings if it.rule not in ignore]
    match "json" if as_json else form:
        case "json":
            console.json(
                [
                    {
                        "rule": it.rule, "path": it.path, "line": it.line, "text": it.text,
                        "meaning": it.meaning,
                    }
                    for it in reported
                ]
            )  # fmt: skip
        case "sarif":
            console.json(sarif_report(reported))
        case "github":
            for it in reported:
                console.out(github_line(it))
        case _:
            for it in reported:
                console.out(f"{relative(it.path)}:{it.line}: {it.rule}: {it.text}")
            for rule, number in sorted(Counter(it.rule for it in reported).items()):
                console.say(f"{rule} ({number}): {SCAN_RULES[rule].meaning}")
    console.say(count(len(reported), "finding"))
    return 1 if reported else 0
