"""What the host adds in code: tools, groups, skills and contracts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from satchel.catalog.catalog_entries import HOST, Group, PluginContribution, ToolContribution
from satchel.diagnostics import Severity
from satchel.errors import ConflictError, DefinitionError, NotFoundError
from satchel.names import BASIC_GROUP, group_names, require_known
from satchel.plugins.bound_plugin import HostContract
from satchel.sources.search_roots import (
    Precedence,
    RootKind,
    SearchRoot,
    distinct_roots,
    search_root,
)
from satchel.tool_registration import host_contribution, make_tool, registered, with_unique_name

if TYPE_CHECKING:
    import os

    from satchel.contracts.tool_contract import ToolContract
    from satchel.providers.skill import Skill
    from satchel.reconciler import Reconciler
    from satchel.tool_registration import OnConflict
    from satchel.tools import Tool, ToolOptions

GroupMember = TypeVar("GroupMember", ToolContribution, SearchRoot)


class HostRegistrations:
    """Adds and removes what the host gives in code; each change is loaded at once."""

    def __init__(self, reconciler: Reconciler) -> None:
        self._reconciler = reconciler
        self._serial = itertools.count(1)

    @property
    def _host(self) -> PluginContribution:
        return self._reconciler.config.host

    def _new_version(self) -> str:
        return f"registration {next(self._serial)}"

    def require_groups(self, names: Iterable[str]) -> None:
        """Raise `NotFoundError` if there is no such group."""
        for name in names:
            self._reconciler.catalog.group(name)

    # ---- groups ---------------------------------------------------------------------------

    def add_group(self, group: Group) -> None:
        """Add a group. Raises `ConflictError` if the name is taken."""
        with self._reconciler.lock:
            for taken in self._reconciler.catalog.all_groups:
                # The user may have disabled the host's group of that name.
                if taken.name == group.name and (taken.is_served or taken.source == HOST):
                    raise ConflictError(
                        f"group {group.name!r} already exists; its source is {taken.source!r}"
                    )
            self._reconciler.update_host(groups=(*self._host.groups, group))

    def remove_group(self, name: str) -> None:
        """Remove a group, with the tools and skills that are in no other group."""
        if name == BASIC_GROUP:
            raise ConflictError(f"group {BASIC_GROUP!r} cannot be removed")
        with self._reconciler.lock:
            host = self._host
            require_known("group", name, [group.name for group in host.groups])
            host = replace(
                host,
                groups=tuple(group for group in host.groups if group.name != name),
                tools=_without_group(name, host.tools),
            )
            roots = _without_group(name, self._reconciler.config.roots)
            self._reconciler.update(roots=roots, host=host)

    # ---- tools ----------------------------------------------------------------------------

    def add_tool(
        self,
        tool: Tool | Callable[..., Any],
        *,
        on_conflict: OnConflict = "raise",
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Add a tool; return the one that has the name now."""
        from satchel.tools.tool_bounds import bounded_definition  # lazy: needed only with tools

        group = options.pop("group", None)
        new_tool = make_tool(tool, **options)
        with self._reconciler.lock:
            new_tool = self._with_state(new_tool)
            bounded_definition(new_tool, self._reconciler.settings.limits)
            groups = group_names(group or new_tool.group)
            self.require_groups(groups)
            own, served = self._host.tools, self._reconciler.catalog.tools
            new_tool = with_unique_name(new_tool, own, served, on_conflict)
            name = new_tool.name
            if on_conflict == "skip":
                if (existing := registered(own, name)) is not None:
                    return existing
                if (entry := served.get(name)) is not None:
                    return entry.tool or new_tool
            contribution = host_contribution(new_tool, groups, self._new_version())
            others = (item for item in own if item.name != name)
            self._reconciler.update_host(tools=(*others, contribution))
        return new_tool

    def add_tools(
        self, tools: Iterable[Tool | Callable[..., Any]], options: Mapping[str, Any]
    ) -> tuple[Tool, ...]:
        """Add several tools at once; none if one of them cannot be added."""
        with self._reconciler.batch():
            return tuple(self.add_tool(tool, **options) for tool in tools)

    def _with_state(self, tool: Tool) -> Tool:
        from satchel.plugins.config_binding import bind_state  # lazy: needed only with tools
        from satchel.tools import FunctionTool

        if not isinstance(tool, FunctionTool) or not tool.state:
            return tool
        reconciler = self._reconciler
        config = reconciler.config.configuration(HOST, (), reconciler.cache.selection)
        fix = f'pass presets={{...}}, or Satchel(config={{"{HOST}": {{...}}}})'
        return bind_state(tool, config.values, fix)

    def remove_tool(self, name: str) -> None:
        """Remove a tool of the host, or a tool of an MCP server."""
        with self._reconciler.lock:
            if self._remove_from_server(name):
                return
            host = self._host
            require_known("tool", name, [contribution.name for contribution in host.tools])
            tools = tuple(item for item in host.tools if item.name != name)
            # Its model is removed, too: the next tool of that name is another one.
            models = _without(self._reconciler.config.models, f"{HOST}:{name}")
            self._reconciler.update(models=models, host=replace(host, tools=tools))

    def _remove_from_server(self, name: str) -> bool:
        """Remove a tool of an MCP server; return whether it was one."""
        servers = self._reconciler.servers
        if servers is None or registered(self._host.tools, name) is not None:
            return False
        entry = self._reconciler.catalog.tools.get(name)
        if entry is None or entry.tool is None or not entry.tool.is_remote:
            return False
        is_removed = servers.remove_tool(entry.source, entry.tool.own_name)
        self._reconciler.refresh_in_background()
        return is_removed

    def add_scoped(self, kind: Literal["middleware", "runners"], item: Any) -> Callable[[], None]:
        """Add middleware or a runner for some tools; return a function that removes it."""
        lock, shared = self._reconciler.lock, self._reconciler.shared
        with lock:
            items = (*getattr(shared.extensions, kind), item)
            shared.extensions = shared.extensions._replace(**{kind: items})

        def undo() -> None:
            with lock:
                items = getattr(shared.extensions, kind)
                rest = tuple(other for other in items if other is not item)
                shared.extensions = shared.extensions._replace(**{kind: rest})

        return undo

    # ---- contracts and models -------------------------------------------------------------

    def add_contracts(self, contracts: Iterable[ToolContract]) -> None:
        """Bind each contract to the tool of its name; none if one of them does not fit."""
        with self._reconciler.lock:
            added = dict(self._reconciler.config.contracts)
            for contract in contracts:
                self._require_fitting(contract, added)
                added[contract.name] = HostContract(contract, self._new_version())
            self._reconciler.update(contracts=added)

    def _require_fitting(self, contract: ToolContract, added: Mapping[str, HostContract]) -> None:
        from satchel.contracts.contract_binding import bind_contract  # lazy: only with contracts
        from satchel.contracts.tool_contract import ToolContract

        if not isinstance(contract, ToolContract):
            raise DefinitionError(
                f"{type(contract).__name__} is not a contract", fix="pass a ToolContract"
            )
        if contract.name in added:
            raise ConflictError(
                f"the host already registered a contract for the tool {contract.name!r}",
                fix="call remove_contract first",
            )
        entry = self._reconciler.catalog.tools.get(contract.name)
        if entry is not None and entry.tool is not None:
            bind_contract(entry.tool, contract)

    def remove_contract(self, name: str) -> None:
        """Remove a contract of the host; the tool's own contract applies again."""
        with self._reconciler.lock:
            contracts = self._reconciler.config.contracts
            require_known("contract", name, contracts)
            self._reconciler.update(contracts=_without(contracts, name))

    def set_extended_model(self, tool: str | Tool, model: Any) -> None:
        """Add the fields of a pydantic model to the arguments of a tool; `None` removes them."""
        from satchel.tools import set_extended_model  # lazy: needed only with tools

        with self._reconciler.lock:
            address, served = self._find_extensible(tool if isinstance(tool, str) else tool.name)
            models = _without(self._reconciler.config.models, address)
            if model is not None:
                _require_model(model)
                if served is not None:
                    set_extended_model(served, model)
                models[address] = model
            self._reconciler.update(models=models)

    def _find_extensible(self, name: str) -> tuple[str, Tool | None]:
        """Return the address of a tool, and the tool.

        The tool is `None` if its current model clashes with it, so that it is not served.
        """
        try:
            entry = self._reconciler.catalog.tool(name)
        except NotFoundError:
            for address in self._reconciler.config.models:
                if name in {address, address.rpartition(":")[2]}:
                    return address, None
            raise
        return entry.address, entry.tool

    # ---- skills ---------------------------------------------------------------------------

    def add_skill(
        self, skill: str | os.PathLike[str] | Skill, group: str | Iterable[str] | None
    ) -> None:
        """Add a skill folder, a folder of them, or a skill that is given in code."""
        from satchel.providers.skill import Skill  # lazy: needed only with skills

        with self._reconciler.lock:
            groups = group_names(group)
            if isinstance(skill, Skill):
                groups = (*skill.groups, *groups)
            self.require_groups(groups)
            if isinstance(skill, Skill):
                self._add_given_skill(replace(skill, groups=groups))
                return
            added = replace(search_root(skill, RootKind.SKILLS), groups=groups)
            others = [
                item
                for item in self._reconciler.config.roots
                if (item.path, item.holds) != (added.path, added.holds) or not groups
            ]
            self._reconciler.update(roots=distinct_roots((*others, added)))

    def _add_given_skill(self, skill: Skill) -> None:
        from satchel.providers.skill import find_skill  # lazy: needed only with skills in code

        limits = self._reconciler.settings.limits
        finding = find_skill(skill, HOST, Precedence.EXPLICIT, limits)
        if finding.manifest is None:
            problem = next(item for item in finding.diagnostics if item.severity == Severity.ERROR)
            raise DefinitionError(f"skill {skill.name!r}: {problem.message}", fix=problem.fix)
        registered = self._reconciler.config.host_skills
        if any(item.path == finding.path for item in registered):
            raise ConflictError(
                f"a skill {skill.name!r} was registered already", fix="call remove_skill first"
            )
        self._reconciler.update(host_skills=(*registered, finding))

    def remove_skill(self, name: str) -> None:
        """Remove a skill that was given in code, or whose own folder was given or registered."""
        with self._reconciler.lock:
            config, catalog = self._reconciler.config, self._reconciler.catalog
            entry = catalog.skill(name)
            remaining = tuple(item for item in config.host_skills if item.path != entry.path)
            if len(remaining) < len(config.host_skills):
                self._reconciler.update(host_skills=remaining)
                return
            if entry.access.origin:
                raise ConflictError(
                    f"skill {name!r} comes from {entry.access.origin}",
                    fix=f'disable it with disable = ["{entry.address}"], or remove its source',
                )
            # A shadowed skill may be meant: only a skill's own folder can be removed.
            paths = {item.path for item in catalog.all_skills if item.name == entry.name}
            roots = tuple(
                item
                for item in config.roots
                if item.holds is not RootKind.SKILLS or item.path not in paths
            )
            if len(roots) == len(config.roots):
                raise ConflictError(
                    f"skill {name!r} was found in {entry.source!r}",
                    fix="delete its folder there, or remove that folder from the sources",
                )
            self._reconciler.update(roots=roots)


def empty_host() -> PluginContribution:
    """Return the contribution of a host that has added nothing."""
    return PluginContribution(
        name=HOST,
        source=HOST,
        scope=Precedence.EXPLICIT,
        path=HOST,
        unit=HOST,
        rank=(-1, HOST),
        digest="",
    )


def _without_group(name: str, members: Iterable[GroupMember]) -> tuple[GroupMember, ...]:
    """Take members out of a group, and leave out those that are in no other."""
    kept = []
    for member in members:
        rest = tuple(group for group in member.groups if group != name)
        if rest == member.groups:
            kept.append(member)
        elif rest:
            kept.append(replace(member, groups=rest))
    return tuple(kept)


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _require_model(model: Any) -> None:
    if not (isinstance(model, type) and hasattr(model, "model_fields")):
        raise DefinitionError(
            f"additional arguments need a pydantic model, not {model!r}",
            fix="write a subclass of pydantic.BaseModel",
        )
