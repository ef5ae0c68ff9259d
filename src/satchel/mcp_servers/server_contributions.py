"""Convert what MCP servers offer to plugin contributions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from hashlib import blake2b
from shlex import quote
from typing import Any

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import Group, PluginContribution, Status, ToolContribution
from satchel.configuration.selection import tool_filter
from satchel.diagnostics import Diagnostic, Where, make_diagnostic, outage_text
from satchel.errors import DefinitionError, ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.list_reader import invalid_item
from satchel.mcp_servers.pin_store import PinVerdict, ToolDrift
from satchel.mcp_servers.remote_tool import RemoteTool
from satchel.mcp_servers.server_instructions import INSTRUCTIONS, changed_instructions, notes_of
from satchel.mcp_servers.server_offers import RemotePrompt, RemoteResource
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.server_pool import ServerHandle
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition
from satchel.mcp_servers.tool_naming import ToolNames, fit_tool_name, names_for
from satchel.names import near_misses
from satchel.sources.search_roots import Precedence
from satchel.text import one_line, shorten
from satchel.tools.empty_mapping import NOTHING

SOURCE = "mcp"
"""The source of a server's contribution; the server's name in the catalog is `mcp:NAME`."""

ALL = "*"
"""The key of presets for every tool of a server that has an argument of that name."""

_MAX_RENAMED = 10
"""Renamed tools that a diagnostic names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOffer:
    """A connected server and its current snapshot."""

    config: ServerConfig
    snapshot: ServerSnapshot
    handle: ServerHandle = field(compare=False, repr=False)
    """Calls it."""
    verdict: PinVerdict = field(default_factory=PinVerdict)
    """Which of its tools differ from their pins."""
    is_settled: bool = True
    """Whether it and all servers before it were connected or failed."""
    owned: frozenset[str] = frozenset()
    """Names that it served before any other that is here; a plugin cannot take them."""

    @property
    def source(self) -> str:
        """Return the server's name in the catalog."""
        return f"{SOURCE}:{self.config.name}"

    @property
    def unit(self) -> str:
        """Return how the record of names calls it: whatever it is called here."""
        return f"{SOURCE}:{self.config.place}"

    @property
    def wanted(self) -> tuple[ToolDefinition, ...]:
        """Return the enabled tools of the last listing."""
        wants = self.config.wants
        return tuple(tool for tool in self.snapshot.tools if wants(tool.name))

    @property
    def wanted_names(self) -> dict[str, str]:
        """Return the names that its tools should have here."""
        return {tool.name: self.config.options.name_of(tool.name) for tool in self.wanted}

    @property
    def fitted_names(self) -> tuple[str, ...]:
        """Return these names as model APIs accept them."""
        return tuple(map(fit_tool_name, self.wanted_names.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContribution:
    """The contribution of one server, and the offer it was built from."""

    offered: ServerOffer
    naming: ToolNames
    contribution: PluginContribution
    reserved_names: frozenset[str] = frozenset()
    """Names of its tools, now or earlier, that tools of other servers would like to have."""


def server_contributions(
    offered: Iterable[ServerOffer],
    taken: Mapping[str, str],
    before: Mapping[str, ServerContribution],
    rank: int,
    owners_here: Mapping[str, str] = NOTHING,
) -> dict[str, ServerContribution]:
    """Return the contribution of each server, by name.

    `taken` has the owner of each other tool, by name, and `owners_here` the server that has a name
    already. Unchanged contributions are taken from `before`. A server that is down keeps the names
    of its tools, so that other tools are not renamed.
    """
    offered = tuple(offered)
    owned = frozenset[str]().union(*(item.owned for item in offered))
    taken = {
        name: owner
        for name, owner in taken.items()
        if name not in owned or not owner.startswith("plugin ")
    }
    tools = {item.config.name: item.wanted_names for item in offered}
    serials = {item.config.serial for item in offered}
    reserved_names = {
        name: previous.reserved_names
        for name, previous in before.items()
        if previous.offered.config.serial in serials
    }
    named = names_for(tools, taken, reserved_names, owners_here)
    contributions = {}
    for order, item in enumerate(offered):
        name = item.config.name
        previous, naming = before.get(name), named[name]
        other_names = {
            fit_tool_name(tool)
            for other, own in tools.items()
            if other != name
            for tool in own.values()
        }
        reserved = other_names & {*reserved_names.get(name, ()), *naming.names.values()}
        if previous is not None and _is_unchanged(previous, item, naming):
            contribution = previous.contribution
        else:
            contribution = _contribution(item, naming, (rank, order))
        contributions[name] = ServerContribution(
            offered=item,
            naming=naming,
            contribution=contribution,
            reserved_names=frozenset(reserved),
        )
    return contributions


def _is_unchanged(previous: ServerContribution, now: ServerOffer, naming: ToolNames) -> bool:
    before = previous.offered
    return (
        before.config is now.config
        and before.snapshot is now.snapshot
        and previous.naming == naming
        and before.verdict.drift == now.verdict.drift
        and before.verdict.problem == now.verdict.problem
    )


def _contribution(
    item: ServerOffer, naming: ToolNames, rank: tuple[int, int]
) -> PluginContribution:
    config, snapshot = item.config, item.snapshot
    tools: list[ToolContribution] = []
    where, problems = Where(str(config.server)), [*snapshot.diagnostics]
    for definition in item.wanted if snapshot.is_up else ():
        try:
            tools.append(_tool(item, definition, naming.names[definition.name]))
        except DefinitionError as problem:
            problems.append(invalid_item("tool", where, definition.name, problem.message))
    # Named in each: several servers are often started by one command, such as npx.
    diagnostics = [
        replace(item, message=f"MCP server {config.name!r}: {item.message}") for item in problems
    ]
    if snapshot.is_up:
        diagnostics += _renamed_diagnostics(item, naming)
        diagnostics += _unknown_choices(item)
    if item.verdict.problem is not None:
        diagnostics.append(item.verdict.problem)
    notes, drift = notes_of(config.name, snapshot), item.verdict.drift.get(INSTRUCTIONS)
    if drift is not None:
        is_held = config.pin == "hold"
        diagnostics.append(changed_instructions(config.name, where, drift, is_held=is_held))
        notes = "" if is_held else notes
    if snapshot.outage is not None:
        diagnostics = [snapshot.outage]
    outage = snapshot.outage
    is_down = f" It {outage_text(outage.code)}, so they cannot be called now." if outage else ""
    own = Group(
        name=config.name,
        description=f"Tools of the MCP server {config.name}.{is_down}",
        notes=notes,
        active=bool(config.options.active),
        is_off=config.options.active is False,
    )
    return PluginContribution(
        name=f"{SOURCE}:{config.name}",
        source=SOURCE,
        is_server=True,
        scope=Precedence.PLUGIN,
        path=str(config.server),
        unit=config.name,
        rank=rank,
        digest=_digest(tools, notes, snapshot),
        version=snapshot.version,
        description=f"The MCP server {config.name}.",
        groups=() if config.groups else (own,),
        notes=dict.fromkeys(config.groups, notes) if notes else {},
        tools=tuple(tools),
        unusable=() if snapshot.is_up else tuple(_known_tools(item, naming.names)),
        keeps_groups=True,
        offers=(
            *(RemotePrompt(prompt, item) for prompt in snapshot.prompts),
            *(RemoteResource(resource, item) for resource in snapshot.resources),
        )
        if snapshot.is_up
        else (),
        diagnostics=tuple(diagnostics),
        # Tools that cannot be called are not served, so there is no last good version.
        state=Status.OK if snapshot.is_up else Status.REVOKED,
    )


def _known_tools(item: ServerOffer, names: Mapping[str, str]) -> Iterator[ToolContribution]:
    """Yield the tools that a server had when it was last connected, which cannot be called now."""
    for definition in item.wanted:
        yield ToolContribution(
            name=names[definition.name],
            description=item.config.options.descriptions.get(
                definition.name, definition.description
            ),
            path=str(item.config.server),
            version=f"{item.config.serial}.{definition.digest}",
            groups=item.config.groups,
            state=Status.REVOKED,
        )


def _tool(item: ServerOffer, definition: ToolDefinition, name: str) -> ToolContribution:
    config, drift = item.config, item.verdict.drift.get(definition.name)
    tool = RemoteTool(
        definition,
        item.handle.call,
        name=name,
        presets=_presets(config, definition),
        hidden=config.presets.get(ALL, NOTHING),
        timeout=config.timeout,
        drift=drift,
        options=config.options,
    )
    return ToolContribution(
        name=name,
        description=tool.description,
        path=str(config.server),
        version=f"{config.serial}.{definition.digest}",
        groups=config.groups,
        tool=tool,
        state=Status.HELD if drift is not None and config.pin == "hold" else Status.OK,
        diagnostics=(_drift_diagnostic(item, definition, drift),) if drift else (),
    )


def _drift_diagnostic(
    item: ServerOffer, definition: ToolDefinition, drift: ToolDrift
) -> Diagnostic:
    config = item.config
    shown = shorten(one_line(definition.name), 100)
    is_held = config.pin == "hold"
    return make_diagnostic(
        "mcp-tool-held" if is_held else "mcp-tool-changed",
        Where(str(config.server)),
        f"tool {shown!r} of MCP server {config.name!r} {drift.why}"
        + ("; it is held until it is approved" if is_held else ""),
        _approval(config.name, definition.name, drift),
    )


def _approval(server: str, tool: str, drift: ToolDrift) -> str:
    """Return the command that approves a tool as it is now."""
    shown = quote(shorten(one_line(tool), 100))
    return f"satchel mcp approve {server} {shown} --digest {drift.digest}"


def held_error(server: str, tool: str, drift: ToolDrift) -> ToolError:
    """Return the error for a call of a tool that is held, as a session words it."""
    return ToolError(
        f"Tool {shorten(one_line(tool), 100)!r} cannot be used now: it waits for approval. Ask "
        f"the user to run: {_approval(server, tool, drift)}. Continue without it if you can."
    )


def _unknown_choices(item: ServerOffer) -> Iterator[Diagnostic]:
    """Report each tool and argument that only the settings of a server name."""
    config, options = item.config, item.config.options
    arguments = {tool.name: {*_properties(tool)} for tool in item.snapshot.tools}
    of_arguments = {"presets": config.presets, "rename-arguments": options.rename_arguments}
    chosen = {"enable": config.enable or (), "disable": config.disable, **of_arguments}
    chosen |= {"rename": options.rename, "descriptions": options.descriptions}
    for key, names in chosen.items():
        for name in names:
            is_pattern = key in {"enable", "disable"}
            matches = tool_filter((name,), ()) if is_pattern else name.__eq__
            if not any(map(matches, arguments)) and (key, name) != ("presets", ALL):
                why = f"{key} names {name!r}, which matches none of its tools"
                yield _unknown_choice(config, why, name, arguments)
    arguments[ALL] = {name for names in arguments.values() for name in names}
    for key, by_tool in of_arguments.items():
        for tool in filter(arguments.__contains__, by_tool):
            who = "none of its tools has" if tool == ALL else f"its tool {tool!r} does not have"
            for name in by_tool[tool]:
                if name not in arguments[tool]:
                    why = f"{key} name the argument {name!r}, which {who}"
                    yield _unknown_choice(config, why, name, arguments[tool])


def _unknown_choice(
    config: ServerConfig, why: str, name: str, candidates: Iterable[str]
) -> Diagnostic:
    near = [shorten(one_line(item), 100) for item in near_misses(name, candidates)]
    return make_diagnostic(
        "mcp-choice-unknown",
        Where(str(config.server)),
        f"MCP server {config.name!r}: {why}",
        f"did you mean {', '.join(near)}?" if near else "see 'satchel mcp tools'",
    )


def _properties(definition: ToolDefinition) -> Mapping[str, Any]:
    properties = definition.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else NOTHING


def _presets(config: ServerConfig, definition: ToolDefinition) -> dict[str, Any]:
    properties, for_all = _properties(definition), config.presets.get(ALL, NOTHING)
    for_all = {name: value for name, value in for_all.items() if name in properties}
    return {**for_all, **config.presets.get(definition.name, NOTHING)}


def _digest(tools: Iterable[ToolContribution], notes: str, snapshot: ServerSnapshot) -> str:
    offers = repr((snapshot.prompts, snapshot.resources)) if snapshot.is_up else ""
    text = "\n".join([*(f"{tool.name} {tool.version}" for tool in tools), notes, offers])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _renamed_diagnostics(item: ServerOffer, naming: ToolNames) -> Iterator[Diagnostic]:
    """Report all tools of a server that have another name than they should, in one diagnostic."""
    config = item.config
    changes = [
        f"{shorten(one_line(tool), 100)!r} is called {naming.names[tool]!r} here "
        + (f"because {owner} has that name" if owner else "because model APIs reject its name")
        for tool, owner in sorted(naming.owners.items())
    ]
    if not changes:
        return
    further = len(changes) - _MAX_RENAMED
    changes = changes[:_MAX_RENAMED] + ([f"and {further:,} more"] if further > 0 else [])
    yield make_diagnostic(
        "mcp-tool-renamed",
        Where(str(config.server)),
        f"tools of MCP server {config.name!r}: {'; '.join(changes)}",
        f"choose names with rename or prefix in [mcp.{config.name}]",
    )


def starting_servers(catalog: Catalog) -> list[str]:
    """Return the names of the MCP servers that are not connected yet."""
    return [
        plugin.name.removeprefix(f"{SOURCE}:")
        for plugin in catalog.all_plugins
        if any(item.code == "mcp-server-starting" for item in plugin.diagnostics)
    ]
