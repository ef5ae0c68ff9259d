"""The application's object: it holds the current catalog and updates it from its sources."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import Group, Status
from satchel.catalog.entry_filter import EntryFilter, names_neither, unmatched_patterns
from satchel.catalog_watch import CatalogWatch
from satchel.configuration.configuration import fixed_folder
from satchel.errors import ConflictError, DefinitionError
from satchel.host_arguments import (
    as_patterns,
    as_project,
    as_providers,
    as_tuple,
    check_options,
    lock_guard,
    plugin_values,
)
from satchel.host_registrations import HostRegistrations, empty_host
from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
from satchel.names import group_names, plugin_name_fault
from satchel.prompt.skill_prompt import SkillPrompt
from satchel.reconciler import Reconciler
from satchel.settings import Settings
from satchel.shared import SharedState
from satchel.sources.search_roots import RootKind, SearchRoot, distinct_roots, search_root
from satchel.trust.name_owners import NameOwners

if TYPE_CHECKING:
    from satchel.catalog.catalog_changes import Change
    from satchel.configuration.projects import Project
    from satchel.contracts.plan import PlanPolicy
    from satchel.contracts.tool_contract import ToolContract
    from satchel.formats.lock_file import Lock
    from satchel.host_arguments import PathLike
    from satchel.mcp_servers.client_callbacks import AskHost
    from satchel.mcp_servers.pin_store import ToolDrift
    from satchel.mcp_servers.remote_client import RemoteClient
    from satchel.mcp_servers.server_addresses import RemoteServer
    from satchel.mcp_servers.server_options import Pin, ServerConfig, ServerOptions
    from satchel.providers.provider import Provider
    from satchel.providers.skill import Skill
    from satchel.runtime.error_results import ErrorText
    from satchel.runtime.middleware_chain import Middleware
    from satchel.runtime.program_runner import ProgramRunner
    from satchel.server_registry import ServerState
    from satchel.session.session import Session
    from satchel.shared import CatalogCache
    from satchel.tool_registration import OnConflict
    from satchel.tool_registry import ToolRegistry
    from satchel.tools import Tool, ToolOptions
    from satchel.tools.runner import Runner
    from satchel.watch_thread import Changes

# Wait for twice the time: a server that hangs is stopped only after its time for starting.
_CONNECT_FACTOR = 2


class Satchel:
    """Manages the skills and tools of one application.

    `skills` and `plugins` are folders; `entry_points` names installed plugins (`"all"` for every
    one); `providers`, one or several, contribute skills, plugins, tools and groups; `roots` are
    further folders to search, such as those of `conventional_roots`. The user's `satchel.toml`
    enables and disables things. The folder `project` adds its conventional folders, `satchel.toml`
    and `.mcp.json`, as far as it is trusted: by the user's record, or by a `Project` with
    `trust="data"` or `trust="code"`. `config` has values for the state
    fields of tools, by plugin; they win over the environment and all files. With `run_code=False`
    no plugin is imported: everything is listed, nothing can be called. `errors` is the text
    that the model gets for an unexpected exception: "summary" gives only an id to find it in the
    log, "message" its type and text without secrets, and a function gets the tool's name and the
    exception and returns the text. `on_elicit` and `on_sample` answer MCP
    servers that ask for input of the user, or for a message of a model: each gets the server's name
    and the parameters of `elicitation/create` or `sampling/createMessage`, and returns the result.
    `runner` starts the scripts of skills and the commands of the built-in tools. `locked` is the
    path of a lock file: raises `SatchelError` if anything differs from it, and never serves what
    differs later. With `frozen` as well, only something missing raises, and nothing is watched.

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
        settings = settings or Settings()
        check_options(errors, settings, runner)
        if locked is not None:
            settings = replace(settings, cache=False)  # what is compared must be read
        settings = replace(settings, config_folder=fixed_folder(settings.config_folder))
        loader_config = LoaderConfig(
            roots=distinct_roots(
                (
                    *(search_root(path, RootKind.SKILLS) for path in as_tuple(skills)),
                    *(search_root(path, RootKind.PLUGINS) for path in as_tuple(plugins)),
                    *roots,
                )
            ),
            entry_points=frozenset(as_tuple(entry_points)) - {"none"},
            host=empty_host(),
            run_code=run_code,
            settings=settings,
            plugin_values={
                name: plugin_values(name, values) for name, values in (config or {}).items()
            },
            project=as_project(project),
            owners=NameOwners(settings.state_folder),
            lock=lock_guard(locked, is_frozen=frozen),
        )
        style = (skill_style or SkillPrompt()).within(settings.limits)
        self._shared = SharedState(settings.limits, style, errors)
        self._shared.programs = runner, settings.sandbox
        self._reconciler = Reconciler(loader_config, self._shared, on_elicit, on_sample)
        self._host = HostRegistrations(self._reconciler)
        self._watch = CatalogWatch(self._reconciler)
        for provider in as_providers(providers):
            self._reconciler.providers.add(provider)
        self._load_first(settings.plugin_wait)

    def _load_first(self, plugin_wait: float | None) -> None:
        """Load everything, and compare it with the lock file."""
        until = None if plugin_wait is None else time.monotonic() + plugin_wait
        self._reconciler.reconcile(ReconcileOptions(retry=True, wait_until=until))
        try:
            self.require_locked()
        except BaseException:
            self.close()
            raise

    @property
    def catalog(self) -> Catalog:
        """The newest catalog. It is immutable; a newer one replaces it."""
        return self._shared.catalog

    @property
    def is_importing(self) -> bool:
        """Whether slow plugins are still being imported in the background."""
        return self._reconciler.is_importing

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
        pattern; a plugin or provider is named without a kind. A pattern of `enable` that matches
        nothing now is logged, because it hides everything, and so is one for a group or plugin.
        `plan_policy` sets `Session.plan_policy`.
        """
        from satchel.session.session import Session  # lazy: needed only with a session
        from satchel.session.session_options import SessionOptions

        enabled, disabled = as_patterns("enable", enable), as_patterns("disable", disable)
        options = SessionOptions(
            meta_tool=meta_tool,
            skill_tools=skill_tools,
            scripts=scripts,
            search=search,
            defer_loading=defer_loading,
            notes=notes,
            allowed_tools=allowed_tools,
            entries=EntryFilter.of(enabled, disabled) if enabled or disabled else None,
        )
        # Of `disable`, only what never matches: it may well be for what comes later.
        for key, patterns in (("enable", enabled), ("disable", filter(names_neither, disabled))):
            for warning in unmatched_patterns(patterns, self.catalog):
                import logging  # lazy: a warning is rare

                logging.getLogger("satchel").warning("session(%s=...): %s", key, warning)
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
        group = Group(
            name=name,
            description=description,
            notes=notes,
            active=active,
            skills=group_names(skills),
            requires=group_names(requires),
        )
        self._host.add_group(group)

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
        return self._host.add_tool(tool, on_conflict=on_conflict, **options)

    def register_middleware(
        self, middleware: Middleware, *, group: str | None = None, tool: str | None = None
    ) -> Callable[[], None]:
        """Add middleware for all tools, one group, or one tool; returns a function that removes it.

        The widest scope is outermost; in one scope, the first added. Raises `DefinitionError` if
        it is not middleware.
        """
        from satchel.runtime.middleware_chain import (
            ScopedMiddleware,  # lazy: needed only with middleware
        )

        return self._host.add_scoped("middleware", ScopedMiddleware(middleware, group, tool))

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
        return self._host.add_scoped("runners", scoped)

    def register_contract(self, *contracts: ToolContract) -> None:
        """Bind each contract to the tool of its name, whatever its source, now or later.

        It replaces a contract that came with the tool. Raises `ConflictError` if the application
        already registered one for that name, and `DefinitionError` if the tool that is served now
        does not fit; then nothing is registered. A later tool that does not fit is left out.
        """
        self._host.add_contracts(contracts)

    def remove_contract(self, name: str) -> None:
        """Remove a registered contract; the tool's own contract applies again.

        Raises `NotFoundError` with the near misses.
        """
        self._host.remove_contract(name)

    def set_extended_model(self, tool: str | Tool, model: Any) -> None:
        """Add the fields of a pydantic model to the arguments of a tool that takes `**kwargs`.

        `None` removes them. The model applies to every version of the tool. Raises `NotFoundError`
        for an unknown tool and `DefinitionError` for a clash with its own parameters. If a later
        version clashes, only that tool is left out.
        """
        self._host.set_extended_model(tool, model)

    @property
    def tools(self) -> ToolRegistry:
        """The served tools as a registry, whatever their groups."""
        from satchel.tool_registry import ToolRegistry  # lazy: needed only with tools

        return ToolRegistry(self, self._host.add_tools)

    def register_skill(
        self, skill: PathLike | Skill, *, group: str | Iterable[str] | None = None
    ) -> None:
        """Add a skill folder, a folder of them, or a skill that is given in code.

        With `group` (one or several), the skills are listed while one of these groups is active.
        Raises `NotFoundError` for an unknown group, and for a `Skill` `DefinitionError` if it is
        invalid and `ConflictError` if the application already gave one of that name.
        """
        self._host.add_skill(skill, group)

    def add_provider(self, provider: Provider) -> None:
        """Add a provider, and ask it.

        Raises `DefinitionError` if it is not a provider, and `ConflictError` for a name that is
        taken. What it raises later is a diagnostic.
        """
        with self._reconciler.lock:
            self._reconciler.require_open()
            self._reconciler.providers.add(provider)
            self._reconciler.reconcile(ReconcileOptions(dirty=frozenset()))

    def remove_provider(self, *names: str) -> None:
        """Remove providers, with what they contribute.

        Raises `NotFoundError` with the near misses, and then removes none.
        """
        with self._reconciler.lock:
            self._reconciler.providers.remove(names)
            self._reconciler.update()

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
        if not self._reconciler.config.run_code:
            raise ConflictError(
                "this satchel runs no code, so it connects no server",
                fix="leave out run_code=False",
            )
        with self._reconciler.lock:
            registry = self._reconciler.open_servers()
            groups = group_names(group)
            self._host.require_groups(groups)
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
        self._reconciler.refresh_in_background()
        return server_config.name

    @property
    def declared_mcp_servers(self) -> Mapping[str, ServerConfig]:
        """The MCP servers that enabled plugins and `satchel.toml` name, connected or not."""
        cache = self._reconciler.cache
        if not cache.declared:
            return {}
        # Lazy: needed only with MCP servers.
        from satchel.mcp_servers.server_declarations import unique_server_names

        return unique_server_names(cache.declared, cache.left_out, self._reconciler.config.owners)

    @property
    def mcp_server_states(self) -> tuple[ServerState, ...]:
        """The state of each MCP server now: whether it is up, why not, and the end of its log."""
        servers = self._reconciler.servers
        return servers.states() if servers else ()

    def wait_for_mcp_servers(self, timeout: float | None = None) -> bool:
        """Wait until every MCP server has listed its tools or is known to be down.

        Servers that plugins and `satchel.toml` name are connected in the background. Returns
        whether the state of all is known; `timeout` defaults to twice the time for starting.
        """
        servers = self._reconciler.servers
        is_known = servers is None or servers.wait(timeout)
        self._reconciler.refresh_in_background()
        return is_known

    def remove_mcp_servers(self, *names: str) -> None:
        """Disconnect MCP servers; running calls may end first.

        Raises `NotFoundError` with the near misses, and then removes none.
        """
        with self._reconciler.lock:
            self._reconciler.open_servers().remove(names)
            self._reconciler.refresh_in_background()

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
        with self._reconciler.lock:
            approved = self._reconciler.open_servers().approve(server, tools, digests)
            self._reconciler.refresh_in_background()
        return approved

    def mcp_drift(self, server: str) -> Mapping[str, ToolDrift]:
        """Return how what a server offers differs from what was approved, by tool.

        `"@instructions"` stands for its instructions. Raises `NotFoundError`.
        """
        with self._reconciler.lock:
            return self._reconciler.open_servers().drift(server)

    def remove_tool(self, name: str) -> None:
        """Remove a tool that the application added, or a tool of an MCP server.

        Raises `NotFoundError` with the near misses.
        """
        self._host.remove_tool(name)

    def remove_group(self, name: str) -> None:
        """Remove a group that the application added.

        Tools and skills that are in no other group are removed, too. Raises `NotFoundError` with
        the near misses, and `ConflictError` for `basic`.
        """
        self._host.remove_group(name)

    def remove_skill(self, name: str) -> None:
        """Remove a skill that was given in code, or whose own folder was given or registered.

        Raises `NotFoundError` with the near misses, and `ConflictError` for a skill that was found
        in a folder of several: delete it there.
        """
        self._host.remove_skill(name)

    def configure(self, plugin: str, **values: Any) -> None:
        """Change values of a plugin's configuration; they win over the environment and all files.

        A value of `None` removes what was given in code before, so that the environment and the
        files count again. A plugin with a startup is started again. Raises `NotFoundError` for an
        unknown plugin, and `DefinitionError` for an unknown key or a value that is not allowed;
        then nothing changes. Values of a plugin that is loaded later are `Satchel(config=...)`.
        """
        # Lazy: needed only to change values.
        from satchel.plugins.config_keys import require_fitting

        self._reconciler.require_open()
        with self._reconciler.lock:
            require_fitting(self.catalog, plugin, plugin_values(plugin, values))
            before = self._reconciler.config.plugin_values
            merged = {**before.get(plugin, {}), **plugin_values(plugin, values)}
            kept = {key: value for key, value in merged.items() if value is not None}
            self._reconciler.update(plugin_values={**before, plugin: kept})

    def close(self) -> None:
        """Release everything: the catalog becomes empty, and plugins are shut down.

        End running calls first. Without `close`, plugins are shut down when the interpreter ends.
        """
        self._reconciler.close()

    def lock_contents(self, file: PathLike = "satchel.lock") -> Lock:
        """Return what a lock file at this path would contain now; its `text` is the file.

        What MCP servers offer is in it if they are connected. Raises `SatchelError` for two
        different folders of one place and name.
        """
        # Lazy: needed only with a lock file.
        from satchel.loader.lock_entries import lock_of, lock_places

        with self._reconciler.lock:
            guard, cache = self._reconciler.config.lock, self._reconciler.cache
            servers = self._reconciler.servers
            declared = guard.declared if guard else cache.declared
            offered = servers.offered() if servers else ()
            units = (*self.catalog.all_skills, *self.catalog.all_plugins)
            disabled = {entry.unit for entry in units if entry.state is Status.DISABLED}
            # What waits for a choice of the user is in no lock.
            disabled |= {it.unit for it in self.catalog.all_skills if it.state is Status.HELD}
            return lock_of(cache, declared, offered, lock_places(file), disabled)

    def require_locked(self) -> None:
        """Compare everything with the lock file again, with what connected MCP servers offer.

        Raises `SatchelError` for a difference; if frozen, only for something that is missing.
        """
        if (guard := self._reconciler.config.lock) is not None:
            guard.require(self.lock_contents(guard.file), self.catalog.diagnostics)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- staying current ------------------------------------------------------------------

    def refresh(self, *providers: str) -> tuple[Change, ...]:
        """Scan every source once and return the changes; failed plugins are tried again.

        With names, only these providers are asked; raises `NotFoundError` for an unknown one.
        While a watch runs, this does not wait for slow plugins and providers: the watch adds them
        later.
        """
        options = ReconcileOptions(
            dirty=frozenset() if providers else None,
            in_background=self._watch.is_running,
            retry=not providers,
        )
        with self._reconciler.lock:
            self._reconciler.providers.require(providers)
            return self._reconciler.reconcile(options, frozenset(providers))

    def subscribe(self, listener: Callable[[Change], object]) -> Callable[[], None]:
        """Call `listener` with each change, on the publishing thread.

        Returns a function that removes the listener.
        """
        return self._reconciler.change_listeners.add(listener)

    def subscribe_catalogs(self, listener: Callable[[Catalog], object]) -> Callable[[], None]:
        """Call `listener` with each new catalog, also if only its diagnostics changed.

        It is called on the publishing thread, after the listeners of the changes. Returns a
        function that removes the listener.
        """
        return self._reconciler.catalog_listeners.add(listener)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Changes]:
        """Keep `catalog` current until the block ends; yields an async iterator of the changes.

        Inside the block no change on disk is missed, whether or not the changes are read.
        """
        import asyncio

        from satchel.watch_thread import Changes  # lazy: needed only by a watch

        changes = Changes()
        undo = self.subscribe(changes.put)
        thread = self._watch.start()
        try:
            await asyncio.to_thread(thread.wait_until_ready)
            yield changes
        finally:
            undo()
            changes.close()
            await asyncio.shield(asyncio.to_thread(self._watch.stop))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep `catalog` current until the block ends, for code without an event loop."""
        thread = self._watch.start()
        try:
            thread.wait_until_ready()
            yield
        finally:
            self._watch.stop()
