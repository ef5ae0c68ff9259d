"""Load a plugin in its own process, and describe it to the host."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from satchel.catalog.catalog_entries import PluginContribution, Status, ToolContribution
from satchel.configuration.configuration import Configuration
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats.frozen_values import to_plain
from satchel.lazy_dataclass import dataclass
from satchel.plugins.code_loading import load_folder, load_package, started
from satchel.plugins.config_binding import bind_config
from satchel.settings import Limits
from satchel.sources.package_scan import PackageFinding
from satchel.sources.plugin_findings import PluginFinding
from satchel.tools import FunctionTool, McpPrompt, McpResource, Tool
from satchel.tools.empty_mapping import NOTHING
from satchel.workers.codec import OFFER
from satchel.workers.contract_codec import encode_contract

_TOOL_KEYS = (
    *("name", "description", "parameters", "output", "annotations", "examples"),
    *("timeout", "idempotent", "remember", "background", "runner_name"),
)


@dataclass(frozen=True, kw_only=True)
class LoadedWorker:
    """A loaded plugin: what can be called, and what is sent to the host."""

    contribution: PluginContribution
    tools: Mapping[str, ToolContribution]
    offers: Mapping[str, McpPrompt | McpResource]
    about: Mapping[str, Any]

    def groups_of(self, tool: ToolContribution) -> tuple[str, ...]:
        """Return the groups of a tool; those that it names itself come first."""
        listed = (group.name for group in self.contribution.groups if tool.name in group.tools)
        return tuple(dict.fromkeys((*tool.groups, *listed)))


def load_plugin(
    finding: PluginFinding | PackageFinding, config: Configuration, limits: Limits
) -> LoadedWorker:
    """Import a plugin, and start it unless its code declares fields that have no values yet."""
    contribution = _imported(finding, limits)
    field_keys = {item.key for item in config.fields}
    if fields := [asdict(item) for item in contribution.config if item.key not in field_keys]:
        return LoadedWorker(
            contribution=contribution, tools=NOTHING, offers=NOTHING, about={"fields": fields}
        )
    contribution = started(contribution, config)
    versions = {tool.name: tool.version for tool in contribution.tools}
    bound = bind_config(
        contribution, lambda _name, fields: replace(config, fields=fields), {}, None
    )
    bound_tools = bound.bound_tools.values()
    tools, descriptions, problems = _describe_tools(bound.contribution.tools, versions)
    parts = {"commands": contribution.commands, "providers": contribution.providers}
    left_out = [
        make_diagnostic(
            "plugin-not-isolated",
            Where(contribution.path),
            f"its {name} are left out: they are not supported in a separate process",
            "remove 'isolation: process' if its code may run in the process of the host",
        )
        for name, values in parts.items()
        if values
    ]
    # With other configuration values it may serve more.
    is_lacking = contribution.state is Status.OK and (
        problems or any(it.invalid for it in bound_tools)
    )
    contribution = replace(
        contribution,
        tools=tuple(tools.values()),
        state=Status.DEGRADED if is_lacking else contribution.state,
        diagnostics=(
            *contribution.diagnostics,
            *(item.diagnostic for item in bound_tools if item.diagnostic),
            *problems,
            *left_out,
        ),
    )
    offers = {f"{OFFER}{at}": offer for at, offer in enumerate(contribution.offers)}
    about = {
        "tools": descriptions,
        "offers": [_described_offer(call, offer) for call, offer in offers.items()],
        "groups": [asdict(group) for group in contribution.groups],
        "skills": contribution.skills,
        "sections": contribution.sections,
        "state": contribution.state,
        "diagnostics": [item.as_dict() for item in contribution.diagnostics],
    }
    return LoadedWorker(
        contribution=contribution, tools=tools, offers=offers, about=to_plain(about)
    )


def _imported(finding: PluginFinding | PackageFinding, limits: Limits) -> PluginContribution:
    if isinstance(finding, PluginFinding):
        return load_folder(_here(finding), (0,), limits)
    assert finding.part is not None
    return load_package(replace(finding, part=_here(finding.part)), (0,), limits)


def _here(finding: PluginFinding) -> PluginFinding:
    """Return the plugin without isolation: this is already its own process."""
    assert finding.manifest is not None
    return replace(finding, manifest=replace(finding.manifest, isolation="none"))


def _describe_tools(
    contributions: Iterable[ToolContribution], versions: Mapping[str, str]
) -> tuple[dict[str, ToolContribution], list[dict[str, Any]], list[Diagnostic]]:
    """Return the tools to serve, their descriptions, and diagnostics about the others."""
    tools: dict[str, ToolContribution] = {}
    descriptions: list[dict[str, Any]] = []
    problems: list[Diagnostic] = []
    for contribution in contributions:
        if contribution.tool is None:
            continue
        try:
            contract = encode_contract(contribution.contract) if contribution.contract else None
        except DefinitionError as problem:
            # A tool is never served without its rules.
            problems.append(
                make_diagnostic(
                    "plugin-not-isolated",
                    Where(contribution.path),
                    f"its tool {contribution.name!r} is left out: in its contract, "
                    f"{problem.message}",
                    "use data alone in it, or remove 'isolation: process'",
                )
            )
            continue
        tools[contribution.name] = contribution
        about = {
            "version": versions[contribution.name],
            "path": contribution.path,
            "contract": contract,
        }
        descriptions.append(
            _described(contribution.tool, contribution.name, contribution.groups) | about
        )
    return tools, descriptions, problems


def _described(tool: Tool, call: str, groups: Iterable[str]) -> dict[str, Any]:
    function = tool if isinstance(tool, FunctionTool) else None
    return {
        "call": call,
        **{key: getattr(tool, key) for key in _TOOL_KEYS},
        "groups": tuple(groups),
        "takes_context": function.takes_context if function else tool.wants_context,
    }


def _described_offer(call: str, offer: McpPrompt | McpResource) -> dict[str, Any]:
    resource = offer if isinstance(offer, McpResource) else None
    return {
        "name": offer.name,
        "uri": resource and resource.uri,
        "mime_type": resource and resource.mime_type,
        "completes": offer.complete is not None,
        "tool": _described(offer.tool, call, ()),
    }
