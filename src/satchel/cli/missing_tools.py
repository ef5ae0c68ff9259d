"""Say why a tool is unknown: its server or plugin is held, left out, disabled, down or broken."""

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from satchel.catalog.name_holds import owner_key
from satchel.cli.base_command import is_said_once
from satchel.diagnostics import Diagnostic, Severity, Where, left_out_server, make_diagnostic
from satchel.errors import NotFoundError, SatchelError
from satchel.trust.name_owners import NameOwners

if TYPE_CHECKING:
    from satchel import Satchel
    from satchel.catalog.catalog import Catalog


def missing_tool(
    app: "Satchel", problem: NotFoundError, *, starts_servers: bool
) -> NotFoundError | SatchelError:
    """Return the error for an unknown tool, with what may be the reason that it is missing.

    The record of names says whose it was; else names of tools often begin with that of their
    server. A similar name is the better guess unless one of these is known, or a server is held.
    """
    start, owners = re.split("[_-]", problem.name)[0], NameOwners().of("tool", problem.name)
    reasons = list(_reasons(app.catalog, with_errors=starts_servers))
    for name, server in () if starts_servers else app.declared_mcp_servers.items():
        if name == start or _served(name, owners):
            reasons.append(server.start_problem() or _not_started(name, server.path))
    owned = [item for item in reasons if _served(_server_of(item), owners)][:1]
    if problem.near and not (owned or any(item.code == "code-held" for item in reasons)):
        return problem
    first = min(owned or reasons, key=lambda it: _server_of(it) != start, default=None)
    is_written = first is not None and first in app.catalog.diagnostics and is_said_once(first)
    return _with_reason(problem, first, is_written=is_written) if first else problem


def may_be_of_a_server(app: "Satchel", name: str) -> bool:
    """Return whether a tool may be a server's: none is known, or a server served its name first."""
    if (entry := app.catalog.tools.get(name)) is None:
        return bool(app.declared_mcp_servers)
    earlier = takewhile(lambda unit: unit != owner_key(entry), NameOwners().of("tool", name))
    return any(unit.startswith("mcp:") for unit in earlier)


def _not_started(name: str, path: str) -> Diagnostic:
    message = f"MCP server {name!r} is not started by this command"
    return make_diagnostic("mcp-not-started", Where(path), message, f"satchel mcp tools {name}")


def _reasons(catalog: "Catalog", *, with_errors: bool) -> Iterable[Diagnostic]:
    """Yield what may take tools away, the most likely reason first."""
    failed = (item for it in catalog.all_plugins if it.state == "failed" for item in it.diagnostics)
    items = (*failed, *catalog.diagnostics)
    yield from (it for it in items if it.code == "disabled" and it.message.startswith("plugin "))
    yield from (it for it in items if it.code == "code-held" and _servers_in(it))
    yield from (it for it in items if left_out_server(it) or it.code == "mcp-invalid")
    yield from (it for it in items if it.severity is Severity.ERROR and with_errors)


def _with_reason(problem: NotFoundError, item: Diagnostic, *, is_written: bool) -> SatchelError:
    servers = _servers_in(item)
    if item.code == "disabled":
        message = f"{problem.message}; {item.message}, so its tools are not known"
        return SatchelError(message, fix=item.fix)
    if item.code == "code-held" and is_written:
        return SatchelError(f"{problem.message}, but {servers} is held", fix="see above")
    why = f"the tools of {servers} are missing" if servers else "there are errors; the first"
    message = f"{problem.message}, but {why}: {item.message!r}"
    return SatchelError(message, where=str(item.where), fix=item.fix)


def _servers_in(item: Diagnostic) -> str:
    """Return the MCP server, or the servers of a file, that a diagnostic is about, or `""`."""
    servers = r"(MCP )?server \S+|what \S+ enables, configures and starts|plugin 'mcp:\S+"
    match = re.match(servers, item.message)
    return match[0] if match else ""


def _served(server: str, owners: Iterable[str]) -> bool:
    """Return whether a server was one of the owners of a name, wherever it was declared."""
    ending = f"//{server}"
    return any(unit.startswith("mcp:") and unit.endswith(ending) for unit in owners)


def _server_of(item: Diagnostic) -> str:
    return _servers_in(item).rpartition(" ")[2].strip("'").removeprefix("mcp:")
