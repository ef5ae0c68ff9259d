"""What a pass asks of every source of plugins and skills, and what a source answers."""

# ruff: noqa: ARG002 - every provider is asked in the same way

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from satchel.files.watch_targets import WatchTargets
from satchel.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.diagnostics import Diagnostic
    from satchel.loader.scan_cache import PassInputs, ScanCache
    from satchel.mcp_servers.pin_store import ServerOrigin
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.plugin_scan import PluginScan
    from satchel.sources.skill_findings import SkillScan
    from satchel.trust.code_units import CodeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plugin as its provider has it. The pass decides whether it is loaded and served."""

    contribution: PluginContribution
    names: tuple[str, ...] = ()
    """Further names by which the user may disable it."""
    is_optional: bool = True
    """Whether the user may disable it."""
    finding: PluginFinding | PackageFinding | None = None
    """The files that were read, if there are any."""
    load: Callable[..., PluginContribution] | None = None
    """Imports the code in `finding`."""
    unit: CodeUnit | None = None
    """Its code, if the user must trust that."""
    origin: ServerOrigin | None = None
    """Where it is declared, if it is an MCP server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """What a provider has in one pass; the next pass gives it back."""

    candidates: tuple[Candidate, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    watch: WatchTargets = field(default_factory=WatchTargets)
    kept: Any = None
    """What only the provider itself uses."""


class PassProvider(Protocol):
    """A source of plugins and skills. Two that are equal are one source in different passes.

    `inputs.cache` has the results of the last pass, and `now` those of this one so far.
    """

    renamed_on_conflict: bool = False
    """Whether its tools and skills are renamed on a conflict; such a provider is asked last."""

    def plugins(self, inputs: PassInputs, now: ScanCache) -> ProviderAnswer:
        """Return its plugins, and read only what may have changed."""
        return ProviderAnswer()

    def skills(self, inputs: PassInputs, now: ScanCache) -> Iterable[SkillScan]:
        """Return its skills; it is asked when it is decided which plugins are served."""
        return ()


def targets_of(scan: PluginScan | SkillScan) -> WatchTargets:
    """Return what to watch of a search root; nothing of one that is no folder."""
    if not scan.root.is_folder:
        return WatchTargets()
    unreadable = (item.where.path for item in scan.diagnostics if item.code == "source-unreadable")
    return WatchTargets(
        roots=(scan.root.path,),
        links=scan.links,
        settling=frozenset(scan.findings[key].path for key in scan.missing),
        unreadable=tuple(unreadable),
    )


def problems_of(scan: PluginScan | SkillScan) -> Iterable[Diagnostic]:
    """Yield the diagnostics of a search root, one if it brings nothing for no other reason."""
    yield from scan.diagnostics
    too_deep = [item for item in scan.diagnostics if item.code == "source-too-deep"]
    if not (scan.findings or scan.root.optional) and len(too_deep) == len(scan.diagnostics):
        from satchel.sources.empty_roots import empty_root  # lazy: few folders bring nothing

        if diagnostic := empty_root(scan.root, too_deep):
            yield diagnostic
