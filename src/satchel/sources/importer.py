"""Importing plugin code: folders privately, packages by their names, both within a time limit."""

import importlib
import itertools
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from satchel.sources.code_guard import guarded
from satchel.sources.code_snapshots import is_served, serve_snapshot, show_lines, withdraw_snapshot
from satchel.sources.distributions import DistributionFinding
from satchel.sources.module_exchange import DistributionModules, clear_type_caches
from satchel.sources.module_paths import LocatedModule
from satchel.sources.process_state import PRIVATE_PREFIX, loaded_modules

_serial = itertools.count(1)


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True)
class ImportedCode:
    """One imported version of a plugin.

    Its modules live as long as this handle. Every catalog that serves the version holds it, and
    so does a call that began on such a catalog; when the last of them lets go, `release` runs.
    """

    thing: Any
    """The module, or the object that an entry point names."""
    taken: "_FolderModules | DistributionModules" = field(compare=False)
    """Its modules among those of the interpreter."""
    meddled: tuple[str, ...] = ()
    """What importing changed in the process and we put back."""
    modules: Mapping[str, ModuleType] = field(default_factory=dict, compare=False)
    """The modules that were asked for, by their names in the folder, or by their full names."""
    seconds: float = field(default=0.0, compare=False)
    """How long the import took."""
    endings: list[Callable[[], None]] = field(default_factory=list, compare=False)
    """What is to be done before the modules go."""

    def __post_init__(self) -> None:
        weakref.finalize(self, _let_go, self.endings, self.taken.release)

    def purge(self) -> None:
        """Make the interpreter forget the modules at once, unless somebody else holds them."""
        self.taken.purge()

    def undo(self) -> None:
        """Forget a version that is not to be served; what it took the place of comes back."""
        self.taken.undo()

    def claim(self) -> None:
        """Say that the plugin starts on these modules: another life of it gets others."""
        self.taken.claim()

    def at_end(self, ending: Callable[[], None]) -> None:
        """Have something done when the last holder lets go, or else when the interpreter ends."""
        self.endings.append(ending)


def _let_go(endings: list[Callable[[], None]], release: Callable[[], None]) -> None:
    """End a version of a plugin. Whoever happens to let go last does not wait for it."""

    def end() -> None:
        for ending in endings:
            ending()
        if is_running:
            release()

    is_running = threading.main_thread().is_alive()
    if endings and is_running:
        threading.Thread(target=end, name="satchel-plugin-end").start()
    else:  # An interpreter that ends starts no more threads, and forgets all modules anyway.
        end()


def import_folder(
    folder: str,
    sources: Mapping[str, bytes],
    module: str,
    limit: float,
    *,
    more: Iterable[str] = (),
    alone: bool = True,
) -> ImportedCode:
    """Import `module` of a plugin folder, and `more` of its modules, from a snapshot.

    Unless `alone`, the host and other plugins are running meanwhile; see `ProcessState.put_back`.
    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    slug = re.sub(r"\W+", "_", os.path.basename(folder)).strip("_").lower() or "plugin"
    package = f"{PRIVATE_PREFIX}{slug}_{next(_serial)}"
    serve_snapshot(package, folder, sources)
    taken = _FolderModules(package)

    def load() -> dict[str, ModuleType]:
        try:
            names = dict.fromkeys((module, *more))
            return {name: importlib.import_module(f"{package}.{name}") for name in names}
        finally:
            if not is_served(package):  # It was given up, and has only ended now.
                taken.purge()

    begun = time.perf_counter()
    try:
        imported, meddled = guarded(load, limit, "plugin_import", folder, alone=alone)
    except BaseException:
        taken.purge()
        raise
    seconds = time.perf_counter() - begun
    show_lines(package)
    return ImportedCode(
        thing=imported[module], taken=taken, meddled=meddled, modules=imported, seconds=seconds
    )


class _FolderModules:
    """The modules of one import of a plugin folder, which nobody else ever gets."""

    def __init__(self, package: str) -> None:
        self._package = package

    def purge(self) -> None:
        """Make the interpreter forget them."""
        withdraw_snapshot(self._package)
        _forget(lambda name: f"{name}.".startswith(f"{self._package}."))
        clear_type_caches()

    undo = release = purge

    def claim(self) -> None:
        """Do nothing."""


def import_distribution(
    found: DistributionFinding,
    limit: float,
    *,
    entry: bool = True,
    modules: Iterable[str] = (),
    edited: LocatedModule | None = None,
    alone: bool = True,
) -> ImportedCode:
    """Import what an entry point names; what is imported already is shared, if it is this version.

    With it come `modules`, by their full names; without `entry`, they come alone. `edited` is what
    an editable install leaves where it is edited. The modules of an earlier version are set aside
    first and put back when the new one fails, so that the version that still serves keeps working.
    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    importlib.invalidate_caches()
    taken = DistributionModules(found, edited)
    displaced = taken.make_way()
    names = tuple(modules)

    def load() -> tuple[Any, dict[str, ModuleType]]:
        taken.replay_path_files()
        thing = _entry_point(found) if entry else None
        imported = {name: importlib.import_module(name) for name in names}
        for name in (*((found.module,) if entry else ()), *names):
            taken.check(name)
        return thing, imported

    begun = time.perf_counter()
    try:
        (thing, imported), meddled = guarded(load, limit, "plugin_import", alone=alone)
    except BaseException:
        taken.undo()
        raise
    seconds = time.perf_counter() - begun
    taken.take()
    del displaced  # From here on only those who use it hold it.
    return ImportedCode(
        thing=thing, taken=taken, meddled=meddled, modules=imported, seconds=seconds
    )


def _entry_point(found: DistributionFinding) -> Any:
    """Import the module of an entry point, and return the attribute of it that is named."""
    thing: Any = importlib.import_module(found.module)
    for part in found.attribute.split(".") if found.attribute else ():
        thing = getattr(thing, part)
    return thing


def _forget(test: Callable[[str], bool]) -> None:
    for name in filter(test, loaded_modules()):
        sys.modules.pop(name, None)
