"""`satchel contracts`: the tools that have a contract."""

from typing import Any

import click

from satchel.cli.base_command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.console import Console
from satchel.cli.contract_text import contract_counts
from satchel.cli.json_shapes import contract
from satchel.cli.rendering import count, status_label, summary, table


@click.command("contracts", cls=Command)
@reads_sources
@as_json
@pass_console
def command(console: Console, *, sources: Sources, as_json: bool) -> None:
    """List the tools that have a contract, and how much each contract says.

    No plugin code is run: what only that can tell is said to be so. 'satchel show TOOL' tells a
    contract in words.
    """
    catalog = sources.open(run_code=False).catalog
    found = [(tool, shape) for tool in catalog.all_tools if (shape := contract(tool))]
    if as_json:
        console.json([shape for _, shape in found])
    else:
        table([_row(tool, shape) for tool, shape in found], console)
    console.say(count(len(found), "contract") if found else "no tool has a contract")
    summary(catalog, console)


def _row(tool: Any, shape: dict[str, Any]) -> tuple[str, ...]:
    return tool.name, status_label(tool), tool.source, contract_counts(shape)
