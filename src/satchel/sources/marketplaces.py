"""Find the plugins that a marketplace lists: a folder with `.claude-plugin/marketplace.json`."""

import os
from collections.abc import Iterator

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import UnreadableFileError, is_inside, real_path
from satchel.files.open_folder import read_inside
from satchel.formats.marketplace_manifest import ListedPlugin, read_marketplace
from satchel.formats.read_result import ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.claude_bundles import inside_path
from satchel.sources.plugin_formats import PluginFormat, format_of_listed
from satchel.text import one_line, shorten

MARKETPLACE_FILE = ".claude-plugin/marketplace.json"
_MISSING_FIX = "the other plugins load; its author may correct the list"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketplaceScan:
    """The plugins of a marketplace that are in its folder."""

    plugins: tuple[tuple[str, ListedPlugin], ...] = ()
    """Each with its folder below the marketplace, `""` for the marketplace itself."""
    remote: tuple[ListedPlugin, ...] = ()
    """The plugins that it lists at other addresses."""
    diagnostics: tuple[Diagnostic, ...] = ()
    links: frozenset[tuple[str, str]] = frozenset()
    is_broken: bool = False
    """Whether the list cannot be read; its plugins still exist."""


def is_marketplace(folder: str) -> bool:
    """Return whether a folder is read as a list of plugins, not only as a plugin."""
    is_listing = os.path.lexists(os.path.join(folder, *MARKETPLACE_FILE.split("/")))
    return is_listing and format_of_listed(folder) in {None, PluginFormat.CLAUDE}


def scan_marketplace(folder: str, limits: Limits) -> MarketplaceScan:
    """Read the list of a marketplace. Its plugins and the list itself must be inside `folder`."""
    path = os.path.join(folder, *MARKETPLACE_FILE.split("/"))
    reading = _read(folder, path, limits)
    links = set(_link(path, folder))
    if reading.value is None:
        return MarketplaceScan(
            diagnostics=reading.diagnostics, links=frozenset(links), is_broken=True
        )
    plugins: list[tuple[str, ListedPlugin]] = []
    remote = tuple(item for item in reading.value if not item.source)
    diagnostics = [*reading.diagnostics, *_elsewhere(path, remote)]
    for item in reading.value:
        if not item.source:
            continue
        key = inside_path(item.source)
        full = os.path.normpath(os.path.join(folder, key))
        links.update(_link(full, folder))
        if not key or not is_inside(real_path(full), real_path(folder)):
            message = (
                f"the folder {quoted(item.source)} of {quoted(item.name)} "
                "leads out of the marketplace"
            )
            fix = "name a folder inside the marketplace"
            diagnostics.append(
                make_diagnostic("source-link-outside", Where(path, item.line), message, fix)
            )
        elif not os.path.isdir(full):
            message = f"{quoted(item.name)} is in a folder that does not exist: {quoted(key)}"
            diagnostics.append(
                make_diagnostic("source-missing", Where(path, item.line), message, _MISSING_FIX)
            )
        else:
            plugins.append(("" if key == "." else key, item))
    return MarketplaceScan(
        plugins=tuple(plugins),
        remote=remote,
        diagnostics=tuple(diagnostics),
        links=frozenset(links),
    )


def _read(folder: str, path: str, limits: Limits) -> ReadResult[tuple[ListedPlugin, ...]]:
    try:
        data, _ = read_inside(path, limits.json_file + 1, real_path(folder))
    except UnreadableFileError as error:
        fix = "make it a regular file inside the folder"
        problem = make_diagnostic("marketplace-invalid", Where(path), str(error), fix)
        return ReadResult(None, (problem,))
    return read_marketplace(data, path, limits)


def _elsewhere(path: str, remote: tuple[ListedPlugin, ...]) -> Iterator[Diagnostic]:
    if remote:
        names = ", ".join(one_line(item.name) for item in remote)
        yield make_diagnostic(
            "marketplace-remote",
            Where(path),
            f"lists plugins at other addresses, which are not loaded: {shorten(names, 1000)}",
            "download them, and name their folder",
        )


def _link(path: str, folder: str) -> Iterator[tuple[str, str]]:
    """Yield a path that leads through a link, with its target."""
    below = os.path.relpath(path, folder)
    target = real_path(path)
    if target != os.path.normpath(os.path.join(real_path(folder), below)):
        yield path, target
