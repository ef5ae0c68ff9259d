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
from satchel.sources.files import is_inside
from satchel.sources.fresh import import_from_source
from satchel.sources.guard import guarded
from satchel.sources.modules import Located
from satchel.sources.process import PRIVATE_PREFIX, loaded_modules, names_in
from satchel.sources.snapshots import is_served, serve, show_lines, withdraw

# On the modules of a distribution: which version of it they are, and whether we imported them.
_VERSION, _OURS = "__satchel_version__", "__satchel_imported__"

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
    """The modules that were asked for, by their names in the folder, or by their full names."""
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
    found: DistributionFinding,
    limit: float,
    *,
    entry: bool = True,
    modules: Iterable[str] = (),
    edited: Located | None = None,
    alone: bool = True,
) -> ImportedCode:
    """Import what an entry point names; what is imported already is shared, if it is this version.

    With it come `modules`, by their full names; without `entry`, they come alone. `edited` is what
    an editable install leaves where it is edited. The modules of an earlier version are set aside
    first and put back when the new one fails, so that the version that still serves keeps working.
    Raises `PluginCodeError` whatever the code does, and after `limit` seconds.
    """
    importlib.invalidate_caches()
    if edited is not None:
        import_from_source(edited.name)
    owned = _modules_of(found, edited)
    before = {name: module for name, module in loaded_modules().items() if owned(name)}
    version = (found.distribution, found.path + found.digest)
    known: list[tuple[dict[str, Any], str, Any]] = []
    if any(_version_of(module, version) != version for module in before.values()):
        known = _set_aside(before)

    def load() -> tuple[Any, dict[str, ModuleType]]:
        _replay_path_files(found)
        thing = _entry_point(found) if entry else None
        return thing, {name: importlib.import_module(name) for name in modules}

    begun = time.perf_counter()
    try:
        (thing, imported), meddled = guarded(load, limit, "plugin_import", alone=alone)
    except BaseException:
        _forget(owned)
        sys.modules.update(before)
        for names, name, module in known:
            names[name] = module
        raise
    seconds = time.perf_counter() - begun
    now = {name: module for name, module in loaded_modules().items() if owned(name)}
    mine = {
        name: module
        for name, module in now.items()
        if _is_ours(module, version, is_new=before.get(name) is not module)
    }

    def purge(*, left: bool = False) -> None:
        # A newer version may have taken the names over since.
        for name, module in mine.items():
            if sys.modules.get(name) is module and not (left and _is_there(module)):
                sys.modules.pop(name, None)
        _clear_type_caches()

    def release() -> None:
        # What is still installed is anybody's to import, and others may have imported it.
        purge(left=os.path.exists(found.path))

    return ImportedCode(thing, purge, release, meddled, imported, seconds)


def _entry_point(found: DistributionFinding) -> Any:
    """Import the module of an entry point, and return the attribute of it that is named."""
    thing: Any = importlib.import_module(found.module)
    for part in found.attribute.split(".") if found.attribute else ():
        thing = getattr(thing, part)
    return thing


def _is_ours(module: object, version: tuple[str, str], *, is_new: bool) -> bool:
    """Mark the version of a module, and tell whether we imported it.

    What the host had imported by itself stays the host's.
    """
    if not isinstance(module, ModuleType):
        return is_new
    names = vars(module)
    names[_VERSION] = version
    return bool(names.setdefault(_OURS, is_new))


def _is_there(module: object) -> bool:
    """Tell whether a module is still what it was made of; one that was made of no file is."""
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return not isinstance(file, str) or os.path.exists(file)


def _version_of(module: object, unknown: tuple[str, str]) -> tuple[str, str]:
    """Return which version a module is of; read from its names, so that no code of it runs."""
    known = names_in(module).get(_VERSION, unknown)
    return known if isinstance(known, tuple) else unknown


def _modules_of(found: DistributionFinding, edited: Located | None) -> Callable[[str], bool]:
    """Return a test for the names of the modules that a distribution brought."""
    recorded = {_module_name(path) for path in found.files if path.endswith(".py")} - {""}
    if edited is None and not recorded.intersection(_with_parents(found.module)):
        recorded.add(found.module.partition(".")[0])

    def owned(module: str) -> bool:
        names = _with_parents(module)
        if names[0] == "satchel":
            return False
        if edited is not None and edited.name in names:
            # A package of packages may have parts elsewhere, which are others'. What was installed
            # before it became editable lay elsewhere, too.
            known = sys.modules.get(module)
            is_older = _version_of(known, ("", ""))[0] == found.distribution
            return is_older or _lies_below(known, edited.path)
        return not recorded.isdisjoint(names)

    return owned


def _lies_below(module: object, stem: str) -> bool:
    """Tell whether all of a module is a file, or lies in a folder, with this path."""
    if not isinstance(module, ModuleType):
        return True
    file = vars(module).get("__file__")
    places = [file] if isinstance(file, str) else list(vars(module).get("__path__") or ())
    real = os.path.realpath(stem)
    return all(
        is_inside(os.path.realpath(place).removesuffix(".py"), real)
        for place in places
        if isinstance(place, str)
    )


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


def _set_aside(modules: Mapping[str, Any]) -> list[tuple[dict[str, Any], str, Any]]:
    """Forget modules, also where a package that stays knows them; return what it knew.

    So does a namespace that other distributions have a part of.
    """
    known = []
    for name, module in modules.items():
        sys.modules.pop(name, None)
        package, _, last = name.rpartition(".")
        names = _names_in(package) if package not in modules else {}
        if names.get(last) is module:
            known.append((names, last, names.pop(last)))
    # What an editable install added to find its modules may be of an older version, too.
    for finder in tuple(sys.meta_path):
        if str(getattr(finder, "__module__", "")) in modules:
            sys.meta_path.remove(finder)
    return known


def _names_in(package: str) -> dict[str, Any]:
    """Return the names in a package, to be changed; without one, in nothing."""
    module = sys.modules.get(package)
    return vars(module) if isinstance(module, ModuleType) else {}
