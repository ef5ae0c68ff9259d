"""Importing plugin code: folders privately, packages by their names, both within a time limit."""

import importlib
import itertools
import os
import re
import site
import sys
import threading
import time
import typing
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from satchel.sources.distributions import DistributionFinding
from satchel.sources.guard import guarded
from satchel.sources.process import PRIVATE_PREFIX, loaded_modules, names_in
from satchel.sources.snapshots import is_served, serve, show_lines, withdraw

# On the module of an entry point: which version of the distribution it was imported from.
_VERSION = "__satchel_version__"

_serial = itertools.count(1)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ImportedCode:
    """One imported version of a plugin.

    Its modules live as long as this handle. Every catalog that serves the version holds it, and
    so does a call that began on such a catalog; when the last of them lets go, `release` runs.
    """

    thing: Any
    """The module, or the object that an entry point names."""
    purge: Callable[[], None] = field(compare=False)
    """Makes the interpreter forget the modules at once."""
    release: Callable[[], None] = field(compare=False)
    """Makes it forget them if nobody else can have a claim on them."""
    meddled: tuple[str, ...] = ()
    """What importing changed in the process and we put back."""
    modules: Mapping[str, ModuleType] = field(default_factory=dict, compare=False)
    """The modules of a folder that were asked for, by their names in it."""
    seconds: float = field(default=0.0, compare=False)
    """How long the import took."""
    endings: list[Callable[[], None]] = field(default_factory=list, compare=False)
    """What is to be done before the modules go."""

    def __post_init__(self) -> None:
        weakref.finalize(self, _let_go, self.endings, self.release)

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

    Unless `alone`, the host and other plugins are running meanwhile; see `Process.put_back`.
    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    slug = re.sub(r"\W+", "_", os.path.basename(folder)).strip("_").lower() or "plugin"
    package = f"{PRIVATE_PREFIX}{slug}_{next(_serial)}"
    serve(package, folder, sources)

    def purge() -> None:
        withdraw(package)
        _forget(lambda name: name == package or name.startswith(package + "."))
        _clear_type_caches()

    def load() -> dict[str, ModuleType]:
        try:
            names = dict.fromkeys((module, *more))
            return {name: importlib.import_module(f"{package}.{name}") for name in names}
        finally:
            if not is_served(package):  # It was given up, and has only ended now.
                purge()

    begun = time.perf_counter()
    try:
        imported, meddled = guarded(load, limit, "plugin_import", folder, alone=alone)
    except BaseException:
        purge()
        raise
    seconds = time.perf_counter() - begun
    show_lines(package)
    return ImportedCode(imported[module], purge, purge, meddled, imported, seconds)


def import_distribution(
    found: DistributionFinding, limit: float, *, alone: bool = True
) -> ImportedCode:
    """Import what an entry point names; what is imported already is shared, if it is this version.

    The modules of an earlier version are set aside first and put back when the new one fails, so
    that the version that still serves keeps working.
    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    importlib.invalidate_caches()
    # "module:attribute [extra]"; extras are long obsolete and mean nothing to us.
    value = found.value.partition("[")[0]
    name, _, attribute = (part.strip() for part in value.partition(":"))
    owned = _modules_of(found, name)
    before = {name: module for name, module in loaded_modules().items() if owned(name)}
    version = (found.path, found.digest)
    if _version_of(sys.modules.get(name), version) != version:
        _forget(owned)

    begun = time.perf_counter()
    try:
        imported, meddled = guarded(
            lambda: _entry_point(found, name, attribute, version),
            limit,
            "plugin_import",
            alone=alone,
        )
    except BaseException:
        _forget(owned)
        sys.modules.update(before)
        raise
    seconds = time.perf_counter() - begun
    # What the host had imported by itself stays the host's.
    mine = {
        name: module
        for name, module in loaded_modules().items()
        if owned(name) and before.get(name) is not module
    }

    def purge() -> None:
        # A newer version may have taken the names over since.
        for name, module in mine.items():
            if sys.modules.get(name) is module:
                sys.modules.pop(name, None)
        _clear_type_caches()

    def release() -> None:
        # What is still installed is anybody's to import, and others may have imported it.
        if not os.path.exists(found.path):
            purge()

    return ImportedCode(imported, purge, release, meddled, seconds=seconds)


def _entry_point(
    found: DistributionFinding, module: str, attribute: str, version: tuple[str, str]
) -> Any:
    """Import a module, mark its version, and return the attribute of it that is named."""
    _replay_path_files(found)
    thing: Any = importlib.import_module(module)
    if isinstance(thing, ModuleType):
        vars(thing)[_VERSION] = version
    for part in attribute.split(".") if attribute else ():
        thing = getattr(thing, part)
    return thing


def _version_of(module: object, unknown: tuple[str, str]) -> object:
    """Return which version a module is of; read from its names, so that no code of it runs."""
    return names_in(module).get(_VERSION, unknown)


def _modules_of(found: DistributionFinding, entry: str) -> Callable[[str], bool]:
    """Return a test for the names of the modules that a distribution installed."""
    recorded = {_module_name(path) for path in found.files if path.endswith(".py")} - {""}
    if not recorded.intersection(_with_parents(entry)):
        # An editable install records no modules; the entry point's own package is what it has.
        recorded.add(entry.partition(".")[0])

    def owned(module: str) -> bool:
        names = _with_parents(module)
        return names[0] != "satchel" and not recorded.isdisjoint(names)

    return owned


def _with_parents(module: str) -> list[str]:
    """Return the names of a module and of the packages it is in, the outermost first."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _module_name(path: str) -> str:
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else ""


def _replay_path_files(found: DistributionFinding) -> None:
    """Add the folders of an editable install to `sys.path`, as a new interpreter would."""
    folder = os.path.dirname(found.path)
    for name in found.files:
        if name.endswith(".pth") and "/" not in name:
            site.addpackage(folder, name, set(map(os.path.abspath, sys.path)))


def _forget(test: Callable[[str], bool]) -> None:
    for name in filter(test, loaded_modules()):
        sys.modules.pop(name, None)


def _clear_type_caches() -> None:
    """Let `typing` forget what it was asked for last, such as `Optional[X]` of a class that goes.

    They are caches: whoever asks again gets an equal answer. CPython clears them in the same way
    when it looks for leaks, and has no public name for it.
    """
    for clear in getattr(typing, "_cleanups", ()):
        clear()
