"""The configuration keys of a plugin, and whether values given in code fit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import HOST
from satchel.errors import DefinitionError, NotFoundError
from satchel.names import near_misses
from satchel.tools.function_tool import FunctionTool

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import PluginContribution, ToolContribution


def keys_of(plugin: PluginContribution) -> tuple[str, ...] | None:
    """Return the keys that a plugin reads in small letters, `None` if only its code knows them."""
    names = _names_of(plugin)
    return None if names is None else tuple(dict.fromkeys(name.lower() for name in names))


def _names_of(plugin: PluginContribution) -> list[str] | None:
    """Return the keys as the plugin writes them."""
    tools = (*plugin.tools, *plugin.unusable)
    if plugin.has_code and not (plugin.config or tools):
        return None
    names = [item.name for item in plugin.config]
    names += [name for group in plugin.groups for name in group.requires]
    names += [name for tool in tools for name in _needs(tool)]
    return names


def _needs(tool: ToolContribution) -> tuple[str, ...]:
    bound = tool.tool if isinstance(tool.tool, FunctionTool) else None
    state = [field.name for field in bound.state] if bound else []
    return (*tool.needs, *state, *(bound.injected if bound else ()))


def require_fitting(catalog: Catalog, plugin: str, values: Mapping[str, Any]) -> None:
    """Check values that code gives to a plugin; `None` removes a value, and always fits.

    Raises `NotFoundError` for an unknown plugin, and `DefinitionError` for an unknown key or a
    value that the manifest does not allow, with the near misses.
    """
    if plugin == HOST:
        return
    entry = next((item for item in catalog.all_plugins if item.name == plugin), None)
    if entry is None:
        plugins = {item.name for item in catalog.all_plugins}
        raise NotFoundError("plugin", plugin, near_misses(plugin, plugins))
    keys, names = keys_of(entry.contribution), _names_of(entry.contribution) or ()
    for key in values:
        if keys is not None and key not in {*keys, *names}:
            near = ", ".join(near_misses(key.lower(), keys))
            absence = f"no field {key!r}" if keys else "no configuration"
            fix = f"did you mean {near}?" if near else f"its fields are {', '.join(keys)}"
            raise DefinitionError(f"plugin {plugin!r} declares {absence}", fix=fix if keys else "")
    fields = {field.name.lower(): field for field in entry.contribution.config}
    for key, value in values.items():
        if value is not None and (field := fields.get(key.lower())):
            try:
                field.parsed(value)
            except DefinitionError as problem:
                message = f"the value of {key!r} of plugin {plugin!r} {problem.message}"
                raise DefinitionError(message, fix=problem.fix) from None
