"""`satchel schema`: print the tool schemas for a model."""

import click

from satchel.cli.base_command import CatalogCommand, Sources, activates_groups
from satchel.cli.console import Console
from satchel.cli.rendering import summary
from satchel.reports.short_texts import count


@click.command("schema", cls=CatalogCommand)
@activates_groups
@click.option(
    "--dialect",
    default="openai",
    metavar="NAME",
    help="openai (the default), openai-strict, openai-responses, anthropic, gemini or mcp.",
)
@click.option(
    "--manifest",
    type=click.Choice(["toolkit", "satchel", "plugin", "mcp"]),
    help="Print the JSON Schema of toolkit.yaml, satchel.toml, plugin.json or mcp.json instead.",
)
def command(
    console: Console,
    *,
    groups: tuple[str, ...],
    dialect: str,
    manifest: str | None,
    sources: Sources,
    as_json: bool,  # noqa: ARG001 - schemas are always JSON; all views accept the option
) -> None:
    """Print the schemas of the tools in active groups, in the JSON format of a provider.

    Enabled plugins are imported, as in an application. With --manifest nothing is loaded: editors
    use that schema to check a file while you write it.
    """
    if manifest:
        from satchel.formats.manifest_schemas import MANIFEST_SCHEMAS

        console.json(MANIFEST_SCHEMAS[manifest]())
        return
    app = sources.open(run_code=True, servers=True)
    session = app.session()
    session.activate(*groups)
    schemas = session.schemas(dialect)
    console.json(schemas)
    console.say(f"{count(len(schemas), 'tool')} of {', '.join(session.active_groups)}")
    summary(app.catalog, console)
