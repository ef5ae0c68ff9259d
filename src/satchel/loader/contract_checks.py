"""What can be said of contracts only once all sources were looked at."""

from collections.abc import Iterable

from satchel.catalog import HOST, Catalog
from satchel.contracts import unknown_variable, variables_in
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.loader.loader_config import LoaderConfig
from satchel.plugins import BoundPlugin, contract_without_tool


def contract_problems(
    wanted: LoaderConfig, catalog: Catalog, fitted: Iterable[BoundPlugin]
) -> Iterable[Diagnostic]:
    """Report contracts of the host without a tool, and prompt variables that nobody fills."""
    # Of a tool that was left out, since it did not fit, that is told.
    tools = {*catalog.tools, *(name for item in fitted for name in item.fittings)}
    for name in wanted.contracts:
        if name not in tools:
            yield contract_without_tool(name, tools, HOST)
    keys = _filled(catalog)
    for name, paths in keys.items():
        if len(paths) > 1:
            yield make_diagnostic(
                "prompt-variable-contested",
                Where(next(iter(paths.values()))),
                f"{{{{{name}}}}} is to be filled from {' and from '.join(map(repr, paths))}; "
                f"the first counts",
                "give one of them another prompt_template_var",
            )
    # Contracts are known only once the code was loaded.
    for path, text in _texts(catalog) if wanted.run_code else ():
        for name in variables_in(text):
            if name not in keys:
                yield unknown_variable(name, path)


def _filled(catalog: Catalog) -> dict[str, dict[str, str]]:
    """Return for each prompt variable the keys that fill it, with the path of each tool."""
    found: dict[str, dict[str, str]] = {}
    for entry in catalog.tools.values():
        for effect in entry.contract.state_effects if entry.contract else ():
            if name := effect.prompt_template_var:
                found.setdefault(name, {}).setdefault(effect.key, entry.path)
    return found


def _texts(catalog: Catalog) -> Iterable[tuple[str, str]]:
    for group in catalog.groups.values():
        yield group.path, group.notes
    for plugin in catalog.plugins.values():
        for section in plugin.supply.sections:
            yield plugin.path, section
