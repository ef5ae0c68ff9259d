"""What can be said of contracts only once all sources were looked at."""

from collections.abc import Iterable, Sequence

from satchel.catalog import HOST, PluginEntry
from satchel.contracts import unknown_variable, variables_in
from satchel.diagnostics import Diagnostic, Where, report
from satchel.loader.wanted import Wanted
from satchel.plugins import Fitted, contract_without_tool


def contract_problems(
    wanted: Wanted, plugins: Sequence[PluginEntry], fitted: Iterable[Fitted]
) -> Iterable[Diagnostic]:
    """Report contracts of the host without a tool, and prompt variables that nobody fills."""
    served = [plugin for plugin in plugins if plugin.is_served]
    tools = {tool.name for plugin in served for tool in plugin.supply.tools}
    # Of one that was left out, since it did not fit, that is told.
    tools |= {name for item in fitted for name in item.fittings}
    for name in wanted.contracts:
        if name not in tools:
            yield contract_without_tool(name, tools, HOST)
    owners = _filled(served)
    for name, keys in owners.items():
        if len(keys) > 1:
            yield report(
                "prompt-variable-contested",
                Where(next(iter(keys.values()))),
                f"{{{{{name}}}}} is to be filled from {' and from '.join(map(repr, keys))}; "
                f"the first counts",
                "give one of them another prompt_template_var",
            )
    # Whoever only reads does not know every contract.
    for path, text in _texts(served) if wanted.run_code else ():
        for name in variables_in(text):
            if name not in owners:
                yield unknown_variable(name, path)


def _filled(plugins: Iterable[PluginEntry]) -> dict[str, dict[str, str]]:
    """Return for each prompt variable the keys that fill it, with the path of each tool."""
    found: dict[str, dict[str, str]] = {}
    declared = ((tool.declared, tool.path) for plugin in plugins for tool in plugin.supply.tools)
    for contract, path in sorted(
        ((item, path) for item, path in declared if item), key=lambda pair: pair[0].tool
    ):
        for effect in contract.effects:
            if effect.variable:
                found.setdefault(effect.variable, {}).setdefault(effect.key, path)
    return found


def _texts(plugins: Iterable[PluginEntry]) -> Iterable[tuple[str, str]]:
    for plugin in plugins:
        for group in plugin.supply.groups:
            yield plugin.path, group.notes
        for section in plugin.supply.sections:
            yield plugin.path, section
