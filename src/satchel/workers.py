"""Plugins in processes of their own: started, asked what they bring, and ended.

A process is known by its `Worker`, which every catalog that serves it and every tool of it holds,
as the modules of a plugin in this process are known by their `ImportedCode`. So a new version is
started beside the old one, and the old one ends when the last who uses it lets go.
"""

import json
import os
import sys
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import PurePath
from pickle import Pickler
from types import MappingProxyType
from typing import Any

from satchel.catalog import Group, Supply, ToolSupply
from satchel.diagnostics import RULES, Diagnostic, Where, report
from satchel.errors import DefinitionError
from satchel.plugins import fingerprint
from satchel.remote import Definition, Fleet, Member, Offer, RemoteTool, WorkerServer
from satchel.remote.connection import OnProgress
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.sources import MANIFEST_FILE, Configuration, PluginFinding
from satchel.sources.environments import installed
from satchel.tools import Item, ToolContext, ToolResult

DOWN = "plugin-worker-down"
ERROR = "dev.satchel/error"
"""Where the answer to a call says which error it is."""

_PROGRAM = "from satchel.mcp.worker import main; main()"

_OURS = "SATCHEL_"
"""What our variables begin with: a process gets its own values, and those of no other plugin."""

_START = 10.0
"""Seconds for Python itself, and for what serves MCP."""


class Workers:
    """The processes of one satchel's plugins."""

    def __init__(self, limits: Limits, on_news: Callable[[], None]) -> None:
        patience = limits.plugin_import + limits.hook * 2 + _START
        self.limits = limits
        self._fleet = Fleet(replace(limits, mcp_connect=patience), on_news)
        self._patience = patience
        # Whoever lets go of a process may do so while another is being started.
        self._lock = threading.RLock()

    def start(self, name: str, server: WorkerServer, values: Mapping[str, Any]) -> "Worker":
        """Start a process, and wait until it is known what it brings, or that it cannot run."""
        begun = time.perf_counter()
        with self._lock:
            member = self._fleet.add(name, server)
        worker = Worker(member, values)
        weakref.finalize(worker, self._end, member)
        member.wait(self._patience * 2)
        worker.seconds = time.perf_counter() - begun
        return worker

    def _end(self, member: Member) -> None:
        with self._lock:
            self._fleet.remove(member)

    def close(self) -> None:
        """End all processes."""
        self._fleet.close()


class Worker:
    """The process of one version of a plugin: it is started again when it ends by itself."""

    def __init__(self, member: Member, values: Mapping[str, Any]) -> None:
        self._member, self._values = member, values
        self.seconds = 0.0
        """How long it took to start."""

    @property
    def offer(self) -> Offer:
        """Return what it brings."""
        return self._member.offer

    @property
    def trouble(self) -> Diagnostic | None:
        """Return why it does not run at the moment, without the values that it was given."""
        if (found := self.offer.trouble) is None:
            return None
        return replace(found, message=redacted(found.message, self._values))

    def begin(self, tool: Definition, arguments: Mapping[str, Any], on_progress: OnProgress) -> Any:
        """Begin a call."""
        return self._member.call(tool, arguments, on_progress)


class WorkerTool(RemoteTool):
    """A tool of a plugin that runs in a process of its own, which also checks the arguments."""

    def __init__(self, told: Mapping[str, Any], worker: Worker) -> None:
        self.name, self.description = told["name"], told["description"]
        self.parameters, self.output = told["parameters"], told["output"]
        self.annotations, self.examples = told["annotations"], tuple(told["examples"])
        self.timeout, self.group = told["timeout"], tuple(told["groups"])
        self.idempotent, self.background = told["idempotent"], told["background"]
        self.definition = Definition(self.name, self.description, self.parameters)
        self._begin, self._presets = worker.begin, {}

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as they are: only the process knows what its code takes."""
        return dict(arguments)

    async def start(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the tool; while it streams, tell how far it is."""
        item = await super().start(arguments, context)
        return _restored(item) if isinstance(item, ToolResult) else _all_restored(item)


def _restored(item: Any) -> Any:
    """Return a result as it was before it became an answer of MCP."""
    if not isinstance(item, ToolResult) or ERROR not in item.metadata:
        return item
    metadata = {key: value for key, value in item.metadata.items() if key != ERROR}
    return replace(item, error_code=str(item.metadata[ERROR]), metadata=metadata)


async def _all_restored(items: AsyncIterator[Item]) -> AsyncIterator[Item]:
    async for item in items:
        yield _restored(item)


def load_worker(
    supply: Supply, found: PluginFinding, config: Configuration, workers: Workers
) -> Supply:
    """Start the process of a plugin that was read, and tell what it brings.

    Whatever happens there is a diagnostic. Of what its hooks may bring, commands, MCP prompts and
    resources, and tools that are held to contracts stay there.
    """
    supply = replace(supply, tools=(), started_with=fingerprint(config.values))
    values = {key: value for key, value in config.values.items() if _can_be_sent(value)}
    try:
        site = _site(found, workers.limits)
    except DefinitionError as problem:
        return _failed(supply, _not_installed(found, problem, config.values))
    server = _server(found, replace(config, values=values), workers, site)
    worker = workers.start(supply.name, server, values)
    if (trouble := worker.trouble) is not None:
        return _failed(supply, trouble)
    if not worker.offer.listing.about:
        told = f"the process of plugin {supply.name!r} does not say what it brings"
        return _failed(supply, report(DOWN, Where(found.path), told))
    supply = _brought(supply, worker.offer.listing.about, worker)
    unsent = [_unsent(supply, key) for key in config.values.keys() - values.keys()]
    return replace(supply, diagnostics=(*supply.diagnostics, *unsent))


def with_health(supply: Supply, last_good: Supply | None) -> Supply:
    """Say of a plugin whether the process that serves it runs now."""
    served = last_good if supply.is_broken and last_good else supply
    if not isinstance(served.code, Worker):
        return supply
    trouble = served.code.trouble
    told = tuple(item for item in supply.diagnostics if item.code != DOWN)
    told = (*told, trouble) if trouble else told
    return supply if told == supply.diagnostics else replace(supply, diagnostics=told)


def _failed(supply: Supply, problem: Diagnostic) -> Supply:
    told = (*supply.diagnostics, problem)
    return replace(supply, failed=not supply.is_open, flawed=True, diagnostics=told)


def _site(found: PluginFinding, limits: Limits) -> str:
    """Return the folder with what a plugin depends on. Raises `DefinitionError`."""
    wanted = found.manifest.dependencies if found.manifest else ()
    return installed(wanted, limits.plugin_install) if wanted else ""


def _not_installed(
    found: PluginFinding, problem: DefinitionError, values: Mapping[str, Any]
) -> Diagnostic:
    line = found.manifest.line("dependencies") if found.manifest else None
    return report(
        "plugin-install-failed",
        Where(os.path.join(found.code_path, MANIFEST_FILE), line),
        f"its dependencies {redacted(problem.message, values)}",
        "correct them, or try again with refresh()",
    )


def _server(
    found: PluginFinding, config: Configuration, workers: Workers, site: str
) -> WorkerServer:
    # What was read is sent, not its place: started again, it runs what was good, whatever stands
    # on disk by then.
    sent = replace(config, diagnostics=(), written={})
    greeting = b64encode(_pickled((found, sent, workers.limits))) + b"\n"
    env = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
    if site:  # It comes before what the host has.
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (site, env.get("PYTHONPATH"))))
    return WorkerServer(
        sys.executable,
        ("-P", "-c", _PROGRAM),
        env=env,
        greeting=greeting,
        folder=found.path,
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


def _unsent(supply: Supply, key: str) -> Diagnostic:
    return report(
        "plugin-not-isolated",
        Where(supply.path),
        f"the value of {key!r} cannot be sent to its process",
        "give what JSON can say, or remove 'isolation: process'",
    )


def _brought(supply: Supply, about: Mapping[str, Any], worker: Worker) -> Supply:
    """Add what the process says that the plugin brings."""
    told = tuple(
        report(item["code"], Where(item["path"], item["line"]), item["message"], item["fix"])
        for item in about["diagnostics"]
        if item["code"] in RULES
    )
    supply = replace(
        supply,
        failed=about["failed"],
        flawed=about["flawed"],
        withdrawn=about["withdrawn"],
        diagnostics=tuple(dict.fromkeys((*supply.diagnostics, *told))),
    )
    if supply.failed:
        return supply
    return replace(
        supply,
        groups=tuple(_group(item) for item in about["groups"]),
        skills=tuple(about["skills"]),
        sections=tuple(about["sections"]),
        tools=tuple(_tool(item, worker) for item in about["tools"]),
        code=worker,
    )


def _group(told: Mapping[str, Any]) -> Group:
    lists = {key: tuple(told[key]) for key in ("tools", "skills", "requires")}
    return Group(told["name"], told["description"], told["notes"], told["active"], **lists)


def _tool(told: Mapping[str, Any], worker: Worker) -> ToolSupply:
    return ToolSupply(
        told["name"],
        told["description"],
        told["path"],
        told["version"],
        tuple(told["groups"]),
        WorkerTool(told, worker),
    )
