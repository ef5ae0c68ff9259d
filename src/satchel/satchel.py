"""The satchel: holds the current catalog, and brings it up to date when its sources change."""

import asyncio
import itertools
import logging
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar, Unpack

from satchel.catalog import (
    HOST,
    Catalog,
    CatalogStore,
    Change,
    Group,
    PluginContribution,
    ToolContribution,
    diff,
)
from satchel.contracts import PlanPolicy, ToolContract, bind_contract
from satchel.errors import ConflictError, DefinitionError, NotFoundError
from satchel.loader import LoaderConfig, ReconcileOptions, ScanCache, reconcile
from satchel.mcp_servers import DeclaredServer, Pin, RemoteClient, RemoteServer, RemoteTool
from satchel.mcp_servers.server_declarations import unique_server_names
from satchel.names import BASIC_GROUP, NamePatterns, group_names, near_misses, plugin_name_fault
from satchel.plugins import HostContract, notify_catalog_built
from satchel.plugins.config_binding import bind_state
from satchel.prompt import SkillPrompt
from satchel.runtime import Middleware, ScopedMiddleware
from satchel.server_registry import ServerRegistry
from satchel.session import Session, SessionOptions
from satchel.settings import Settings
from satchel.shared import Generation, SharedState
from satchel.sources import (
    ChangeEvent,
    Precedence,
    RootKind,
    SearchRoot,
    WatchTargets,
    change_events,
    project_selection_path,
    search_root,
)
from satchel.sources.configuration import fixed_folder
from satchel.tool_registration import (
    OnConflict,
    make_tool,
    registered,
    settled,
    supply_of,
)
from satchel.tool_registry import ToolRegistry
from satchel.tools import FunctionTool, Tool, ToolOptions, set_extended_model
from satchel.watch_thread import Changes, WatchThread
from satchel.workers import WorkerPool

_log = logging.getLogger("satchel")

# In times of the limit: a server that hangs is given up only once it has been ended, too.
_TO_SETTLE = 2

PathLike = str | os.PathLike[str]


class Satchel:
    """Carries the skills and tools of one application.

    `skills` and `plugins` are folders; `entry_points` names installed plugins (`"all"` for every
    one); `places` adds what `conventional_roots` returns. The user's `satchel.toml` switches on and
    off, and so does that of the folder `project`, if one is named. `config` has values for the
    state fields of tools, by plugin; they win over the environment and all files. With
    `run_code=False` no plugin is imported: everything is listed, nothing can be called.

    Nothing on disk makes this raise: what is wrong there is in `catalog.diagnostics`.
    """

    def __init__(
        self,
        skills: Iterable[PathLike] | PathLike = (),
        plugins: Iterable[PathLike] | PathLike = (),
        entry_points: Iterable[str] | str = (),
        *,
        places: Iterable[SearchRoot] = (),
        project: PathLike | None = None,
        config: Mapping[str, Mapping[str, Any]] | None = None,
        skill_style: SkillPrompt | None = None,
        settings: Settings | None = None,
        run_code: bool = True,
    ) -> None:
        settings = settings or Settings()
        self._settings = replace(settings, config_folder=fixed_folder(settings.config_folder))
        style = (skill_style or SkillPrompt()).within(self._settings.limits)
        self._workers = WorkerPool(self._settings.limits, self._weakly_hearing())
        weakref.finalize(self, self._workers.close)
        self._wanted = LoaderConfig(
            roots=_distinct(
                (
                    *(search_root(path, RootKind.SKILLS) for path in _several(skills)),
                    *(search_root(path, RootKind.PLUGINS) for path in _several(plugins)),
                    *places,
                )
            ),
            entry_points=frozenset(_several(entry_points)) - {"none"},
            host=_no_additions(),
            run_code=run_code,
            settings=self._settings,
            plugin_values={name: _values(name, given) for name, given in (config or {}).items()},
            workers=self._workers,
            project_selection=project_selection_path(project) if project is not None else "",
        )
        self._lock = threading.RLock()
        self._shared = SharedState(CatalogStore(), self._settings.limits, style)
        self._carrying: ServerRegistry | None = None
        self._look = ScanCache()
        self._listeners: list[Callable[[Change], object]] = []
        self._watch: WatchThread | None = None
        self._watchers = 0
        self._registrations = itertools.count(1)
        self._is_gathering = self._is_closed = False
        self._bring_up_to_date(ReconcileOptions(retry=True))

    @property
    def catalog(self) -> Catalog:
        """Return the newest generation; it never changes, a newer one takes its place."""
        return self._shared.catalog

    @property
    def catalog_cache(self) -> Generation:
        """Return the newest catalog with the values derived from it, for code that serves it."""
        return self._shared.newest

    def session(
        self,
        *,
        meta_tool: bool = True,
        skill_tools: bool = True,
        scripts: bool = False,
        search: bool | None = None,
        notes: Literal["prompt", "answer", "both"] = "both",
        enable: Iterable[str] | str = (),
        disable: Iterable[str] | str = (),
        plan_policy: PlanPolicy | None = None,
    ) -> Session:
        """Begin a conversation.

        The first four say which tools of its own it offers to the model: to choose tool groups,
        to load skills, to run their scripts, and to search; `None` searches only where much is
        out of sight. `notes` says where the notes of active groups go: into the prompt, into the
        answer of the meta tool, or both. `enable` and `disable` are patterns of names: tools of
        the catalog that fit none of the first, if there are any, or one of the second, are not
        there for this conversation. `plan_policy` is `Session.plan_policy`.
        """
        tools = NamePatterns(_several(enable) or None, _several(disable))
        options = SessionOptions(
            meta_tool=meta_tool,
            skill_tools=skill_tools,
            scripts=scripts,
            search=search,
            notes=notes,
            tools=tools,
        )
        return Session(self._shared, options, plan_policy)

    # ---- what the host adds in code -------------------------------------------------------

    def create_group(
        self,
        name: str,
        description: str = "",
        *,
        notes: str = "",
        active: bool = False,
        skills: Iterable[str] = (),
        requires: Iterable[str] = (),
    ) -> None:
        """Describe a tool group. Raises `ConflictError` if there is one of that name.

        `skills` are names of skills that are listed only while the group is active. `requires`
        are keys of the host's configuration, `config={"host": {...}}`, without which the group
        is unavailable.
        """
        if fault := plugin_name_fault(name) if isinstance(name, str) else "is no text":
            raise DefinitionError(f"the group name {name!r} {fault}")
        with self._lock:
            for taken in self.catalog.all_groups:
                # The user may have switched off the one that the host added.
                if taken.name == name and (taken.is_served or taken.source == HOST):
                    raise ConflictError(f"group {name!r} is already described by {taken.source!r}")
            group = Group(
                name=name,
                description=description,
                notes=notes,
                active=active,
                skills=group_names(skills),
                requires=group_names(requires),
            )
            self._add(groups=(*self._wanted.host.groups, group))

    def register_tool(
        self,
        tool: Tool | Callable[..., Any],
        *,
        on_conflict: OnConflict = "raise",
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Add a tool of the host's own.

        Its group, or groups, are `group`, or what `@tool` says, or `basic`. The other options are
        for functions. If the host already added a tool of that name, `on_conflict` says what
        happens: `raise` a `ConflictError`, `override` it, `skip` this one, or `rename` this one
        to `name_2`, `name_3` and so on. A plugin's tool of that name is shadowed, but for `skip`
        and `rename`, which mind every tool.

        Returns the tool that has the name now. Raises `NotFoundError` for a group that nobody
        described, and `DefinitionError` for what cannot be a tool.
        """
        group = options.pop("group", None)
        made = make_tool(tool, **options)
        with self._lock:
            made = self._with_state(made)
            where = group_names(group or made.group)
            for known in where:
                self.catalog.group(known)
            host = self._wanted.host
            made = settled(made, host.tools, self.catalog.tools, on_conflict)
            if (kept := registered(host.tools, made.name)) is not None and on_conflict == "skip":
                return kept
            if on_conflict == "skip" and (entry := self.catalog.tools.get(made.name)) is not None:
                return entry.tool or made
            supply = supply_of(made, where, f"registration {next(self._registrations)}")
            others = (item for item in host.tools if item.name != made.name)
            self._add(tools=(*others, supply))
        return made

    def _with_state(self, made: Tool) -> Tool:
        """Bind the state fields of a tool of the host's own."""
        if not isinstance(made, FunctionTool) or not made.state:
            return made
        config = self._wanted.configuration(HOST, (), self._look.scan.selection)
        keys = f'give presets={{...}}, or Satchel(config={{"{HOST}": {{...}}}})'
        return bind_state(made, config.values, keys)

    def register_middleware(
        self, middleware: Middleware, *, group: str | None = None, tool: str | None = None
    ) -> Callable[[], None]:
        """Put a layer around the calls of all tools, one group, or one tool; returns the undo.

        The broadest are outermost, and of equals the one that came first. Raises
        `DefinitionError` for what is no middleware.
        """
        layer = ScopedMiddleware(middleware, group, tool)
        with self._lock:
            self._shared.layers = (*self._shared.layers, layer)

        def undo() -> None:
            with self._lock:
                self._shared.layers = tuple(
                    item for item in self._shared.layers if item is not layer
                )

        return undo

    def register_contract(self, *contracts: ToolContract) -> None:
        """Hold the tool of each contract's name to it, whoever brings that tool, now or later.

        It takes the place of a contract that came with the tool. Raises `ConflictError` if the
        host already gave one for that name, and `DefinitionError` if the tool that is served now
        does not fit it: then nothing was registered. A tool that comes later and does not fit is
        left out.
        """
        with self._lock:
            held = dict(self._wanted.contracts)
            for contract in contracts:
                self._require_fitting(contract, held)
                version = f"registration {next(self._registrations)}"
                held[contract.name] = HostContract(contract, version)
            self._hold(held)

    def _require_fitting(self, contract: ToolContract, held: Mapping[str, HostContract]) -> None:
        if not isinstance(contract, ToolContract):
            raise DefinitionError(
                f"{type(contract).__name__} is no contract", fix="make a ToolContract"
            )
        if contract.name in held:
            raise ConflictError(
                f"the host already gave a contract of the tool {contract.name!r}",
                fix="call remove_contract first",
            )
        entry = self.catalog.tools.get(contract.name)
        if entry is not None and entry.tool is not None:
            bind_contract(entry.tool, contract)

    def remove_contract(self, name: str) -> None:
        """Take away the contract that the host gave for a tool; the tool's own counts again.

        Raises `NotFoundError` with the near misses.
        """
        with self._lock:
            self._require("contract", name, list(self._wanted.contracts))
            self._hold(_without(self._wanted.contracts, name))

    def _hold(self, contracts: Mapping[str, HostContract]) -> None:
        self._wanted = replace(self._wanted, contracts=contracts)
        self._bring_up_to_date(ReconcileOptions(dirty=frozenset(), in_background=True))

    def set_extended_model(self, tool: str | Tool, model: Any) -> None:
        """Let a tool that takes `**kwargs` also take the fields of a pydantic model.

        `None` takes them away again. It holds for whatever version of the tool is served. Raises
        `NotFoundError` for an unknown tool and `DefinitionError` for a clash with its own
        parameters; a clash that comes later with a new version costs that tool alone.
        """
        with self._lock:
            address, served = self._extended(tool if isinstance(tool, str) else tool.name)
            models = _without(self._wanted.models, address)
            if model is not None:
                _require_model(model)
                if served is not None:
                    set_extended_model(served, model)
                models[address] = model
            self._wanted = replace(self._wanted, models=models)
            self._bring_up_to_date(ReconcileOptions(dirty=frozenset(), in_background=True))

    def _extended(self, name: str) -> tuple[str, Tool | None]:
        """Return the address of a tool, and the tool unless its model costs it at the moment."""
        try:
            entry = self.catalog.tool(name)
        except NotFoundError:
            for address in self._wanted.models:
                if name in {address, address.rpartition(":")[2]}:
                    return address, None
            raise
        return entry.address, entry.tool

    @property
    def tools(self) -> ToolRegistry:
        """Return the served tools as a registry, whatever their groups."""
        return ToolRegistry(self, self._register_all)

    def register_skill(self, path: PathLike, *, group: str | Iterable[str] | None = None) -> None:
        """Add a skill folder, or a folder of them, as if it had been named at the start.

        With a `group`, or several, the skills are listed while one of them is active. Raises
        `NotFoundError` for a group that nobody described.
        """
        with self._lock:
            groups = group_names(group)
            for known in groups:
                self.catalog.group(known)
            added = replace(search_root(path, RootKind.SKILLS), groups=groups)
            others = [
                item
                for item in self._wanted.roots
                if (item.path, item.holds) != (added.path, added.holds) or not groups
            ]
            self._wanted = replace(self._wanted, roots=_distinct((*others, added)))
            self._bring_up_to_date(ReconcileOptions(dirty=frozenset(), in_background=True))

    def register_mcp_server(
        self,
        server: RemoteServer | RemoteClient | DeclaredServer,
        *,
        name: str | None = None,
        group: str | Iterable[str] | None = None,
        enable: Iterable[str] | None = None,
        disable: Iterable[str] | None = None,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: float | None = None,
        pin: Pin = "hold",
    ) -> str:
        """Carry a remote server: its tools are called like any other. Returns its name.

        They are in `group`, or in one of the server's name. Its skills are listed while `group` is
        active; without one, always. `enable` and `disable` are names of its tools, or patterns.
        `presets` are values by tool, `"*"` for all, that the model neither sees nor sets. Waits
        until the server answers, or is known not to within `Limits.mcp_connect`; one that is down
        is a diagnostic, and comes back by itself.

        Raises `ConflictError` for a name that is carried already, and `NotFoundError` for a group
        that nobody described.
        """
        if not self._wanted.run_code:
            raise ConflictError(
                "this satchel runs nothing, so it reaches no server", fix="leave out run_code=False"
            )
        with self._lock:
            self._require_open()
            where = group_names(group)
            for known in where:
                self.catalog.group(known)
            carrying = self._carrier()
            carried = carrying.made(
                server,
                name=name,
                groups=where,
                enable=enable,
                disable=disable,
                presets=presets,
                timeout=timeout,
                pin=pin,
            )
            member = carrying.add(carried)
        # Without the lock: the others go on meanwhile.
        member.wait(self._settings.limits.mcp_connect * _TO_SETTLE)
        self._hear()
        return carried.name

    @property
    def declared_mcp_servers(self) -> Mapping[str, DeclaredServer]:
        """Return the servers that enabled plugins and `satchel.toml` name, reached or not."""
        return unique_server_names(self._look.declared, ())

    def wait_for_mcp_servers(self, timeout: float | None = None) -> bool:
        """Wait until every server has listed its tools, or is known to be down.

        Those that plugins and `satchel.toml` name are reached while everything else goes on.
        Returns whether all are known; `timeout` is twice `Limits.mcp_connect` unless it is given.
        """
        seconds = self._settings.limits.mcp_connect * _TO_SETTLE if timeout is None else timeout
        is_known = self._carrying is None or self._carrying.wait(seconds)
        self._hear()
        return is_known

    def remove_mcp_servers(self, *names: str) -> None:
        """Carry servers no more; calls of theirs that run may end first.

        Raises `NotFoundError` with the near misses, and then removes none.
        """
        with self._lock:
            self._require_open()
            self._carrier().remove(names)
            self._hear()

    def approve_mcp_tools(
        self, server: str, *tools: str, digests: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Accept tools of a server as they are now, or all of them, under the server's names.

        `digests`, by tool, are those that their diagnostics tell: then only these are accepted.
        Returns those that were not as they were first seen. Raises `NotFoundError`, and
        `ConflictError` while the server is down, or if a tool is another than its digest says.
        """
        with self._lock:
            self._require_open()
            approved = self._carrier().approve(server, tools, digests)
            self._hear()
        return approved

    def _carrier(self) -> ServerRegistry:
        if self._carrying is None:
            self._carrying = ServerRegistry(self._settings, self._weakly_hearing())
            # Sessions may outlive the satchel, and their tools with them.
            weakref.finalize(self._shared, self._carrying.close)
        return self._carrying

    def _weakly_hearing(self) -> Callable[[], None]:
        """Return what has us take a look, and does not keep what nobody else has."""
        hear = weakref.WeakMethod(self._hear)

        def heard() -> None:
            if (found := hear()) is not None:
                found()

        return heard

    def _hear(self) -> None:
        """Take a look at what the remote servers offer."""
        with self._lock:
            if not self._is_closed:
                self._bring_up_to_date(ReconcileOptions(dirty=frozenset(), in_background=True))

    def remove_tool(self, name: str) -> None:
        """Remove a tool that the host added, or one of a remote server.

        Raises `NotFoundError` with the near misses.
        """
        with self._lock:
            if self._is_removed_from_server(name):
                return
            tools = self._wanted.host.tools
            self._require("tool", name, [supply.name for supply in tools])
            # What was added to it goes with it: the next tool of that name is another one.
            models = _without(self._wanted.models, f"{HOST}:{name}")
            self._wanted = replace(self._wanted, models=models)
            self._add(tools=tuple(supply for supply in tools if supply.name != name))

    def _is_removed_from_server(self, name: str) -> bool:
        """Remove a tool of a remote server, and tell whether it was one."""
        if self._carrying is None or registered(self._wanted.host.tools, name) is not None:
            return False
        entry = self.catalog.tools.get(name)
        if entry is None or not isinstance(entry.tool, RemoteTool):
            return False
        is_removed = self._carrying.without_tool(entry.source, entry.tool.definition.name)
        self._hear()
        return is_removed

    def remove_group(self, name: str) -> None:
        """Remove a group that the host described, with the host's tools and skills in it alone.

        Raises `NotFoundError` with the near misses, and `ConflictError` for `basic`.
        """
        if name == BASIC_GROUP:
            raise ConflictError(f"group {BASIC_GROUP!r} cannot be removed")
        with self._lock:
            host = self._wanted.host
            self._require("group", name, [group.name for group in host.groups])
            places = (_out_of(name, item) for item in self._wanted.roots)
            self._wanted = replace(self._wanted, roots=tuple(item for item in places if item))
            tools = (_out_of(name, supply) for supply in host.tools)
            self._add(
                groups=tuple(group for group in host.groups if group.name != name),
                tools=tuple(supply for supply in tools if supply),
            )

    def remove_skill(self, name: str) -> None:
        """Remove a skill whose own folder was named or registered.

        Raises `NotFoundError` with the near misses; a skill that was found in a folder of
        several goes when it is deleted there.
        """
        with self._lock:
            entry = self.catalog.skill(name)
            # One that another shadows may be meant: only a folder of its own can be taken out.
            paths = {item.path for item in self.catalog.all_skills if item.name == entry.name}
            own = {
                item
                for item in self._wanted.roots
                if item.holds is RootKind.SKILLS and item.path in paths
            }
            if entry.server:
                raise ConflictError(
                    f"skill {name!r} is of the MCP server {entry.server!r}",
                    fix=f'switch it off with disable = ["{entry.address}"], or remove the server',
                )
            if not own:
                raise ConflictError(
                    f"skill {name!r} was found in {entry.source!r}",
                    fix="delete its folder there, or do not name that folder",
                )
            places = tuple(item for item in self._wanted.roots if item not in own)
            self._wanted = replace(self._wanted, roots=places)
            self._bring_up_to_date(ReconcileOptions(dirty=frozenset(), in_background=True))

    def close(self) -> None:
        """Let go of everything: the catalog is empty from now on, and plugins are shut down.

        End your calls first. A satchel that is not closed shuts its plugins down when the
        interpreter ends.
        """
        with self._lock:
            self._is_closed = True
            lives = [entry.supply.life for entry in self.catalog.all_plugins if entry.supply.life]
            self._look = ScanCache()
            self._shared.publish(Catalog(self.catalog.generation + 1))
        if self._carrying is not None:
            self._carrying.close()
        self._workers.close()
        for life in lives:
            life.end()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ConflictError("this satchel is closed", fix="make a new one")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, **parts: Any) -> None:
        self._wanted = replace(self._wanted, host=replace(self._wanted.host, **parts))
        if not self._is_gathering:
            self._bring_up_to_date(ReconcileOptions(dirty=frozenset(), in_background=True))

    def _register_all(
        self, tools: Iterable[Tool | Callable[..., Any]], options: Mapping[str, Any]
    ) -> tuple[Tool, ...]:
        """Add several tools in one generation; none if one of them cannot be added."""
        with self._lock:
            before, self._is_gathering = self._wanted, True
            try:
                added = tuple(self.register_tool(tool, **options) for tool in tools)
            except BaseException:
                self._wanted = before
                raise
            finally:
                self._is_gathering = False
            self._add()
        return added

    def _require(self, kind: str, name: str, known: list[str]) -> None:
        if name not in known:
            raise NotFoundError(kind, name, near_misses(name, known))

    # ---- staying current ------------------------------------------------------------------

    def refresh(self) -> tuple[Change, ...]:
        """Look at every source once and return what changed; failed plugins are tried again.

        While a watch runs, a plugin that takes long to import is taken over by it later.
        """
        return self._bring_up_to_date(
            ReconcileOptions(retry=True, in_background=self._watch is not None)
        )

    def subscribe(self, listener: Callable[[Change], object]) -> Callable[[], None]:
        """Tell every change to `listener`, on the thread that publishes it; returns the undo."""
        self._listeners.append(listener)

        def undo() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return undo

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Changes]:
        """Keep `catalog` current until the block ends; yields an async iterator of the changes.

        Inside the block no change on disk is missed, whether or not the changes are read.
        """
        changes = Changes()
        undo = self.subscribe(changes.put)
        thread = self._start_watching()
        try:
            await asyncio.to_thread(thread.wait_until_ready)
            yield changes
        finally:
            undo()
            changes.close()
            await asyncio.shield(asyncio.to_thread(self._stop_watching))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep `catalog` current until the block ends, for code without an event loop."""
        thread = self._start_watching()
        try:
            thread.wait_until_ready()
            yield
        finally:
            self._stop_watching()

    def _start_watching(self) -> WatchThread:
        """Watch with one thread, however many ask."""
        with self._lock:
            self._require_open()
            self._watchers += 1
            if self._watch is None:
                self._watch = WatchThread(self._hints, self._take)
                self._watch.start()
            return self._watch

    def _stop_watching(self) -> None:
        with self._lock:
            self._watchers -= 1
            thread = self._watch if self._watchers == 0 else None
            self._watch = None if thread else self._watch
        if thread is not None:
            thread.stop()

    def _hints(self, stop: threading.Event) -> Iterable[ChangeEvent]:
        polling = self._settings.polling or bool(os.environ.get("WATCHFILES_FORCE_POLLING"))
        pace = self._settings.pace
        return change_events(self._watched, stop, pace, polling=polling)

    def _watched(self) -> WatchTargets:
        return self._look.watch_targets()

    def _take(self, hint: ChangeEvent) -> None:
        asked = ReconcileOptions(
            dirty=hint.paths, debounce=True, in_background=True, diagnostics=hint.trouble
        )
        with self._lock:
            if not self._is_closed:
                self._bring_up_to_date(asked)

    def _bring_up_to_date(self, asked: ReconcileOptions) -> tuple[Change, ...]:
        """Take a look, publish what is new, tell the listeners."""
        with self._lock:
            self._require_open()
            old = self.catalog
            servers = self._carrying.offered() if self._carrying else ()
            wanted = replace(self._wanted, servers=servers)
            self._look, new = reconcile(wanted, self._look, old, asked)
            self._settle_servers()
            if new is old:
                return ()
            self._shared.publish(new)
            notify_catalog_built(new)
            changes = diff(old, new)
            for change in changes:
                self._tell(change)
            return changes

    def _settle_servers(self) -> None:
        """Carry the servers that are written down; what they offer comes with a later look."""
        declared = self._look.declared if self._wanted.connects_servers else ()
        if (declared or self._carrying is not None) and self._carrier().settle(declared):
            self._carrier().poke()

    def _tell(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                _log.exception("a listener failed on %s", change)


def _values(plugin: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise DefinitionError(
            f"config has a {type(given).__name__} for {plugin!r}, not keys and values",
            fix='write Satchel(config={"plugin": {"key": value}})',
        )
    return dict(given)


M = TypeVar("M", ToolContribution, SearchRoot)


def _out_of(group: str, member: M) -> M | None:
    """Return a member that has left a group, or `None` if it was in no other."""
    if group not in member.groups:
        return member
    rest = tuple(name for name in member.groups if name != group)
    return replace(member, groups=rest) if rest else None


def _without(models: Mapping[str, Any], address: str) -> dict[str, Any]:
    return {name: model for name, model in models.items() if name != address}


def _require_model(model: Any) -> None:
    if not (isinstance(model, type) and hasattr(model, "model_fields")):
        raise DefinitionError(
            f"further arguments are described by a pydantic model, not by {model!r}",
            fix="write a subclass of pydantic.BaseModel",
        )


def _several(given: Iterable[Any] | PathLike) -> tuple[Any, ...]:
    """Accept one path or name where several are meant: a string is not a list of letters."""
    return (given,) if isinstance(given, str | os.PathLike) else tuple(given)


def _distinct(places: Iterable[SearchRoot]) -> tuple[SearchRoot, ...]:
    """Keep the first of each folder, whatever it is called."""
    first: dict[tuple[str, RootKind], SearchRoot] = {}
    for item in places:
        first.setdefault((item.path, item.holds), item)
    return tuple(first.values())


def _no_additions() -> PluginContribution:
    return PluginContribution(
        name=HOST,
        source=HOST,
        scope=Precedence.EXPLICIT,
        path=HOST,
        unit=HOST,
        rank=(-1, HOST),
        digest="",
    )
