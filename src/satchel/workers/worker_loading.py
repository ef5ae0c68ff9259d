"""Start the process of a plugin, and build its contribution from what the process sends."""

import json
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import PurePath
from pickle import Pickler
from types import MappingProxyType
from typing import Any

from satchel.catalog.catalog_entries import Group, PluginContribution, Status, ToolContribution
from satchel.configuration.configuration import Configuration, fingerprint
from satchel.diagnostics import RULES, Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.compiled_cache import compiled_cache, forget_compiled
from satchel.formats.config_fields import ConfigField
from satchel.mcp_servers.server_addresses import WorkerServer
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.sources.package_scan import PackageFinding
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.text import one_line, shorten
from satchel.tools import McpPrompt, McpResource
from satchel.workers.codec import COMPLETE, HOST_DECIDES
from satchel.workers.contract_codec import decode_contract
from satchel.workers.plugin_environments import installed
from satchel.workers.worker_health import DOWN, WHEN_CHANGED
from satchel.workers.worker_processes import WorkerHandle, WorkerPool
from satchel.workers.worker_tools import WorkerTool

_PROGRAM = """
import os, site, sys
compiled = sys.argv.pop(1)
for path in sys.argv[1:]:
    if path not in sys.path:
        site.addsitedir(path)
del sys.argv[1:]
from satchel.mcp.worker_main import main
# Not before: what Satchel needs is compiled.
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = compiled
main()
"""
"""Imports packages from the host's paths, after those installed for this process alone."""

_ENV_PREFIX = "SATCHEL_"
"""Variables with this prefix may be values of other plugins, so a process does not get them."""

TO_END = 2.0
"""Seconds that a process has to exit after the shutdown of its plugin."""

PluginSource = PluginFinding | PackageFinding
"""A plugin that was read, and not imported yet."""


def load_worker(
    contribution: PluginContribution,
    plugin: PluginSource,
    configured: Callable[[PluginContribution], Configuration],
    workers: WorkerPool,
) -> PluginContribution:
    """Start the process of a plugin, and return what the plugin contributes.

    Every failure is a diagnostic. Commands of its hooks are not supported in a process.
    """
    try:
        site = _site(plugin, workers.limits)
    except DefinitionError as problem:
        folder = plugin.part
        line = folder.manifest.line("dependencies") if folder and folder.manifest else None
        diagnostic = make_diagnostic(
            "plugin-install-failed",
            Where(os.path.join(folder.code_path if folder else "", MANIFEST_FILE), line),
            f"its dependencies {redacted(problem.message, configured(contribution).values)}",
            "correct them, or try again with refresh()",
        )
        return _failed(replace(contribution, tools=()), diagnostic)
    started = _started(contribution, plugin, configured(contribution), workers, site)
    if fields := _fields_of_code(started):
        # Start again with their values: only running the code could show these fields.
        contribution = replace(contribution, config=(*contribution.config, *fields))
        started = _started(contribution, plugin, configured(contribution), workers, site)
    return _loaded(*started)


def _started(
    contribution: PluginContribution,
    plugin: PluginSource,
    config: Configuration,
    workers: WorkerPool,
    site: str,
) -> tuple[PluginContribution, WorkerHandle]:
    values = {key: value for key, value in config.values.items() if _can_be_sent(value)}
    unsent = [
        make_diagnostic(
            "plugin-not-isolated",
            Where(contribution.path),
            f"the value of {key!r} cannot be sent to its process: JSON cannot represent it",
            "set a JSON value, or remove 'isolation: process'",
        )
        for key in config.values.keys() - values.keys()
    ]
    contribution = replace(
        contribution,
        tools=(),
        started_with=fingerprint(config.values),
        diagnostics=(*contribution.diagnostics, *unsent),
    )
    server = _server(plugin, replace(config, values=values), workers, site)
    return contribution, workers.start(contribution.name, server, values)


def _fields_of_code(started: tuple[PluginContribution, WorkerHandle]) -> list[ConfigField]:
    contribution, worker = started
    keys = {item.key for item in contribution.config}
    sent = worker.snapshot.about.get("fields", ()) if worker.outage is None else ()
    try:
        fields = [ConfigField(**{**item, "options": tuple(item["options"])}) for item in sent]
    except Exception:
        return []  # invalid data is reported by `_loaded`
    return [item for item in fields if item.key not in keys]


def _failed(contribution: PluginContribution, diagnostic: Diagnostic) -> PluginContribution:
    state = Status.DEGRADED if contribution.policy.has_extension else Status.FAILED
    return replace(contribution, state=state, diagnostics=(*contribution.diagnostics, diagnostic))


def _site(plugin: PluginSource, limits: Limits) -> str:
    """Return the folder with a plugin's dependencies, or `""`. Raises `DefinitionError`."""
    folder = plugin.part
    dependencies = folder.manifest.dependencies if folder and folder.manifest else ()
    return installed(dependencies, limits.plugin_install) if dependencies else ""


def _server(
    plugin: PluginSource, config: Configuration, workers: WorkerPool, site: str
) -> WorkerServer:
    # Send the content that was read, not its path: a restarted process runs the same version,
    # even if the files changed.
    sent = replace(config, diagnostics=(), raw={})
    # A function of the host stays here: it gets what the process says of the exception.
    errors = workers.errors if isinstance(workers.errors, str) else HOST_DECIDES
    output = BytesIO()
    _Pickler(output).dump((plugin, sent, workers.limits, errors))
    env = {key: value for key, value in os.environ.items() if not key.startswith(_ENV_PREFIX)}
    if site:  # before the host's packages
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (site, env.get("PYTHONPATH"))))
    for path in plugin.code_paths:
        forget_compiled(path)
    return WorkerServer(
        command=sys.executable,
        args=("-P", "-c", _PROGRAM, compiled_cache(), *filter(None, sys.path)),
        env=env,
        greeting=b64encode(output.getvalue()) + b"\n",
        folder=plugin.path,
        patience=workers.limits.hook + TO_END,
    )


class _Pickler(Pickler):
    """Also pickles the read-only mappings of manifests."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, MappingProxyType):
            return MappingProxyType, (dict(value),)
        return NotImplemented


def _can_be_sent(value: Any) -> bool:
    if isinstance(value, PurePath):
        return True
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _loaded(contribution: PluginContribution, worker: WorkerHandle) -> PluginContribution:
    """Add what the process sends about the plugin."""
    if (outage := worker.outage) is not None:
        return _failed(contribution, replace(outage, fix=WHEN_CHANGED))
    try:
        return _with_about(contribution, worker.snapshot.about, worker)
    except Exception as problem:
        # Any: the plugin's code may have changed what the process sends.
        message = f"the process of plugin {contribution.name!r} sends invalid data: {problem!r}"
        message = shorten(one_line(message), 300)
        return _failed(
            contribution, make_diagnostic(DOWN, Where(contribution.path), message, WHEN_CHANGED)
        )


def _with_about(
    contribution: PluginContribution, about: Mapping[str, Any], worker: WorkerHandle
) -> PluginContribution:
    diagnostics = tuple(
        make_diagnostic(
            item["code"], Where(item["path"], item["line"]), item["message"], item["fix"]
        )
        for item in about["diagnostics"]
        if item["code"] in RULES
    )
    contribution = replace(
        contribution,
        state=Status(about["state"]),
        diagnostics=tuple(dict.fromkeys((*contribution.diagnostics, *diagnostics))),
    )
    if contribution.state is Status.FAILED:
        return contribution
    return replace(
        contribution,
        groups=tuple(_group(item) for item in about["groups"]),
        skills=tuple(about["skills"]),
        sections=tuple(about["sections"]),
        tools=tuple(_tool(item, worker) for item in about["tools"]),
        offers=tuple(_offer(item, worker) for item in about["offers"]),
        code=worker,
    )


def _group(encoded: Mapping[str, Any]) -> Group:
    return Group(
        name=encoded["name"],
        description=encoded["description"],
        notes=encoded["notes"],
        active=encoded["active"],
        is_off=encoded["is_off"],
        tools=tuple(encoded["tools"]),
        skills=tuple(encoded["skills"]),
        requires=tuple(encoded["requires"]),
    )


def _tool(encoded: Mapping[str, Any], worker: WorkerHandle) -> ToolContribution:
    contract = decode_contract(encoded["contract"]) if encoded["contract"] else None
    return ToolContribution(
        name=encoded["name"],
        description=encoded["description"],
        path=encoded["path"],
        version=encoded["version"],
        groups=tuple(encoded["groups"]),
        tool=WorkerTool(encoded, worker, contract),
        contract=contract,
    )


def _offer(encoded: Mapping[str, Any], worker: WorkerHandle) -> McpPrompt | McpResource:
    tool = WorkerTool(encoded["tool"], worker)

    def complete(argument: str, begun: str) -> list[str]:
        return list(
            worker.ask(COMPLETE, call=encoded["tool"]["call"], argument=argument, begun=begun)
        )

    completes = complete if encoded["completes"] else None
    if encoded["uri"] is None:
        return McpPrompt(tool, name=encoded["name"], complete=completes)
    return McpResource(
        encoded["uri"],
        tool,
        name=encoded["name"],
        mime_type=encoded["mime_type"],
        complete=completes,
    )
