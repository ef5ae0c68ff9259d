"""Find installed plugins by their entry points (group `satchel.plugins`), without importing them.

`importlib.metadata` parses all installed metadata at every call. Here only folders that changed
are listed, and only files that contain the group are parsed.
Format: packaging.python.org/specifications/entry-points and recording-installed-packages.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import (
    Stamp,
    StampedPath,
    UnreadableFileError,
    digest_of,
    read_or_none,
    read_regular,
)
from satchel.importing.shipped_skills import owners, shipped_skills
from satchel.lazy_dataclass import dataclass

ENTRY_POINT_GROUP = "satchel.plugins"

_METADATA_LIMIT = 4 * 1024 * 1024
# Requesting more bytes at first would take longer than the read itself.
_USUAL_POINTS = 32 * 1024
# Some systems install without RECORD, so only a recent folder counts as half written.
_INSTALLING_SECONDS = 10.0
# An installer makes the metadata folder before it writes into it, but not so long before.
_LONGEST_INSTALLATION = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionFinding:
    """One plugin entry point of an installed distribution, not imported.

    A distribution that ships skills is a plugin even without an entry point.
    """

    name: str
    """The plugin's name: that of the entry point, or else of the distribution."""
    value: str
    """The object reference, `module` or `module:attribute`; `""` without an entry point."""
    distribution: str
    version: str
    summary: str
    path: str
    """The `.dist-info` folder."""
    digest: str
    files: tuple[str, ...]
    """The installed files as RECORD lists them, relative to the folder of `path`."""
    skills: tuple[str, ...] = ()
    """The skill folders that it ships beside its code."""

    @property
    def site(self) -> str:
        """Return the folder of `sys.path` that it is installed in."""
        return os.path.dirname(self.path)

    @property
    def module(self) -> str:
        """Return the module of the entry point."""
        return self._parts[0]

    @property
    def attribute(self) -> str:
        """Return the attribute of the entry point, `""` for the module itself."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        return split_entry_point(self.value)


def split_entry_point(value: str) -> tuple[str, str]:
    """Return the module and the attribute of an entry point."""
    # The format is "module:attribute [extra]"; extras are obsolete and ignored.
    module, _, attribute = value.partition("[")[0].partition(":")
    return module.strip(), attribute.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The distributions in one folder of `sys.path` at the time of the stamp."""

    stamp: Stamp
    names: frozenset[str]
    """All distributions, whether plugins or not."""
    findings: tuple[DistributionFinding, ...]
    diagnostics: tuple[Diagnostic, ...]
    unfinished: tuple[str, ...]
    settled: bool
    """Whether the folder was old enough for an equal stamp to mean equal content."""


@dataclass(frozen=True, slots=True)
class DistributionScan:
    """The results of one scan of the installed distributions."""

    listings: Mapping[str, _Listing]

    @property
    def findings(self) -> tuple[DistributionFinding, ...]:
        """Return all plugin entry points; of duplicate distributions, that which Python imports."""
        findings: list[DistributionFinding] = []
        hidden: set[str] = set()
        for listing in self.listings.values():
            findings += [item for item in listing.findings if _name_of(item.path) not in hidden]
            hidden |= listing.names
        return tuple(sorted(findings, key=lambda item: (item.name, item.distribution)))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of damaged metadata."""
        return tuple(item for listing in self.listings.values() for item in listing.diagnostics)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Return the files whose appearance marks the end of a running installation."""
        return tuple(path for listing in self.listings.values() for path in listing.unfinished)

    @property
    def stamps(self) -> tuple[StampedPath, ...]:
        """Return the folders with stamps that change when something is installed or removed."""
        return tuple((folder, listing.stamp) for folder, listing in self.listings.items())


def normalized(name: str) -> str:
    """Return a distribution's name, normalized as in PEP 503."""
    parts = name.replace("_", "-").replace(".", "-").lower().split("-")
    return "-".join(part for part in parts if part)


def installed_folders() -> tuple[str, ...]:
    """Return the folders of `sys.path`, where distributions may be installed."""
    absolute = (os.path.abspath(folder) for folder in sys.path if folder)
    return tuple(dict.fromkeys(folder for folder in absolute if os.path.isdir(folder)))


def scan_distributions(
    folders: Iterable[str], before: DistributionScan | None = None
) -> DistributionScan:
    """Scan for plugin entry points; folders unchanged since `before` are not listed again."""
    cached = before.listings if before else {}
    listings: dict[str, _Listing] = {}
    for folder in folders:
        listing = cached.get(folder)
        if listing is None or not _is_current(listing, folder):
            listing = _list(folder)
        listings[folder] = listing
    return DistributionScan(listings)


def _is_current(listing: _Listing, folder: str) -> bool:
    return listing.settled and not listing.unfinished and listing.stamp == Stamp.at(folder)


def _list(folder: str) -> _Listing:
    # Stamped first: a folder that changes meanwhile is listed again.
    stamp = Stamp.at(folder)
    try:
        with os.scandir(folder) as entries:
            # pip renames what it could not remove to a name that begins with "~".
            names = sorted(entry.name for entry in entries if entry.name[0] != "~")
    except OSError:
        names = []
    names_by_info = {
        os.path.join(folder, name): _name_of(name) for name in names if name.endswith(".dist-info")
    }
    findings: list[DistributionFinding] = []
    diagnostics: list[Diagnostic] = []
    is_quiet = time.time() - stamp.modified / 1e9 > _LONGEST_INSTALLATION
    installing = [] if is_quiet else list(filter(_is_installing, names_by_info))
    complete = list(_newest(names_by_info.keys() - installing, names_by_info))
    skills = owners(shipped_skills(folder, names), complete, recorded_files)
    for info in complete:
        try:
            findings += _with_skills(_findings(info), info, skills.get(info, ()))
        except (UnreadableFileError, ValueError) as error:
            diagnostics.append(
                make_diagnostic(
                    "plugin-unreadable", Where(info), f"its metadata is damaged: {error}"
                )
            )
    return _Listing(
        stamp=stamp,
        names=frozenset(names_by_info.values()),
        findings=tuple(findings),
        diagnostics=tuple(diagnostics),
        unfinished=tuple(os.path.join(info, "RECORD") for info in installing),
        settled=stamp.is_settled(),
    )


def _newest(infos: Iterable[str], names: Mapping[str, str]) -> Iterable[str]:
    """Return one metadata folder per distribution: an upgrade may have left an older one."""
    by_name: dict[str, list[str]] = {}
    for info in sorted(infos):
        by_name.setdefault(names[info], []).append(info)
    return (
        max(same, key=_installation_order) if len(same) > 1 else same[0]
        for same in by_name.values()
    )


def _installation_order(info: str) -> tuple[int, tuple[int, ...]]:
    """Return a sort key: the time of installation, then the version."""
    written = Stamp.at(os.path.join(info, "RECORD")).modified
    return written, tuple(map(int, re.findall(r"\d+", os.path.basename(info))))


def _name_of(info: str) -> str:
    """Return the normalized name of a distribution, from its metadata folder."""
    return normalized(os.path.basename(info).removesuffix(".dist-info").rpartition("-")[0])


def _is_installing(info: str) -> bool:
    """Return whether an installer is still writing; RECORD is its last file."""
    if os.path.exists(f"{info}{os.sep}RECORD"):
        return False
    try:
        return time.time() - os.stat(info).st_mtime < _INSTALLING_SECONDS
    except OSError:
        return False


def _findings(info: str) -> list[DistributionFinding]:
    try:
        points = _points(f"{info}{os.sep}entry_points.txt")
    except UnreadableFileError:
        return []
    # Nearly every distribution returns here, at the cost of one test on bytes.
    if ENTRY_POINT_GROUP.encode() not in points:
        return []
    plugins = entry_points_in(points.decode())
    if not plugins:
        return []
    metadata = _metadata(info, points)
    return [replace(metadata, name=name, value=value) for name, value in plugins.items()]


def entry_points_in(text: str) -> dict[str, str]:
    """Return the plugins of an `entry_points.txt` by name. Raises `ValueError`.

    It reads lines as `importlib.metadata` does; both that and `configparser` load slowly.
    """
    plugins: dict[str, str] = {}
    section = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section is None and line and line[0] not in "#;":
            raise ValueError(f"{line!r} is in no section")
        elif section == ENTRY_POINT_GROUP and line and line[0] not in "#;":
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f"{line!r} has no '='")
            plugins[name.strip()] = value.strip()
    return plugins


def _points(path: str) -> bytes:
    points, _ = read_regular(path, _USUAL_POINTS)
    return points if len(points) <= _USUAL_POINTS else read_regular(path, _METADATA_LIMIT)[0]


def _with_skills(
    findings: list[DistributionFinding], info: str, skills: tuple[str, ...]
) -> list[DistributionFinding]:
    """Add shipped skills to the first plugin of a distribution, or to a new one without code."""
    if not skills:
        return findings
    first, *rest = findings or [_metadata(info)]
    return [replace(first, skills=skills), *rest]


def _metadata(info: str, points: bytes = b"") -> DistributionFinding:
    """Read the metadata of a distribution, as a plugin without an entry point."""
    metadata, _ = read_regular(os.path.join(info, "METADATA"), _METADATA_LIMIT)
    headers = _headers(metadata.decode())
    record = _record(info)
    distribution = headers.get("name") or os.path.basename(info).split("-")[0]
    return DistributionFinding(
        name=normalized(distribution),
        value="",
        distribution=distribution,
        version=headers.get("version", ""),
        summary=headers.get("summary", ""),
        path=info,
        digest=digest_of(points + metadata + record),
        files=tuple(_recorded(record)),
    )


def _headers(metadata: str) -> dict[str, str]:
    """Return the first line of each header, by its name in lower case.

    The mail parser of the standard library would take longer to import than everything else here.
    """
    headers: dict[str, str] = {}
    for line in metadata.partition("\n\n")[0].split("\n"):
        if not line.strip():
            break  # The description follows.
        name, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            headers.setdefault(name.lower(), value.strip())
    return headers


def recorded_files(info: str) -> tuple[str, ...]:
    """Return the files in the RECORD of a distribution."""
    return tuple(_recorded(_record(info)))


def _record(info: str) -> bytes:
    return read_or_none(os.path.join(info, "RECORD"), _METADATA_LIMIT) or b""


def _recorded(record: bytes) -> Iterable[str]:
    """Yield the paths of a RECORD, which is CSV with the path first."""
    for line in record.decode("utf-8", "replace").splitlines():
        path = line.rsplit(",", 2)[0].strip('"')
        if path:
            yield path
