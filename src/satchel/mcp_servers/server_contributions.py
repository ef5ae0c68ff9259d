"""What remote servers offer, as parts of the catalog."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from shlex import quote
from typing import Any, Literal

from satchel.catalog import Group, PluginContribution, Status, ToolContribution
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.mcp_servers.pin_store import PinVerdict, ServerOrigin, ToolDrift
from satchel.mcp_servers.remote_tool import BeginCall, RemoteTool
from satchel.mcp_servers.resource_reader import BeginRead
from satchel.mcp_servers.server_addresses import RemoteServer
from satchel.mcp_servers.server_supervisor import ServerSnapshot
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.mcp_servers.tool_naming import fit_tool_name, names_for
from satchel.names import NamePatterns, fits, near_misses
from satchel.sources import Precedence
from satchel.text import one_line, shorten
from satchel.tools.empty_mapping import NOTHING

SOURCE = "mcp"
"""The source of all that servers bring; a server is known as `mcp:NAME`."""

ALL = "*"
"""Stands for every tool of a server that takes an argument of that name."""

Pin = Literal["hold", "warn", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """A server as somebody wants it carried."""

    name: str
    server: RemoteServer
    serial: str
    """Differs from that of every other server, also from one that had the name before."""
    groups: tuple[str, ...] = ()
    """Where its tools belong; without any they have a group of the server's name."""
    enable: tuple[str, ...] | None = None
    """The tools that are wanted, or patterns of them; `None` for all."""
    disable: tuple[str, ...] = ()
    presets: Mapping[str, Mapping[str, Any]] = field(default=NOTHING, repr=False, hash=False)
    timeout: float | None = None
    pin: Pin = "hold"
    stateless: bool = False
    removed: tuple[str, ...] = ()
    """Tools that the host removed later on."""
    origin: ServerOrigin = field(default_factory=ServerOrigin)

    def wants(self, tool: str) -> bool:
        """Tell whether a tool is wanted."""
        return tool not in self.removed and NamePatterns(self.enable, self.disable).lets(tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOffer:
    """A server that is carried, what it offers at the moment, and how its tools are called."""

    carried: ServerConfig
    offer: ServerSnapshot
    begin: BeginCall
    verdict: PinVerdict = field(default_factory=PinVerdict)
    """What of it is not as it was first seen."""
    read: BeginRead | None = None
    """How files of its skills are read."""

    @property
    def source(self) -> str:
        """Return what the server is known as in the catalog."""
        return f"{SOURCE}:{self.carried.name}"

    @property
    def wanted(self) -> tuple[ToolDefinition, ...]:
        """Return the tools that are offered, or were last, and are wanted."""
        return tuple(tool for tool in self.offer.listing.tools if self.carried.wants(tool.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContribution:
    """The part of the catalog that was made of a server, and of what."""

    offered: ServerOffer
    names: Mapping[str, str]
    supply: PluginContribution
    given: frozenset[str] = frozenset()
    """Names that its tools have here, or had, and that others may want."""


def server_contributions(
    offered: Iterable[ServerOffer],
    taken: Iterable[str],
    before: Mapping[str, ServerContribution],
    rank: int,
) -> dict[str, ServerContribution]:
    """Return the part of the catalog that each server brings, by name.

    `taken` are the names of all other tools. What did not change is that of `before`, and a
    server that is down keeps its names, so that nobody else's change with it.
    """
    offered = tuple(offered)
    tools = {item.carried.name: [tool.name for tool in item.wanted] for item in offered}
    serials = {item.carried.serial for item in offered}
    given = {n: made.given for n, made in before.items() if made.offered.carried.serial in serials}
    names = names_for(tools.items(), taken, given)
    found = {}
    for order, item in enumerate(offered):
        name = item.carried.name
        known = before.get(name)
        others = {
            fit_tool_name(tool) for other, own in tools.items() if other != name for tool in own
        }
        had = others & {*given.get(name, ()), *names[name].values()}
        if known is not None and _is_same(known, item, names[name]):
            supply = known.supply
        else:
            supply = _supply(item, names[name], (rank, order))
        found[name] = ServerContribution(
            offered=item, names=names[name], supply=supply, given=frozenset(had)
        )
    return found


def _is_same(known: ServerContribution, now: ServerOffer, names: Mapping[str, str]) -> bool:
    before = known.offered
    is_same = before.carried is now.carried and before.offer is now.offer
    odd = (now.verdict.odd, now.verdict.problem)
    return is_same and known.names == names and (before.verdict.odd, before.verdict.problem) == odd


def _supply(
    item: ServerOffer, names: Mapping[str, str], rank: tuple[int, int]
) -> PluginContribution:
    carried, offer = item.carried, item.offer
    tools: list[ToolContribution] = []
    problems: list[Diagnostic] = [*offer.listing.diagnostics]
    for definition in item.wanted if offer.is_up else ():
        name = names[definition.name]
        try:
            tools.append(_tool(item, definition, name))
        except DefinitionError as problem:
            problems.append(_unusable(item, definition, problem))
            continue
        if name != definition.name:
            problems.append(_renamed(item, definition, name))
    if offer.is_up:
        problems += _unmatched(item)
    if item.verdict.problem is not None:
        problems.append(item.verdict.problem)
    if offer.trouble is not None:
        problems = [offer.trouble]
    own = Group(name=carried.name, description=f"Tools of the MCP server {carried.name}.")
    return PluginContribution(
        name=f"{SOURCE}:{carried.name}",
        source=SOURCE,
        scope=Precedence.PLUGIN,
        path=str(carried.server),
        unit=carried.name,
        rank=rank,
        digest=_digest(tools),
        version=offer.version,
        description=f"The MCP server {carried.name}.",
        groups=() if carried.groups else (own,),
        tools=tuple(tools),
        diagnostics=tuple(problems),
        # What cannot be called must not be shown, so no last good version is served.
        state=Status.OK if offer.is_up else Status.REVOKED,
    )


def _tool(item: ServerOffer, definition: ToolDefinition, name: str) -> ToolContribution:
    carried, odd = item.carried, item.verdict.odd.get(definition.name)
    tool = RemoteTool(
        definition,
        item.begin,
        name=name,
        presets=_presets(carried, definition),
        hidden=carried.presets.get(ALL, NOTHING),
        timeout=carried.timeout,
        odd=odd,
    )
    return ToolContribution(
        name=name,
        description=tool.description,
        path=str(carried.server),
        version=f"{carried.serial}.{definition.digest}",
        groups=carried.groups,
        tool=tool,
        state=Status.HELD if odd is not None and carried.pin == "hold" else Status.OK,
        diagnostics=(_odd(item, definition, odd),) if odd else (),
    )


def _odd(item: ServerOffer, definition: ToolDefinition, odd: ToolDrift) -> Diagnostic:
    carried = item.carried
    shown = shorten(one_line(definition.name), 100)
    is_held = carried.pin == "hold"
    return make_diagnostic(
        "mcp-tool-held" if is_held else "mcp-tool-changed",
        Where(str(carried.server)),
        f"tool {shown!r} of MCP server {carried.name!r} {odd.why}"
        + ("; it is held until it is approved" if is_held else ""),
        f"satchel mcp approve {carried.name} {quote(shown)} --digest {odd.digest}",
    )


def _unmatched(item: ServerOffer) -> Iterator[Diagnostic]:
    """Tell of each choice that is for no tool: it may have been mistyped."""
    carried, tools = item.carried, item.offer.listing.tools
    names = {tool.name for tool in tools}
    chosen = {"enable": carried.enable or (), "disable": carried.disable}
    chosen["presets"] = tuple(name for name in carried.presets if name != ALL)
    for what, given in chosen.items():
        for name in given:
            found = name in names if what == "presets" else any(fits(n, (name,)) for n in names)
            if not found:
                yield _unknown(
                    carried, f"{what} names {name!r}, which is no tool of it", name, names
                )
    taken = {tool.name: {*_properties(tool)} for tool in tools}
    taken[ALL] = {name for names in taken.values() for name in names}
    for tool, values in carried.presets.items():
        who = "no tool of it takes" if tool == ALL else f"its tool {tool!r} does not take"
        for name in values:
            if tool in taken and name not in taken[tool]:
                why = f"presets name the argument {name!r}, which {who}"
                yield _unknown(carried, why, name, taken[tool])


def _unknown(carried: ServerConfig, why: str, name: str, known: Iterable[str]) -> Diagnostic:
    near = [shorten(one_line(item), 100) for item in near_misses(name, known)]
    return make_diagnostic(
        "mcp-choice-unknown",
        Where(str(carried.server)),
        f"for MCP server {carried.name!r} {why}",
        f"did you mean {', '.join(near)}?" if near else "see 'satchel mcp tools'",
    )


def _properties(definition: ToolDefinition) -> Mapping[str, Any]:
    found = definition.parameters.get("properties")
    return found if isinstance(found, Mapping) else NOTHING


def _presets(carried: ServerConfig, definition: ToolDefinition) -> dict[str, Any]:
    takes, given = _properties(definition), carried.presets.get(ALL, NOTHING)
    for_all = {name: value for name, value in given.items() if name in takes}
    return {**for_all, **carried.presets.get(definition.name, NOTHING)}


def _digest(tools: Iterable[ToolContribution]) -> str:
    text = "\n".join(f"{tool.name} {tool.version}" for tool in tools)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _renamed(item: ServerOffer, definition: ToolDefinition, name: str) -> Diagnostic:
    return make_diagnostic(
        "mcp-tool-renamed",
        Where(str(item.carried.server)),
        f"tool {shorten(one_line(definition.name), 100)!r} of MCP server {item.carried.name!r} "
        f"is called {name!r} here: its own name is taken, or none that providers accept",
    )


def _unusable(
    item: ServerOffer, definition: ToolDefinition, problem: DefinitionError
) -> Diagnostic:
    return make_diagnostic(
        "mcp-tool-invalid",
        Where(str(item.carried.server)),
        f"tool {shorten(one_line(definition.name), 100)!r} of MCP server {item.carried.name!r} "
        f"is left out: {shorten(one_line(problem.message), 300)}",
        "tell whoever runs the server",
    )
