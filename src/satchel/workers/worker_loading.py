"""From a plugin that was read to what its process says that it brings."""

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

from satchel.catalog import Group, PluginContribution, Status, ToolContribution
from satchel.diagnostics import RULES, Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import ConfigField
from satchel.mcp_servers import WorkerServer
from satchel.plugins import fingerprint
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.sources import MANIFEST_FILE, Configuration, PackageFinding, PluginFinding
from satchel.sources.plugin_environments import installed
from satchel.text import one_line, shorten
from satchel.tools import McpPrompt, McpResource
from satchel.workers.codec import COMPLETE
from satchel.workers.contract_proxy import decode_contract
from satchel.workers.worker_processes import WorkerHandle, WorkerPool
from satchel.workers.worker_tools import WorkerTool

DOWN = "plugin-worker-down"

_WHEN_CHANGED = "see to its code; it is tried again when it changes"
"""What mends one that never came up, unlike one that served and is started again by itself."""

_PROGRAM = """
import site, sys
for path in sys.argv[1:]:
    if path not in sys.path:
        site.addsitedir(path)
del sys.argv[1:]
from satchel.mcp.worker_main import main
main()
"""
"""Looks for packages where the host does, after what is installed for this process alone."""

_OURS = "SATCHEL_"
"""What our variables begin with: a process gets its own values, and those of no other plugin."""

TO_END = 2.0
"""Seconds that a process has to end beside those for its shutdown."""

Found = PluginFinding | PackageFinding
"""A plugin as it was read."""


def load_worker(
    supply: PluginContribution,
    found: Found,
    configured: Callable[[PluginContribution], Configuration],
    workers: WorkerPool,
) -> PluginContribution:
    """Start the process of a plugin that was read, and tell what it brings.

    Whatever happens there is a diagnostic. Of what its hooks may bring, commands stay there.
    """
    try:
        site = _site(found, workers.limits)
    except DefinitionError as problem:
        told = _not_installed(found, problem, configured(supply).values)
        return _failed(replace(supply, tools=()), told)
    started = _started(supply, found, configured(supply), workers, site)
    if wanted := _further_fields(started):
        # Its code declares them, so they were not known when it was started.
        supply = replace(supply, config=(*supply.config, *wanted))
        started = _started(supply, found, configured(supply), workers, site)
    return _brought(*started)


def _started(
    supply: PluginContribution, found: Found, config: Configuration, workers: WorkerPool, site: str
) -> tuple[PluginContribution, WorkerHandle]:
    """Start a process, which may turn out not to run."""
    values = {key: value for key, value in config.values.items() if _can_be_sent(value)}
    unsent = [_unsent(supply, key) for key in config.values.keys() - values.keys()]
    supply = replace(
        supply,
        tools=(),
        started_with=fingerprint(config.values),
        diagnostics=(*supply.diagnostics, *unsent),
    )
    server = _server(found, replace(config, values=values), workers, site)
    return supply, workers.start(supply.name, server, values)


def _further_fields(started: tuple[PluginContribution, WorkerHandle]) -> list[ConfigField]:
    """Return the fields that only running the code could tell of."""
    supply, worker = started
    known = {item.key for item in supply.config}
    told = worker.offer.listing.about.get("fields", ()) if worker.trouble is None else ()
    try:
        fields = [ConfigField(**{**item, "options": tuple(item["options"])}) for item in told]
    except Exception:
        return []  # what code of a plugin meddled with is told when it brings nothing
    return [item for item in fields if item.key not in known]


def with_health(
    supply: PluginContribution, last_good: PluginContribution | None
) -> PluginContribution:
    """Say of a plugin whether the process that serves it runs now."""
    served = last_good if supply.state.falls_back and last_good else supply
    if not isinstance(served.code, WorkerHandle):
        return supply
    trouble = served.code.trouble
    told = tuple(
        item for item in supply.diagnostics if item.code != DOWN or item.fix == _WHEN_CHANGED
    )
    told = (*told, trouble) if trouble else told
    return supply if told == supply.diagnostics else replace(supply, diagnostics=told)


def _failed(supply: PluginContribution, problem: Diagnostic) -> PluginContribution:
    told = (*supply.diagnostics, problem)
    state = Status.DEGRADED if supply.policy.has_extension else Status.FAILED
    return replace(supply, state=state, diagnostics=told)


def _part(found: Found) -> PluginFinding | None:
    """Return the folder in which toolkit.yaml is."""
    return found.part if isinstance(found, PackageFinding) else found


def _site(found: Found, limits: Limits) -> str:
    """Return the folder with what a plugin depends on. Raises `DefinitionError`."""
    part = _part(found)
    wanted = part.manifest.dependencies if part and part.manifest else ()
    return installed(wanted, limits.plugin_install) if wanted else ""


def _not_installed(found: Found, problem: DefinitionError, values: Mapping[str, Any]) -> Diagnostic:
    part = _part(found)
    line = part.manifest.line("dependencies") if part and part.manifest else None
    return make_diagnostic(
        "plugin-install-failed",
        Where(os.path.join(part.code_path if part else "", MANIFEST_FILE), line),
        f"its dependencies {redacted(problem.message, values)}",
        "correct them, or try again with refresh()",
    )


def _server(found: Found, config: Configuration, workers: WorkerPool, site: str) -> WorkerServer:
    # What was read is sent, not its place: started again, it runs what was good, whatever stands
    # on disk by then.
    sent = replace(config, diagnostics=(), written={})
    greeting = b64encode(_pickled((found, sent, workers.limits))) + b"\n"
    env = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
    if site:  # It comes before what the host has.
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (site, env.get("PYTHONPATH"))))
    return WorkerServer(
        command=sys.executable,
        args=("-P", "-c", _PROGRAM, *filter(None, sys.path)),
        env=env,
        greeting=greeting,
        folder=found.installed.path if isinstance(found, PackageFinding) else found.path,
        patience=workers.limits.hook + TO_END,
    )


class _Pickler(Pickler):
    """Writes what a manifest says, too: mappings that nobody can change."""

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, MappingProxyType):
            return MappingProxyType, (dict(thing),)
        return NotImplemented


def _pickled(things: Any) -> bytes:
    written = BytesIO()
    _Pickler(written).dump(things)
    return written.getvalue()


def _can_be_sent(value: Any) -> bool:
    if isinstance(value, PurePath):
        return True
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _unsent(supply: PluginContribution, key: str) -> Diagnostic:
    return make_diagnostic(
        "plugin-not-isolated",
        Where(supply.path),
        f"the value of {key!r} cannot be sent to its process",
        "give what JSON can say, or remove 'isolation: process'",
    )


def _brought(supply: PluginContribution, worker: WorkerHandle) -> PluginContribution:
    """Add what the process says that the plugin brings."""
    if (trouble := worker.trouble) is not None:
        return _failed(supply, replace(trouble, fix=_WHEN_CHANGED))
    try:
        return _with_about(supply, worker.offer.listing.about, worker)
    except Exception as problem:
        # Any: it is what code of a plugin may have meddled with.
        silent = f"the process of plugin {supply.name!r} does not say what it brings: {problem!r}"
        silent = shorten(one_line(silent), 300)
        return _failed(supply, make_diagnostic(DOWN, Where(supply.path), silent, _WHEN_CHANGED))


def _with_about(
    supply: PluginContribution, about: Mapping[str, Any], worker: WorkerHandle
) -> PluginContribution:
    problems = tuple(
        make_diagnostic(
            item["code"], Where(item["path"], item["line"]), item["message"], item["fix"]
        )
        for item in about["diagnostics"]
        if item["code"] in RULES
    )
    supply = replace(
        supply,
        state=Status(about["state"]),
        diagnostics=tuple(dict.fromkeys((*supply.diagnostics, *problems))),
    )
    if supply.state is Status.FAILED:
        return supply
    return replace(
        supply,
        groups=tuple(_group(item) for item in about["groups"]),
        skills=tuple(about["skills"]),
        sections=tuple(about["sections"]),
        tools=tuple(_tool(item, worker) for item in about["tools"]),
        offers=tuple(_offer(item, worker) for item in about["offers"]),
        code=worker,
    )


def _group(told: Mapping[str, Any]) -> Group:
    lists = {key: tuple(told[key]) for key in ("tools", "skills", "requires")}
    return Group(
        name=told["name"],
        description=told["description"],
        notes=told["notes"],
        active=told["active"],
        **lists,
    )


def _tool(told: Mapping[str, Any], worker: WorkerHandle) -> ToolContribution:
    contract = decode_contract(told["contract"], worker) if told["contract"] else None
    return ToolContribution(
        name=told["name"],
        description=told["description"],
        path=told["path"],
        version=told["version"],
        groups=tuple(told["groups"]),
        tool=WorkerTool(told, worker, contract),
        contract=contract,
    )


def _offer(told: Mapping[str, Any], worker: WorkerHandle) -> McpPrompt | McpResource:
    tool = WorkerTool(told["tool"], worker)

    def complete(argument: str, begun: str) -> list[str]:
        return list(worker.ask(COMPLETE, call=told["tool"]["call"], argument=argument, begun=begun))

    completes = complete if told["completes"] else None
    if told["uri"] is None:
        return McpPrompt(tool, name=told["name"], complete=completes)
    return McpResource(
        told["uri"], tool, name=told["name"], mime_type=told["mime_type"], complete=completes
    )
