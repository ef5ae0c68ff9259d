"""Import plugin code with a time limit: folders as private packages, distributions by name."""

import importlib
import itertools
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from types import ModuleType
from typing import Any

from satchel.importing.code_guard import guarded
from satchel.importing.code_snapshots import (
    is_served,
    serve_snapshot,
    show_lines,
    withdraw_snapshot,
)
from satchel.importing.distributions import DistributionFinding
from satchel.importing.module_exchange import DistributionModules, clear_type_caches
from satchel.importing.module_paths import LocatedModule
from satchel.importing.process_state import PRIVATE_PREFIX, loaded_modules
from satchel.lazy_dataclass import dataclass

_serial = itertools.count(1)


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class ImportedCode:
    """One imported version of a plugin.

    Its modules live as long as this handle. Every catalog that serves the version and every call
    that began on such a catalog holds it. When the last reference is dropped, the finalizers run
    and the modules are released.
    """

    thing: Any
    """The imported module, or the object that the entry point names."""
    module_set: "_FolderModules | DistributionModules" = field(compare=False)
    """Its modules in `sys.modules`."""
    process_changes: tuple[str, ...] = ()
    """The parts of the process state that the import changed; the changes were undone."""
    modules: Mapping[str, ModuleType] = field(default_factory=dict, compare=False)
    """The requested modules, by the names used in the request."""
    seconds: float = field(default=0.0, compare=False)
    """The duration of the import."""
    finalizers: list[Callable[[], None]] = field(default_factory=list, compare=False)
    """Functions to call before the modules are released."""

    def __post_init__(self) -> None:
        weakref.finalize(self, _finalize, self.finalizers, self.module_set.release)

    def purge(self) -> None:
        """Remove the modules from the interpreter at once, except those that are shared."""
        self.module_set.purge()

    def undo(self) -> None:
        """Remove a version that will not be served, and restore what it replaced."""
        self.module_set.undo()

    def own(self) -> None:
        """Mark these modules as started by the plugin: its next start imports new ones."""
        self.module_set.own()

    def add_finalizer(self, finalizer: Callable[[], None]) -> None:
        """Call a function when the last reference is dropped, or when the interpreter exits."""
        self.finalizers.append(finalizer)


def _finalize(finalizers: list[Callable[[], None]], release: Callable[[], None]) -> None:
    def end() -> None:
        for finalizer in finalizers:
            finalizer()
        if is_running:
            release()

    is_running = threading.main_thread().is_alive()
    if finalizers and is_running:
        # A thread, so that dropping the last reference does not block.
        threading.Thread(target=end, name="satchel-plugin-end").start()
    else:  # An exiting interpreter starts no threads, and drops all modules anyway.
        end()


def import_folder(
    folder: str,
    sources: Mapping[str, bytes],
    module: str,
    limit: float,
    *,
    extra: Iterable[str] = (),
    alone: bool = True,
) -> ImportedCode:
    """Import `module` of a plugin folder, and `extra` modules of it, from a snapshot.

    `alone` means that neither the host nor other plugins run at the same time; see
    `ProcessState.put_back`. Raises `PluginCodeError` for anything the code raises, and after
    `limit` seconds.
    """
    slug = re.sub(r"\W+", "_", os.path.basename(folder)).strip("_").lower() or "plugin"
    package = f"{PRIVATE_PREFIX}{slug}_{next(_serial)}"
    serve_snapshot(package, folder, sources)
    module_set = _FolderModules(package)

    def load() -> tuple[Any, dict[str, ModuleType]]:
        try:
            names = dict.fromkeys((module, *extra))
            imported = {name: importlib.import_module(f"{package}.{name}") for name in names}
            return imported[module], imported
        finally:
            if not is_served(package):  # The import ended after its time limit.
                module_set.purge()

    code = _imported(load, module_set, limit, plugin_folder=folder, alone=alone)
    show_lines(package)
    return code


class _FolderModules:
    """The private modules of one import of a plugin folder."""

    def __init__(self, package: str) -> None:
        self._package = package

    def purge(self) -> None:
        withdraw_snapshot(self._package)
        for name in loaded_modules():
            if f"{name}.".startswith(f"{self._package}."):
                sys.modules.pop(name, None)
        clear_type_caches()

    undo = release = purge

    def own(self) -> None:
        """Do nothing: no other import gets these modules."""


def import_distribution(
    finding: DistributionFinding,
    limit: float,
    *,
    entry: bool = True,
    modules: Iterable[str] = (),
    edited: LocatedModule | None = None,
    alone: bool = True,
) -> ImportedCode:
    """Import the object of an entry point and `modules`, by their full names.

    Without `entry`, only `modules` are imported. Already imported modules of this version are
    shared. `edited` is the package or module of an editable install. The modules of another
    version are evicted first, and restored if the import fails, so that the version in use keeps
    working. Raises `PluginCodeError` for anything the code raises, and after `limit` seconds.
    """
    importlib.invalidate_caches()
    module_set = DistributionModules(finding, edited)
    evicted = module_set.evict()
    names = tuple(modules)

    def load() -> tuple[Any, dict[str, ModuleType]]:
        module_set.replay_path_files()
        plugin = _entry_point(finding) if entry else None
        imported = {name: importlib.import_module(name) for name in names}
        for name in (*((finding.module,) if entry else ()), *names):
            module_set.check(name)
        return plugin, imported

    code = _imported(load, module_set, limit, alone=alone, own_modules=(finding.module, *names))
    module_set.take()
    del evicted  # From here on, only code that uses the old version keeps it alive.
    return code


def _imported(
    load: Callable[[], tuple[Any, dict[str, ModuleType]]],
    module_set: "_FolderModules | DistributionModules",
    limit: float,
    **guards: Any,
) -> ImportedCode:
    """Return what `load` imports, as one version; undo its import if it fails."""
    started = time.perf_counter()
    try:
        (plugin, modules), process_changes = guarded(
            load, limit, "plugin_import", of_processor=True, **guards
        )
    except BaseException:
        module_set.undo()
        raise
    return ImportedCode(
        thing=plugin,
        module_set=module_set,
        process_changes=process_changes,
        modules=modules,
        seconds=time.perf_counter() - started,
    )


def _entry_point(finding: DistributionFinding) -> Any:
    plugin: Any = importlib.import_module(finding.module)
    for part in finding.attribute.split(".") if finding.attribute else ():
        plugin = getattr(plugin, part)
    return plugin
