"""The application's object: it holds the current catalog and updates it from its sources."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack

from satchel.catalog import (
    HOST,
    Catalog,
    CatalogStore,
    EntryFilter,
    Group,
    PluginContribution,
    ToolContribution,
    diff,
    unmatched_patterns,
)
from satchel.diagnostics import Severity
from satchel.errors import ConflictError, DefinitionError, NotFoundError
from satchel.loader import LoaderConfig, ReconcileOptions, ScanCache, reconcile
from satchel.loader.name_choices import served_names, with_owned_names
from satchel.names import BASIC_GROUP, group_names, plugin_name_fault, require_known
from satchel.plugins import HostContract, notify_catalog_built
from satchel.prompt import SkillPrompt
from satchel.provider_registry import ProviderRegistry
from satchel.settings import Settings
from satchel.shared import SharedState
from satchel.sources import (
    Precedence,
    RootKind,
    SearchRoot,
    search_root,
)
from satchel.sources.configuration import fixed_folder
from satchel.sources.name_owners import NameOwners
from satchel.sources.projects import Project
from satchel.tool_registration import (
    host_contribution,
    make_tool,
    registered,
    with_unique_name,
)
from satchel.workers import WorkerPool

if TYPE_CHECKING:
    from satchel.catalog import (
        Change,
    )
    from satchel.contracts import PlanPolicy, ToolContract
    from satchel.formats.lock_file import Lock
    from satchel.loader.lock_guard import LockGuard
    from satchel.mcp_servers import (
        Pin,
        RemoteClient,
        RemoteServer,
        ServerConfig,
        ServerOptions,
    )
    from satchel.mcp_servers.client_callbacks import AskHost
    from satchel.mcp_servers.pin_store import ToolDrift
    from satchel.providers import Provider, Skill
    from satchel.runtime import Middleware
    from satchel.runtime.error_results import ErrorText
    from satchel.runtime.program_runner import ProgramRunner
    from satchel.server_registry import ServerRegistry, ServerState
    from satchel.session import Session
    from satchel.shared import CatalogCache
    from satchel.sources import (
        ChangeEvent,
        WatchTargets,
    )
    from satchel.tool_registration import (
        OnConflict,
    )
    from satchel.tool_registry import ToolRegistry
    from satchel.tools import Tool, ToolOptions
    from satchel.tools.runner import Runner
    from satchel.watch_thread import Changes, ImportRetry, WatchThread

# Wait for twice the time: a server that hangs is stopped only after its time for starting.
_CONNECT_FACTOR = 2

PathLike = str | os.PathLike[str]


class Satchel:
    """Manages the skills and tools of one application.

    `skills` and `plugins` are folders; `entry_points` names installed plugins (`"all"` for every
    one); `providers`, one or several, contribute skills, plugins, tools and groups; `roots` are
    further folders to search, such as those of `conventional_roots`. The user's `satchel.toml`
    enables and disables things. The folder `project` adds its conventional folders, `satchel.toml`
    and `.mcp.json`, as far as it is trusted: by the user's record, or by a `Project` with
    `trust="data"` or `trust="code"`. `config` has values for the state
    fields of tools, by plugin; they win over the environment and all files. With `run_code=False`
    no plugin is imported: everything is listed, nothing can be called. `errors` says what the model
    reads of an unexpected exception: an id of the log, its type and text without secrets, or what a
    function of the tool's name and the exception returns. `on_elicit` and `on_sample` answer MCP
    servers that ask for input of the user, or for a message of a model: each gets the server's name
    and the parameters of `elicitation/create` or `sampling/createMessage`, and returns the result.
    `runner` runs scripts of skills and commands of the built-in tools. `locked` is the path of a
    lock file: raises `SatchelError` if anything differs from it, and never serves what differs
    later. With `frozen` as well, only something missing raises, and nothing is watched.

    Problems on disk never raise; they are in `catalog.diagnostics`.
    """

    def __init__(
        self,
        skills: Iterable[PathLike] | PathLike = (),
        plugins: Iterable[PathLike] | PathLike = (),
        entry_points: Iterable[str] | str = (),
        *,
        providers: Iterable[Provider] | Provider = (),
        roots: Iterable[SearchRoot] = (),
        project: Project | PathLike | None = None,
        config: Mapping[str, Mapping[str, Any]] | None = None,
        skill_style: SkillPrompt | None = None,
        settings: Settings | None = None,
        run_code: bool = True,
        errors: ErrorText = "summary",
        on_elicit: AskHost | None = None,
        on_sample: AskHost | None = None,
        runner: ProgramRunner | None = None,
        locked: PathLike | None = None,
        frozen: bool = False,
    ) -> None:
        if errors not in {"summary", "message"} and not callable(errors):
            raise DefinitionError(
                f"errors must be 'summary', 'message' or a function, not {errors!r}",
                fix="a function takes the tool's name and the exception, and returns a text",
            )
        settings = settings or Settings()
        if locked is not None:
            settings = replace(settings, cache=False)  # what is compared must be read
        self._settings = replace(settings, config_folder=fixed_folder(settings.config_folder))
        style = (skill_style or SkillPrompt()).within(self._settings.limits)
        self._workers = WorkerPool(self._settings.limits, self._weak_callback(), errors)
        weakref.finalize(self, self._workers.close)
        self._config = LoaderConfig(
            roots=_distinct(
                (
                    *(search_root(path, RootKind.SKILLS) for path in _as_tuple(skills)),
                    *(search_root(path, RootKind.PLUGINS) for path in _as_tuple(plugins)),
                    *roots,
                )
            ),
            entry_points=frozenset(_as_tuple(entry_points)) - {"none"},
            host=_empty_host(),
            run_code=run_code,
            settings=self._settings,
            plugin_values={name: _values(name, given) for name, given in (config or {}).items()},
            workers=self._workers,
            project=_project(project),
            owners=NameOwners(self._settings.state_folder),
            lock=_lock_guard(locked, is_frozen=frozen),
        )
        self._lock = threading.RLock()
        self._shared = SharedState(CatalogStore(), self._settings.limits, style, errors)
        if self._settings.sandbox.mode not in {"auto", "required", "off"}:
            raise DefinitionError(
                f"the mode of a sandbox must be auto, required or off, "
                f"not {self._settings.sandbox.mode!r}"
            )
        if runner is not None and not callable(getattr(runner, "run", None)):
            raise DefinitionError(
                f"{type(runner).__name__} is not a runner of programs",
                fix="pass an object with 'async def run(self, program)'",
            )
        self._shared.programs = runner, self._settings.sandbox
        self._servers: ServerRegistry | None = None
        self._on_elicit, self._on_sample = on_elicit, on_sample
        self._providers = ProviderRegistry(self._settings.limits, self._weak_callback())
        for provider in _providers(providers):
            self._providers.add(provider)
        self._cache = ScanCache()
        self._listeners: list[Callable[[Change], object]] = []
        self._watch: WatchThread | None = None
        self._watchers = 0
        self._registrations = itertools.count(1)
        self._is_batching = self._is_closed = False
        self._import_retry: ImportRetry | None = None
        wait = settings.plugin_wait
        until = None if wait is None else time.monotonic() + wait
        self._reconcile(ReconcileOptions(retry=True, wait_until=until))
        if self._config.lock is not None:
            self._require_locked(self._config.lock)

    @property
    def catalog(self) -> Catalog:
        """The newest catalog. It is immutable; a newer one replaces it."""
        return self._shared.catalog

    @property
    def catalog_cache(self) -> CatalogCache:
        """The newest catalog with the values derived from it, for code that serves it."""
        return self._shared.newest

    def session(
        self,
        *,
        meta_tool: bool = True,
        skill_tools: bool = True,
        scripts: bool = False,
        search: bool | None = None,
        defer_loading: bool = False,
        notes: Literal["prompt", "answer", "both"] = "both",
        allowed_tools: Literal["note", "enforce"] = "note",
        enable: Iterable[str] | str = (),
        disable: Iterable[str] | str = (),
        plan_policy: PlanPolicy | None = None,
    ) -> Session:
        """Begin a conversation.

        The first four choose the built-in tools: to activate tool groups, load skills, run their
        scripts, and search. With `search=None`, search is offered only if many tools or
        skills are not shown. With `defer_loading`, the model may call the tools of all groups:
        providers that can search tools get the schemas of inactive groups to load later, and for
        others these are left out.
        `notes` says where the notes of active groups go: into the prompt, into the answer of the
        meta tool, or both. With `allowed_tools="enforce"`, a loaded skill that names
        `allowed-tools` restricts the conversation to these and to the built-in tools; several such
        skills allow what any of them allows. `enable` and `disable` are patterns as in
        `satchel.toml`. This conversation has only tools and skills that match `enable`, if given,
        and do not match `disable`; `tool:read_*` and `skill:*` count for one kind. A string is one
        pattern. A pattern of `enable` that matches nothing now is logged, because it hides
        everything.
        `plan_policy` sets `Session.plan_policy`.
        """
        from satchel.session import Session, SessionOptions  # lazy: needed only with a session

        enabled = _patterns("enable", enable)
        options = SessionOptions(
            meta_tool=meta_tool,
            skill_tools=skill_tools,
            scripts=scripts,
            search=search,
            defer_loading=defer_loading,
            notes=notes,
            allowed_tools=allowed_tools,
            entries=EntryFilter.of(enabled, _patterns("disable", disable)),
        )
        for warning in unmatched_patterns(enabled, self.catalog):
            import logging  # lazy: a warning is rare

            logging.getLogger("satchel").warning("session(enable=...): %s", warning)
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
        """Add a tool group. Raises `ConflictError` if the name is taken.

        `skills` are names of skills that are listed only while the group is active. `requires`
        are keys of the host's configuration, `config={"host": {...}}`, without which the group
        is unavailable.
        """
        if fault := plugin_name_fault(name) if isinstance(name, str) else "is not a string":
            raise DefinitionError(f"the group name {name!r} {fault}")
        with self._lock:
            for taken in self.catalog.all_groups:
                # The user may have disabled the host's group of that name.
                if taken.name == name and (taken.is_served or taken.source == HOST):
                    raise ConflictError(
                        f"group {name!r} already exists; its source is {taken.source!r}"
                    )
            group = Group(
                name=name,
                description=description,
                notes=notes,
                active=active,
                skills=group_names(skills),
                requires=group_names(requires),
            )
            self._update_host(groups=(*self._config.host.groups, group))

    def register_tool(
        self,
        tool: Tool | Callable[..., Any],
        *,
        on_conflict: OnConflict = "raise",
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Add a tool of the application.

        It belongs to `group` (one or several), or the groups given to `@tool`, or `basic`. The
        other options are for functions. If the application already added a tool of that name,
        `on_conflict` says what happens: `raise` a `ConflictError`, `override` it, `skip` this one,
        or `rename` this one to `name_2`, `name_3` and so on. A plugin's tool of that name is
        shadowed, except with `skip` and `rename`, which consider every tool.

        Returns the tool that has the name now. Raises `NotFoundError` for an unknown group, and
        `DefinitionError` for an invalid tool.
        """
        from satchel.tools.tool_bounds import bounded_definition  # lazy: needed only with tools

        group = options.pop("group", None)
        new_tool = make_tool(tool, **options)
        with self._lock:
            new_tool = self._with_state(new_tool)
            bounded_definition(new_tool, self._settings.limits)
            groups = group_names(group or new_tool.group)
            self._require_groups(groups)
            host = self._config.host
            new_tool = with_unique_name(new_tool, host.tools, self.catalog.tools, on_conflict)
            name = new_tool.name
            if on_conflict == "skip":
                if (existing := registered(host.tools, name)) is not None:
                    return existing
                if (entry := self.catalog.tools.get(name)) is not None:
                    return entry.tool or new_tool
            version = f"registration {next(self._registrations)}"
            contribution = host_contribution(new_tool, groups, version)
            others = (item for item in host.tools if item.name != name)
            self._update_host(tools=(*others, contribution))
        return new_tool

    def _require_groups(self, names: Iterable[str]) -> None:
        for name in names:
            self.catalog.group(name)  # raises NotFoundError

    def _with_state(self, tool: Tool) -> Tool:
        from satchel.plugins import bind_state  # lazy: needed only with tools
        from satchel.tools import FunctionTool

        if not isinstance(tool, FunctionTool) or not tool.state:
            return tool
        config = self._config.configuration(HOST, (), self._cache.selection)
        fix = f'pass presets={{...}}, or Satchel(config={{"{HOST}": {{...}}}})'
        return bind_state(tool, config.values, fix)

    def register_middleware(
        self, middleware: Middleware, *, group: str | None = None, tool: str | None = None
    ) -> Callable[[], None]:
        """Add middleware for all tools, one group, or one tool; returns a function that removes it.

        The widest scope is outermost; in one scope, the first added. Raises `DefinitionError` if
        it is not middleware.
        """
        from satchel.runtime import ScopedMiddleware  # lazy: needed only with middleware

        scoped = ScopedMiddleware(middleware, group, tool)
        with self._lock:
            self._shared.middleware = (*self._shared.middleware, scoped)

        def undo() -> None:
            with self._lock:
                self._shared.middleware = tuple(
                    item for item in self._shared.middleware if item is not scoped
                )

        return undo

    def register_runner(
        self,
        runner: Runner,
        *,
        group: str | None = None,
        tool: str | None = None,
        name: str | None = None,
    ) -> Callable[[], None]:
        """Run the tools of plugins elsewhere: all, those of one group, or one tool.

        With `name`, only tools that ask for a runner of this name. The runner gets validated calls,
        after contracts, approval and middleware, in place of the function. Tools of the host and of
        sessions run here. Returns a function that removes it.
        """
        from satchel.runtime.scoped_runner import ScopedRunner  # lazy: few hosts have runners

        scoped = ScopedRunner(runner=runner, group=group, tool=tool, name=name)
        with self._lock:
            self._shared.runners = (*self._shared.runners, scoped)

        def undo() -> None:
            with self._lock:
                self._shared.runners = tuple(
                    item for item in self._shared.runners if item is not scoped
                )

        return undo

    def register_contract(self, *contracts: ToolContract) -> None:
        """Bind each contract to the tool of its name, whatever its source, now or later.

        It replaces a contract that came with the tool. Raises `ConflictError` if the application
        already registered one for that name, and `DefinitionError` if the tool that is served now
        does not fit; then nothing is registered. A later tool that does not fit is left out.
        """
        with self._lock:
            registered_contracts = dict(self._config.contracts)
            for contract in contracts:
                self._require_fitting(contract, registered_contracts)
                version = f"registration {next(self._registrations)}"
                registered_contracts[contract.name] = HostContract(contract, version)
            self._update(contracts=registered_contracts)

    def _require_fitting(
        self, contract: ToolContract, registered_contracts: Mapping[str, HostContract]
    ) -> None:
        from satchel.contracts import ToolContract, bind_contract  # lazy: only with contracts

        if not isinstance(contract, ToolContract):
            raise DefinitionError(
                f"{type(contract).__name__} is not a contract", fix="pass a ToolContract"
            )
        if contract.name in registered_contracts:
            raise ConflictError(
                f"the host already registered a contract for the tool {contract.name!r}",
                fix="call remove_contract first",
            )
        entry = self.catalog.tools.get(contract.name)
        if entry is not None and entry.tool is not None:
            bind_contract(entry.tool, contract)

    def remove_contract(self, name: str) -> None:
        """Remove a registered contract; the tool's own contract applies again.

        Raises `NotFoundError` with the near misses.
        """
        with self._lock:
            require_known("contract", name, self._config.contracts)
            self._update(contracts=_without(self._config.contracts, name))

    def set_extended_model(self, tool: str | Tool, model: Any) -> None:
        """Add the fields of a pydantic model to the arguments of a tool that takes `**kwargs`.

        `None` removes them. The model applies to every version of the tool. Raises `NotFoundError`
        for an unknown tool and `DefinitionError` for a clash with its own parameters. If a later
        version clashes, only that tool is left out.
        """
        from satchel.tools import set_extended_model  # lazy: needed only with tools

        with self._lock:
            address, served = self._find_extensible(tool if isinstance(tool, str) else tool.name)
            models = _without(self._config.models, address)
            if model is not None:
                _require_model(model)
                if served is not None:
                    set_extended_model(served, model)
                models[address] = model
            self._update(models=models)

    def _find_extensible(self, name: str) -> tuple[str, Tool | None]:
        """Return the address of a tool, and the tool.

        The tool is `None` if its current model clashes with it, so that it is not served.
        """
        try:
            entry = self.catalog.tool(name)
        except NotFoundError:
            for address in self._config.models:
                if name in {address, address.rpartition(":")[2]}:
                    return address, None
            raise
        return entry.address, entry.tool

    @property
    def tools(self) -> ToolRegistry:
        """The served tools as a registry, whatever their groups."""
        from satchel.tool_registry import ToolRegistry  # lazy: needed only with tools

        return ToolRegistry(self, self._register_all)

    def register_skill(
        self, skill: PathLike | Skill, *, group: str | Iterable[str] | None = None
    ) -> None:
        """Add a skill folder, a folder of them, or a skill that is given in code.

        With `group` (one or several), the skills are listed while one of these groups is active.
        Raises `NotFoundError` for an unknown group, and for a `Skill` `DefinitionError` if it is
        invalid and `ConflictError` if the application already gave one of that name.
        """
        from satchel.providers import Skill  # lazy: needed only with skills

        with self._lock:
            groups = group_names(group)
            self._require_groups(groups)
            if isinstance(skill, Skill):
                self._register_given_skill(replace(skill, groups=(*skill.groups, *groups)))
                return
            added = replace(search_root(skill, RootKind.SKILLS), groups=groups)
            others = [
                item
                for item in self._config.roots
                if (item.path, item.holds) != (added.path, added.holds) or not groups
            ]
            self._update(roots=_distinct((*others, added)))

    def _register_given_skill(self, skill: Skill) -> None:
        from satchel.providers import find_skill  # lazy: needed only with skills in code

        finding = find_skill(skill, HOST, Precedence.EXPLICIT, self._settings.limits)
        if finding.manifest is None:
            problem = next(item for item in finding.diagnostics if item.severity == Severity.ERROR)
            raise DefinitionError(f"skill {skill.name!r}: {problem.message}", fix=problem.fix)
        if any(item.path == finding.path for item in self._config.host_skills):
            raise ConflictError(
                f"a skill {skill.name!r} was registered already", fix="call remove_skill first"
            )
        self._update(host_skills=(*self._config.host_skills, finding))

    def add_provider(self, provider: Provider) -> None:
        """Add a provider, and ask it.

        Raises `DefinitionError` if it is not a provider, and `ConflictError` for a name that is
        taken. What it raises later is a diagnostic.
        """
        with self._lock:
            self._require_open()
            self._providers.add(provider)
            self._reconcile(ReconcileOptions(dirty=frozenset()))

    def remove_provider(self, *names: str) -> None:
        """Remove providers, with what they contribute.

        Raises `NotFoundError` with the near misses, and then removes none.
        """
        with self._lock:
            self._providers.remove(names)
            self._update()

    def register_mcp_server(
        self,
        server: RemoteServer | RemoteClient | ServerConfig,
        *,
        name: str | None = None,
        group: str | Iterable[str] | None = None,
        enable: Iterable[str] | None = None,
        disable: Iterable[str] | None = None,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        timeout: float | None = None,
        pin: Pin = "hold",
        options: ServerOptions | None = None,
        identity: str | None = None,
    ) -> str:
        """Connect an MCP server, and return its name. Its tools are called like any other.

        They belong to `group`, or to a group of the server's name. Its skills are listed while
        `group` is active; without one, always. `enable` and `disable` are names or patterns of its
        tools. `presets` are values by tool, `"*"` for all, that the model neither sees nor sets.
        `options` say how it is started, and rename and describe its tools. Approvals of its tools
        are kept by `name`, and by its command or address without one. `identity` stands for these
        where an argument varies, such as a port. Waits until the server answers or its time for
        starting has passed. A server that is down is a diagnostic, and is connected again
        automatically.

        Raises `ConflictError` for a name that is taken, and `NotFoundError` for an unknown group.
        """
        if not self._config.run_code:
            raise ConflictError(
                "this satchel runs no code, so it connects no server",
                fix="leave out run_code=False",
            )
        with self._lock:
            self._require_open()
            groups = group_names(group)
            self._require_groups(groups)
            registry = self._server_registry()
            server_config = registry.create(
                server,
                name=name,
                groups=groups,
                enable=enable,
                disable=disable,
                presets=presets,
                timeout=timeout,
                pin=pin,
                options=options,
                identity=identity,
            )
            handle = registry.add(server_config)
        # Without the lock, so that other threads can continue.
        handle.wait(handle.start_seconds * _CONNECT_FACTOR)
        self._refresh_in_background()
        return server_config.name

    @property
    def declared_mcp_servers(self) -> Mapping[str, ServerConfig]:
        """The MCP servers that enabled plugins and `satchel.toml` name, connected or not."""
        if not self._cache.declared:
            return {}
        # Lazy: needed only with MCP servers.
        from satchel.mcp_servers.server_declarations import unique_server_names

        return unique_server_names(self._cache.declared, ())

    @property
    def mcp_server_states(self) -> tuple[ServerState, ...]:
        """The state of each MCP server now: whether it is up, why not, and the end of its log."""
        return self._servers.states() if self._servers else ()

    def wait_for_mcp_servers(self, timeout: float | None = None) -> bool:
        """Wait until every MCP server has listed its tools or is known to be down.

        Servers that plugins and `satchel.toml` name are connected in the background. Returns
        whether the state of all is known; `timeout` defaults to twice the time for starting.
        """
        is_known = self._servers is None or self._servers.wait(timeout)
        self._refresh_in_background()
        return is_known

    def remove_mcp_servers(self, *names: str) -> None:
        """Disconnect MCP servers; running calls may end first.

        Raises `NotFoundError` with the near misses, and then removes none.
        """
        with self._lock:
            self._require_open()
            self._server_registry().remove(names)
            self._refresh_in_background()

    def approve_mcp_tools(
        self, server: str, *tools: str, digests: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Approve the current definitions of a server's tools; without names, of all its tools.

        `tools` are the names that the server uses; `"@instructions"` stands for its instructions,
        which are approved as a tool is. With `digests` by tool, as shown in their
        diagnostics, a tool is approved only if it has that digest. Returns the tools that had
        changed. Raises `NotFoundError`, and `ConflictError` while the server is down or if a
        digest does not match.
        """
        with self._lock:
            self._require_open()
            approved = self._server_registry().approve(server, tools, digests)
            self._refresh_in_background()
        return approved

    def mcp_drift(self, server: str) -> Mapping[str, ToolDrift]:
        """Return how what a server offers differs from what was approved, by tool.

        `"@instructions"` stands for its instructions. Raises `NotFoundError`.
        """
        with self._lock:
            self._require_open()
            return self._server_registry().drift(server)

    def _server_registry(self) -> ServerRegistry:
        from satchel.server_registry import ServerRegistry  # lazy: needed only with MCP servers

        if self._servers is None:
            # Lazy: needed only with MCP servers.
            from satchel.mcp_servers.client_callbacks import ClientCallbacks

            callbacks = ClientCallbacks(
                on_elicit=self._on_elicit,
                on_sample=self._on_sample,
                asks_clients=self._settings.ask_mcp_clients,
            )
            self._servers = ServerRegistry(self._settings, self._weak_callback(), callbacks)
            # Sessions, and their tools, may outlive this object.
            weakref.finalize(self._shared, self._servers.close)
        return self._servers

    def _weak_callback(self, **options: Any) -> Callable[[], None]:
        """Return a callback that refreshes this instance, and does not keep it alive."""
        reference = weakref.WeakMethod(self._refresh_in_background)

        def refresh() -> None:
            if (method := reference()) is not None:
                method(**options)

        return refresh

    def _refresh_in_background(
        self, dirty: frozenset[str] | None = frozenset(), **options: Any
    ) -> None:
        """Update the catalog with what servers, providers and workers contribute now."""
        with self._lock:
            if not self._is_closed:
                self._reconcile(ReconcileOptions(dirty=dirty, in_background=True, **options))

    @property
    def _has_late_imports(self) -> bool:
        return any(item.code == "plugin-import-timeout" for item in self.catalog.diagnostics)

    def remove_tool(self, name: str) -> None:
        """Remove a tool that the application added, or a tool of an MCP server.

        Raises `NotFoundError` with the near misses.
        """
        with self._lock:
            if self._remove_from_server(name):
                return
            tools = self._config.host.tools
            require_known("tool", name, [contribution.name for contribution in tools])
            # Its model is removed, too: the next tool of that name is another one.
            models = _without(self._config.models, f"{HOST}:{name}")
            self._config = replace(self._config, models=models)
            self._update_host(
                tools=tuple(contribution for contribution in tools if contribution.name != name)
            )

    def _remove_from_server(self, name: str) -> bool:
        """Remove a tool of an MCP server; return whether it was one."""
        if self._servers is None or registered(self._config.host.tools, name) is not None:
            return False
        entry = self.catalog.tools.get(name)
        if entry is None or entry.tool is None or not entry.tool.is_remote:
            return False
        is_removed = self._servers.remove_tool(entry.source, entry.tool.own_name)
        self._refresh_in_background()
        return is_removed

    def remove_group(self, name: str) -> None:
        """Remove a group that the application added.

        Tools and skills that are in no other group are removed, too. Raises `NotFoundError` with
        the near misses, and `ConflictError` for `basic`.
        """
        if name == BASIC_GROUP:
            raise ConflictError(f"group {BASIC_GROUP!r} cannot be removed")
        with self._lock:
            host = self._config.host
            require_known("group", name, [group.name for group in host.groups])
            roots = (_without_group(name, item) for item in self._config.roots)
            self._config = replace(self._config, roots=tuple(item for item in roots if item))
            tools = (_without_group(name, contribution) for contribution in host.tools)
            self._update_host(
                groups=tuple(group for group in host.groups if group.name != name),
                tools=tuple(contribution for contribution in tools if contribution),
            )

    def remove_skill(self, name: str) -> None:
        """Remove a skill that was given in code, or whose own folder was given or registered.

        Raises `NotFoundError` with the near misses, and `ConflictError` for a skill that was found
        in a folder of several: delete it there.
        """
        with self._lock:
            entry = self.catalog.skill(name)
            remaining = tuple(item for item in self._config.host_skills if item.path != entry.path)
            if len(remaining) < len(self._config.host_skills):
                self._update(host_skills=remaining)
                return
            # A shadowed skill may be meant: only a skill's own folder can be removed.
            paths = {item.path for item in self.catalog.all_skills if item.name == entry.name}
            own_roots = {
                item
                for item in self._config.roots
                if item.holds is RootKind.SKILLS and item.path in paths
            }
            if entry.access.origin:
                raise ConflictError(
                    f"skill {name!r} comes from {entry.access.origin}",
                    fix=f'disable it with disable = ["{entry.address}"], or remove its source',
                )
            if not own_roots:
                raise ConflictError(
                    f"skill {name!r} was found in {entry.source!r}",
                    fix="delete its folder there, or remove that folder from the sources",
                )
            self._update(roots=tuple(it for it in self._config.roots if it not in own_roots))

    def configure(self, plugin: str, **values: Any) -> None:
        """Change values of a plugin's configuration; they win over the environment and all files.

        `plugin` need not be loaded yet. A value of `None` removes what was given in code before, so
        that the environment and the files count again. A plugin with a startup is started again.
        """
        self._require_open()
        with self._lock:
            given = {**self._config.plugin_values.get(plugin, {}), **_values(plugin, values)}
            kept = {key: value for key, value in given.items() if value is not None}
            self._update(plugin_values={**self._config.plugin_values, plugin: kept})

    def close(self) -> None:
        """Release everything: the catalog becomes empty, and plugins are shut down.

        End running calls first. Without `close`, plugins are shut down when the interpreter ends.
        """
        with self._lock:
            self._is_closed = True
            lifecycles = [
                entry.contribution.lifecycle
                for entry in self.catalog.all_plugins
                if entry.contribution.lifecycle
            ]
            self._cache = ScanCache()
            self._shared.publish(Catalog(generation=self.catalog.generation + 1))
        if self._servers is not None:
            self._servers.close()
        self._workers.close()
        self._shared.background_loop.stop()
        for lifecycle in lifecycles:
            lifecycle.end()

    def lock_contents(self, file: PathLike = "satchel.lock") -> Lock:
        """Return what a lock file at this path would contain now; its `text` is the file.

        Tools of MCP servers are in it if they are connected.
        """
        # Lazy: needed only with a lock file.
        from satchel.loader.lock_entries import lock_of, lock_places

        guard = self._config.lock
        with self._lock:
            declared = guard.declared if guard else self._cache.declared
            offered = self._servers.offered() if self._servers else ()
            return lock_of(self._cache, declared, offered, lock_places(file))

    def require_locked(self) -> None:
        """Compare everything with the lock file again, with the tools of MCP servers.

        Raises `SatchelError` for a difference; if frozen, only for something that is missing.
        """
        if (guard := self._config.lock) is not None:
            guard.require(self.lock_contents(guard.file), with_tools=True)

    def _require_locked(self, guard: LockGuard) -> None:
        """Compare everything but the tools of servers with the lock file."""
        try:
            guard.require(self.lock_contents(guard.file))
        except BaseException:
            self.close()
            raise

    def _require_open(self) -> None:
        if self._is_closed:
            raise ConflictError("this satchel is closed", fix="create a new one")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _update_host(self, **parts: Any) -> None:
        self._update(host=replace(self._config.host, **parts))

    def _update(self, **parts: Any) -> None:
        """Change what is loaded, and load it."""
        self._config = replace(self._config, **parts)
        if not self._is_batching:
            self._reconcile(ReconcileOptions(dirty=frozenset(), in_background=True))

    def _register_all(
        self, tools: Iterable[Tool | Callable[..., Any]], options: Mapping[str, Any]
    ) -> tuple[Tool, ...]:
        """Add several tools at once; none if one of them cannot be added."""
        with self._lock:
            before, self._is_batching = self._config, True
            try:
                added = tuple(self.register_tool(tool, **options) for tool in tools)
            except BaseException:
                self._config = before
                raise
            finally:
                self._is_batching = False
            self._update()
        return added

    # ---- staying current ------------------------------------------------------------------

    def refresh(self, *providers: str) -> tuple[Change, ...]:
        """Scan every source once and return the changes; failed plugins are tried again.

        With names, only these providers are asked; raises `NotFoundError` for an unknown one.
        While a watch runs, this does not wait for slow plugins and providers: the watch adds them
        later.
        """
        in_background = self._watch is not None
        if not providers:
            return self._reconcile(ReconcileOptions(retry=True, in_background=in_background))
        with self._lock:
            self._providers.require(providers)
            options = ReconcileOptions(dirty=frozenset(), in_background=in_background)
            return self._reconcile(options, frozenset(providers))

    def subscribe(self, listener: Callable[[Change], object]) -> Callable[[], None]:
        """Call `listener` with each change, on the publishing thread.

        Returns a function that removes the listener.
        """
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
        import asyncio

        from satchel.watch_thread import Changes  # lazy: needed only by a watch

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
        """Start the watch thread, or share the running one."""
        from satchel.watch_thread import ImportRetry, WatchThread  # lazy: needed by a watch

        with self._lock:
            self._require_open()
            self._watchers += 1
            if self._watch is None:
                self._watch = WatchThread(self._events, self._on_event)
                self._watch.start()
                self._import_retry = ImportRetry(self._weak_callback(retry_late=True))
                self._import_retry.update(is_late=self._has_late_imports)
            return self._watch

    def _stop_watching(self) -> None:
        with self._lock:
            self._watchers -= 1
            thread = self._watch if self._watchers == 0 else None
            self._watch = None if thread else self._watch
            if thread is not None and self._import_retry is not None:
                self._import_retry.stop()
                self._import_retry = None
        if thread is not None:
            thread.stop()

    def _events(self, stop: threading.Event) -> Iterable[ChangeEvent]:
        from satchel.sources import change_events  # lazy: needed only by a watch

        if self._config.lock is not None and self._config.lock.is_frozen:
            from satchel.sources.watcher import no_events  # lazy: as above

            return no_events(stop)
        polling = self._settings.polling or bool(os.environ.get("WATCHFILES_FORCE_POLLING"))
        pace = self._settings.pace
        return change_events(self._watch_targets, stop, pace, polling=polling)

    def _watch_targets(self) -> WatchTargets:
        return self._cache.watch_targets()

    def _on_event(self, event: ChangeEvent) -> None:
        self._refresh_in_background(event.paths, debounce=True, diagnostics=event.diagnostics)

    def _reconcile(
        self, options: ReconcileOptions, provider_names: frozenset[str] = frozenset()
    ) -> tuple[Change, ...]:
        """Run one pass, publish a new catalog, and notify the listeners."""
        with self._lock:
            self._require_open()
            old = self.catalog
            config = self._with_snapshots(options, provider_names)
            self._cache, new = reconcile(config, self._cache, old, options)
            self._connect_declared()
            changes: tuple[Change, ...] = ()
            if new is not old:
                self._shared.publish(new)
                self._record_names(old, new)
                notify_catalog_built(new)
                # Nobody can listen to the first one.
                changes = diff(old, new) if old.generation else ()
                for change in changes:
                    self._notify(change)
            if self._import_retry is not None:
                is_waiting = bool(self._cache.imported.pending)
                if self._has_late_imports or not is_waiting:
                    self._import_retry.update(is_late=self._has_late_imports)
            if self._providers.update(_plugin_providers(new)):
                changes += self._reconcile(replace(options, dirty=frozenset()))
            return changes

    def _with_snapshots(
        self, options: ReconcileOptions, provider_names: frozenset[str]
    ) -> LoaderConfig:
        """Return the configuration with what servers and providers contribute now."""
        pace = self._settings.pace
        seconds = pace.settle if options.in_background else self._settings.limits.provider
        return replace(
            self._config,
            servers=with_owned_names(
                self._servers.offered() if self._servers else (), self._config.owners
            ),
            provided=self._providers.ask(options.dirty, provider_names, seconds),
        )

    def _record_names(self, old: Catalog, new: Catalog) -> None:
        """Record who serves a name, so that no new folder takes it."""
        owners = self._config.owners
        if owners is None or not self._config.run_code or new.all_tools == old.all_tools:
            return
        owners.record(served_names(new))

    def _connect_declared(self) -> None:
        """Connect the declared servers; their contributions come with a later pass."""
        declared = self._cache.declared if self._config.connects_servers else ()
        if (declared or self._servers is not None) and self._server_registry().update(declared):
            self._server_registry().notify()

    def _notify(self, change: Change) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(change)
            except Exception:
                import logging

                logging.getLogger("satchel").exception("a listener failed on %s", change)


def _project(given: Project | PathLike | None) -> Project | None:
    return given if given is None or isinstance(given, Project) else Project(given)


def _lock_guard(path: PathLike | None, *, is_frozen: bool) -> LockGuard | None:
    if path is None:
        if is_frozen:
            raise DefinitionError("frozen=True needs a lock file", fix='pass locked="satchel.lock"')
        return None
    from satchel.loader.lock_guard import load_guard  # lazy: needed only with a lock file

    return load_guard(path, is_frozen=is_frozen)


def _values(plugin: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise DefinitionError(
            f"config has a {type(given).__name__} for {plugin!r}, not keys and values",
            fix='write Satchel(config={"plugin": {"key": value}})',
        )
    return dict(given)


def _plugin_providers(catalog: Catalog) -> Iterable[tuple[str, Provider]]:
    for plugin in catalog.plugins.values():
        for provider in plugin.contribution.providers:
            yield plugin.name, provider


GroupMember = TypeVar("GroupMember", ToolContribution, SearchRoot)


def _without_group(group: str, member: GroupMember) -> GroupMember | None:
    """Return a member without a group, or `None` if it has no other."""
    if group not in member.groups:
        return member
    rest = tuple(name for name in member.groups if name != group)
    return replace(member, groups=rest) if rest else None


def _providers(given: Any) -> Iterable[Any]:
    """Normalize one provider, or an iterable of them."""
    is_one = hasattr(given, "contribute") or isinstance(given, str | type)
    return given if isinstance(given, Iterable) and not is_one else (given,)


def _patterns(option: str, given: Iterable[str] | str) -> tuple[str, ...]:
    """Normalize one pattern, or an iterable of them."""
    patterns: tuple[Any, ...] = (given,) if not isinstance(given, Iterable) else _as_tuple(given)
    for item in patterns:
        if not isinstance(item, str) or not item:
            raise DefinitionError(
                f"{option} has {item!r}, which is not a pattern",
                fix=f'write {option}=["read_*", "skill:pdf"]',
            )
    return patterns


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _require_model(model: Any) -> None:
    if not (isinstance(model, type) and hasattr(model, "model_fields")):
        raise DefinitionError(
            f"additional arguments need a pydantic model, not {model!r}",
            fix="write a subclass of pydantic.BaseModel",
        )


def _as_tuple(given: Iterable[Any] | PathLike) -> tuple[Any, ...]:
    """Normalize a single path or name, or an iterable of them, to a tuple."""
    return (given,) if isinstance(given, str | os.PathLike) else tuple(given)


def _distinct(roots: Iterable[SearchRoot]) -> tuple[SearchRoot, ...]:
    """Keep the first search root of each folder."""
    first: dict[tuple[str, RootKind], SearchRoot] = {}
    for item in roots:
        first.setdefault((item.path, item.holds), item)
    return tuple(first.values())


def _empty_host() -> PluginContribution:
    return PluginContribution(
        name=HOST,
        source=HOST,
        scope=Precedence.EXPLICIT,
        path=HOST,
        unit=HOST,
        rank=(-1, HOST),
        digest="",
    )
