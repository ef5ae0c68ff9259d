"""Select the groups and tools that a server shows."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from satchel.catalog.catalog import Catalog
from satchel.configuration.selection import tool_filter
from satchel.groups.group_activation import Activation, visible_skills
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSelection:
    """What a server shows; by default the groups that are active in a new session."""

    groups: frozenset[str] = frozenset()
    """Further groups that are active."""
    every_group: bool = False
    named: frozenset[str] = frozenset()
    """Plugins, or sources of plugins, whose groups clients see that cannot switch groups."""
    is_fixed: bool = False
    """Whether only `basic` and `groups` are shown, and clients cannot activate others."""
    enable: tuple[str, ...] = ()
    """Patterns of the tools to serve; all tools if empty."""
    disable: tuple[str, ...] = ()
    """Patterns of tools that are not served."""
    meta_tool: bool = True
    """Whether a client can switch groups, where its protocol lets tools differ by connection."""
    skill_tools: bool = True
    """Whether `load_skill` and `read_skill_file` are served."""

    def only(self, groups: Iterable[str]) -> "ServedSelection":
        """Return a fixed selection of these groups; a fixed one is only narrowed."""
        group_names = frozenset(groups)
        if self.is_fixed:
            group_names &= self.groups
        return replace(self, groups=group_names, every_group=False, is_fixed=True)

    @property
    def enables(self) -> Callable[..., bool]:
        """Return whether the tool of some names is served if its group is active."""
        return tool_filter(self.enable or None, self.disable)

    def active_in(self, catalog: Catalog, *, can_switch: bool = True) -> frozenset[str]:
        """Return the groups that are active at the start.

        A client that cannot switch groups also sees those of the plugins and servers in `named`.
        """
        active = frozenset(
            group.name
            for group in catalog.groups.values()
            if group.name == BASIC_GROUP
            or (group.is_available and (self.every_group or group.name in self.groups))
        )
        if not self.is_fixed:
            initial = Activation()
            active |= {n for n, group in catalog.groups.items() if initial.is_active(group)}
            active |= frozenset() if can_switch else self._named_in(catalog)
        return active

    def _named_in(self, catalog: Catalog) -> frozenset[str]:
        """Return the groups of the plugins and servers that the operator named."""
        if not self.named:
            return frozenset()
        owners = {
            plugin.name
            for plugin in catalog.all_plugins
            if plugin.name in self.named or plugin.source in self.named
        }
        of_tools = {
            name for tool in catalog.tools.values() if tool.source in owners for name in tool.groups
        }
        return frozenset(
            group.name
            for group in catalog.groups.values()
            if (group.source in owners or group.name in of_tools)
            and group.is_available
            and not group.is_off
        )


def with_those_of_skills(catalog: Catalog, active: frozenset[str]) -> frozenset[str]:
    """Add the groups that visible skills need; for clients that cannot switch groups."""
    while True:
        asked = {
            name
            for skill in visible_skills(catalog, active)[1]
            for word in (skill.manifest.groups if skill.manifest else ())
            for name in _groups_called(word, catalog)
        }
        if asked <= active:
            return active
        active |= asked


def _groups_called(word: str, catalog: Catalog) -> list[str]:
    """Return the available group that a skill names, directly or by one of its tools."""
    tool = catalog.tools.get(word)
    names = (word,) if word in catalog.groups else tool.groups if tool else ()
    usable = [n for n in names if n in catalog.groups and catalog.groups[n].is_available]
    return usable[:1]
