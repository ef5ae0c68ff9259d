"""What `satchel serve` serves, what it does not, and the option that would serve it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import starmap
from typing import TYPE_CHECKING

from satchel.catalog.catalog_offers import active_offers
from satchel.cli.rendering import problem_lines
from satchel.configuration.selection import tool_filter
from satchel.diagnostics import Severity
from satchel.groups.group_activation import visible_skills
from satchel.lazy_dataclass import dataclass
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp_servers.server_addresses import is_nested
from satchel.mcp_servers.server_contributions import starting_servers
from satchel.names import BASIC_GROUP, SESSION_TOOLS
from satchel.reports.short_texts import count
from satchel.tools import McpPrompt

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.diagnostics import Diagnostic

LEFT_OUT = frozenset(
    {
        *("mcp-tool-held", "tool-name-held", "plugin-name-held", "skill-name-held", "code-held"),
        *("mcp-too-many-tools", "mcp-too-many-skills"),
        *("mcp-server-invalid", "mcp-invalid", "source-missing", "choices-unknown"),
    }
)
"""Diagnostics of what is not served that are no errors for other commands."""
_UNITS = ("tool", "skill", "prompt")
_MOST_LINES = 20
"""Groups that are named one by one."""


@dataclass(frozen=True, slots=True)
class ServedReport:
    """The lines about what is served."""

    served: str
    missing: tuple[str, ...]
    """What the operator named and is not served; `serve --strict` fails for it."""
    others: tuple[str, ...]
    """What is not served because the operator did not ask for it, and warnings."""


def served_report(
    catalog: "Catalog", declared: Collection[str], selection: ServedSelection
) -> ServedReport:
    """Compare what the operator named, and the declared MCP servers, with what is served."""
    problems = problems_in(catalog)
    missing = filter(_is_left_out, problems)
    return ServedReport(
        served=_served(catalog, selection),
        missing=(
            *_missing_names(catalog, selection),
            *_missing_servers(catalog, declared),
            # Each in full: another command may see another world later.
            *problem_lines(missing, LEFT_OUT),
        ),
        others=(
            *_other_groups(catalog, selection),
            *problem_lines(item for item in problems if not _is_left_out(item)),
        ),
    )


def _served(catalog: "Catalog", selection: ServedSelection) -> str:
    active = selection.active_in(catalog, can_switch=False)
    total = sum(_counts(catalog, selection).values(), Counter(tool=0, skill=0))
    sizes = [count(total[unit], unit) for unit in _UNITS if total[unit] or unit != "prompt"]
    line = f"serving {', '.join(sizes)} of {', '.join(sorted(active))}"
    switched = active - selection.active_in(catalog)
    if switched and selection.meta_tool:
        line += f"; clients that can switch groups activate {', '.join(sorted(switched))}"
    return line


def _missing_names(catalog: "Catalog", selection: ServedSelection) -> Iterator[str]:
    for name in sorted(selection.groups - catalog.groups.keys()):
        yield f"there is no group {name!r} yet"
    for name in sorted(selection.groups & catalog.groups.keys()):
        if missing := catalog.groups[name].missing:
            yield f"group {name!r} is unavailable: it requires {', '.join(missing)}"
    tools = [*((name,) for name in SESSION_TOOLS), *(t.selectors for t in catalog.tools.values())]
    for pattern in (*selection.enable, *selection.disable):
        if not any(starmap(tool_filter((pattern,), ()), tools)):
            yield f"no tool matches {pattern!r} yet"


def _missing_servers(catalog: "Catalog", declared: Collection[str]) -> Iterator[str]:
    """Yield the declared servers that are not connected and not known to be down."""
    if is_nested():
        if declared:
            yield (
                "the satchel that started this one has the same configuration, so this one starts "
                "no servers; SATCHEL_CONFIG_DIR gives it another"
            )
        return
    for name in starting_servers(catalog):
        yield f"MCP server {name!r} is still starting; it is served once it is up"


def _other_groups(catalog: "Catalog", selection: ServedSelection) -> Iterator[str]:
    lines = [*hidden_groups(catalog, selection).values()]
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        further = count(len(lines) - _MOST_LINES, "more group")
        yield f"not served: {further}; --group all serves them"


def hidden_groups(catalog: "Catalog", selection: ServedSelection) -> dict[str, str]:
    """Return the groups that clients without switching do not see, each with a line that says so.

    The line names the option that serves the group.
    """
    active = selection.active_in(catalog, can_switch=False)
    can_switch = selection.meta_tool and not selection.is_fixed
    whom = "to clients that cannot switch groups" if can_switch else "to any client"
    lines = {}
    for group in catalog.groups.values():
        skills = (_unit_of(catalog.skills[name]) for name in group.skills)
        members = _members(Counter(tool=len(group.tools)) + Counter(skills))
        if group.name in active or group.name == BASIC_GROUP or not members:
            continue
        off = " (active = false)" if group.is_off else ""
        lines[group.name] = (
            f"not served {whom}: group {group.name!r} with {members}{off}; "
            f"--group {group.name} serves it"
        )
    return lines


def served_by_source(catalog: "Catalog", selection: ServedSelection) -> dict[str, str]:
    """Return what each plugin and server serves, in words, to clients that cannot switch groups."""
    counts = _counts(catalog, selection)
    lines = {}
    for plugin in catalog.plugins.values():
        if members := _members(counts[plugin.name]):
            who = f"MCP server {plugin.unit!r}" if plugin.is_server else f"plugin {plugin.name!r}"
            lines[plugin.name] = f"{who} with {members}"
    return lines


def _counts(catalog: "Catalog", selection: ServedSelection) -> dict[str, Counter[str]]:
    """Return how many tools, skills and prompts of each source are served."""
    active = selection.active_in(catalog, can_switch=False)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    enables = selection.enables
    for tool in catalog.tools.values():
        is_served = enables(*tool.selectors) and not active.isdisjoint(tool.groups)
        counts[tool.source]["tool"] += is_served
    skills, _ = visible_skills(catalog, active)
    for skill in skills:
        if not skill.access.fills_arguments:  # else it is one of the prompts below
            counts[skill.source][_unit_of(skill)] += 1
    for plugin in catalog.plugins.values():
        offers = active_offers(plugin, active)
        counts[plugin.name]["prompt"] += sum(isinstance(offer, McpPrompt) for offer in offers)
    return counts


def _unit_of(skill: "SkillEntry") -> str:
    return "skill" if skill.is_for_model else "prompt"


def _members(counts: Counter[str]) -> str:
    return " and ".join(count(counts[unit], unit) for unit in _UNITS if counts[unit])


def _is_left_out(item: "Diagnostic") -> bool:
    """Return whether something is not served for this reason."""
    return item.severity is Severity.ERROR or item.code in LEFT_OUT


def problems_in(catalog: "Catalog") -> list["Diagnostic"]:
    """Return the errors and warnings of a catalog."""
    return [item for item in catalog.diagnostics if item.severity is not Severity.INFO]
