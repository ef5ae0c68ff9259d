"""Checks of contracts that need the whole catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import HOST
from satchel.diagnostics import Where, make_diagnostic

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.diagnostics import Diagnostic
    from satchel.loader.loader_config import LoaderConfig
    from satchel.plugins.bound_plugin import BoundPlugin


def contract_diagnostics(
    config: LoaderConfig, catalog: Catalog, plugins: Iterable[BoundPlugin]
) -> Iterable[Diagnostic]:
    """Report host contracts without a tool, and prompt variables that no contract fills."""
    # A tool that could not be bound has a diagnostic of its own.
    tools = {*catalog.tools, *(name for plugin in plugins for name in plugin.bound_tools)}
    for name in config.contracts:
        if name not in tools:
            from satchel.plugins.contract_attachment import (
                contract_without_tool,  # lazy: needed only with contracts
            )

            yield contract_without_tool(name, tools, HOST)
    keys = _variable_keys(catalog)
    for name, paths in keys.items():
        if len(paths) > 1:
            yield make_diagnostic(
                "prompt-variable-contested",
                Where(next(iter(paths.values()))),
                f"{{{{{name}}}}} has several sources, {' and '.join(map(repr, paths))}; "
                f"the first one counts",
                "give one of them another prompt_template_var",
            )
    # Without loaded code no contract is known.
    for path, text in _texts(catalog) if config.run_code else ():
        from satchel.contracts.prompt_variables import unknown_variable  # lazy: only with variables
        from satchel.contracts.variable_places import variables_in

        for name in variables_in(text):
            if name not in keys:
                yield unknown_variable(name, path)


def _variable_keys(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Map each prompt variable to the state keys that fill it, with the paths of the tools."""
    keys: dict[str, dict[str, str]] = {}
    for entry in catalog.tools.values():
        for effect in entry.contract.state_effects if entry.contract else ():
            if name := effect.prompt_template_var:
                keys.setdefault(name, {}).setdefault(effect.key, entry.path)
    return keys


def _texts(catalog: Catalog) -> Iterable[tuple[str, str]]:
    """Yield the texts that may have variables, each with its path."""
    for group in catalog.groups.values():
        if "{{" in group.notes:
            yield group.path, group.notes
    for plugin in catalog.plugins.values():
        for section in plugin.contribution.sections:
            if "{{" in section:
                yield plugin.path, section
