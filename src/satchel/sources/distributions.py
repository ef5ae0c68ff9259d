"""Finding installed plugins: entry points of the group `satchel.plugins`, read without importing.

`importlib.metadata` parses the metadata of everything that is installed at each call; here only
folders that changed are listed, and only files that name our group are parsed.
Format: packaging.python.org/specifications/entry-points and recording-installed-packages.
"""

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from configparser import ConfigParser, Error
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.sources.file_reader import (
    Stamp,
    StampedPath,
    UnreadableFileError,
    digest_of,
    read_regular,
)
from satchel.sources.shipped_skills import owners, shipped_skills

ENTRY_POINT_GROUP = "satchel.plugins"

_METADATA_LIMIT = 4 * 1024 * 1024
# To ask for more takes longer than the reading itself.
_USUAL_POINTS = 32 * 1024
# Some systems install without RECORD; only a fresh folder is believed to be half written.
_INSTALLING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionFinding:
    """One entry point of an installed distribution, not imported.

    A distribution that ships skills and has no entry point of ours is a plugin, too.
    """

    name: str
    """The entry point's name, which is the plugin's name; without one, the distribution's."""
    value: str
    """What to import: `module` or `module:attribute`; `""` without an entry point."""
    distribution: str
    version: str
    summary: str
    path: str
    """The `.dist-info` folder."""
    digest: str
    files: tuple[str, ...]
    """The installed files as RECORD lists them, relative to the folder of `path`."""
    skills: tuple[str, ...] = ()
    """The folders of skills that it ships beside its code."""

    @property
    def site(self) -> str:
        """Return the folder that it is installed in."""
        return os.path.dirname(self.path)

    @property
    def module(self) -> str:
        """Return the module that the entry point names."""
        return self._parts[0]

    @property
    def attribute(self) -> str:
        """Return what of the module is meant, `""` for the module itself."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        # "module:attribute [extra]"; extras are long obsolete and mean nothing to us.
        module, _, attribute = self.value.partition("[")[0].partition(":")
        return module.strip(), attribute.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """What one folder of `sys.path` held when it had this stamp."""

    stamp: Stamp
    names: frozenset[str]
    """Every distribution that is installed there, whether it is a plugin or not."""
    findings: tuple[DistributionFinding, ...]
    diagnostics: tuple[Diagnostic, ...]
    unfinished: tuple[str, ...]
    settled: bool
    """Whether the folder was old enough for an equal stamp to mean an equal content."""


@dataclass(frozen=True, slots=True)
class DistributionScan:
    """What one look at the installed distributions found."""

    listings: Mapping[str, _Listing]

    @property
    def findings(self) -> tuple[DistributionFinding, ...]:
        """Return every plugin entry point; of a distribution found twice, the one that imports."""
        found: list[DistributionFinding] = []
        hidden: set[str] = set()
        for listing in self.listings.values():
            found += [item for item in listing.findings if _name_of(item.path) not in hidden]
            hidden |= listing.names
        return tuple(sorted(found, key=lambda item: (item.name, item.distribution)))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what was wrong with the metadata of installed plugins."""
        return tuple(item for listing in self.listings.values() for item in listing.diagnostics)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Return the files whose appearance ends an installation that is under way."""
        return tuple(path for listing in self.listings.values() for path in listing.unfinished)

    @property
    def stamps(self) -> tuple[StampedPath, ...]:
        """Return what `stamped` must still return while nothing was installed or removed."""
        return tuple((folder, listing.stamp) for folder, listing in self.listings.items())


def normalized(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    parts = name.replace("_", "-").replace(".", "-").lower().split("-")
    return "-".join(part for part in parts if part)


def installed_folders() -> tuple[str, ...]:
    """Return the folders of `sys.path` in which distributions may be installed."""
    absolute = (os.path.abspath(folder) for folder in sys.path if folder)
    return tuple(dict.fromkeys(folder for folder in absolute if os.path.isdir(folder)))


def scan_distributions(
    folders: Iterable[str], before: DistributionScan | None = None
) -> DistributionScan:
    """Look for plugin entry points; folders unchanged since `before` are not listed again."""
    known = before.listings if before else {}
    listings: dict[str, _Listing] = {}
    for folder in folders:
        listing = known.get(folder)
        if listing is None or not _still_holds(listing, folder):
            listing = _list(folder)
        listings[folder] = listing
    return DistributionScan(listings)


def _still_holds(listing: _Listing, folder: str) -> bool:
    return listing.settled and not listing.unfinished and listing.stamp == Stamp.at(folder)


def _list(folder: str) -> _Listing:
    # Stamped first: what changes while we list makes the stamp old, and is listed again.
    stamp = Stamp.at(folder)
    try:
        with os.scandir(folder) as entries:
            # "~" is what pip puts before the name of what it could not remove.
            names = sorted(entry.name for entry in entries if entry.name[0] != "~")
    except OSError:
        names = []
    infos = [os.path.join(folder, name) for name in names if name.endswith(".dist-info")]
    findings: list[DistributionFinding] = []
    problems: list[Diagnostic] = []
    installing = [info for info in infos if _is_installing(info)]
    whole = list(_newest(info for info in infos if info not in installing))
    skills = owners(shipped_skills(folder, names), whole, recorded_files)
    for info in whole:
        try:
            findings += _with_skills(_findings(info), info, skills.get(info, ()))
        except (UnreadableFileError, Error, UnicodeDecodeError) as problem:
            problems.append(
                make_diagnostic(
                    "plugin-unreadable", Where(info), f"its metadata is damaged: {problem}"
                )
            )
    return _Listing(
        stamp=stamp,
        names=frozenset(map(_name_of, infos)),
        findings=tuple(findings),
        diagnostics=tuple(problems),
        unfinished=tuple(os.path.join(info, "RECORD") for info in installing),
        settled=stamp.is_settled(),
    )


def _newest(infos: Iterable[str]) -> Iterable[str]:
    """Return one metadata folder of each distribution: an upgrade may have left an older one."""
    of_name: dict[str, list[str]] = {}
    for info in infos:
        of_name.setdefault(_name_of(info), []).append(info)
    return (
        max(same, key=_when_installed) if len(same) > 1 else same[0] for same in of_name.values()
    )


def _when_installed(info: str) -> tuple[int, tuple[int, ...]]:
    """Return what is greater for a later installation; of two in one moment the version tells."""
    written = Stamp.at(os.path.join(info, "RECORD")).modified
    return written, tuple(map(int, re.findall(r"\d+", os.path.basename(info))))


def _name_of(info: str) -> str:
    """Return the normalized name of a distribution, from its metadata folder."""
    return normalized(os.path.basename(info).removesuffix(".dist-info").rpartition("-")[0])


def _is_installing(info: str) -> bool:
    """Tell whether an installer is still writing: RECORD comes last."""
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
    # Nearly every distribution ends here: a test on bytes is all it costs.
    if ENTRY_POINT_GROUP.encode() not in points:
        return []
    # No section gives defaults to the others here; none can have the name "".
    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False, default_section="")
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names keep their case
    parser.read_string(points.decode())
    if not parser.has_section(ENTRY_POINT_GROUP):
        return []
    about = _about(info, points)
    return [
        replace(about, name=name.strip(), value=value.strip())
        for name, value in parser.items(ENTRY_POINT_GROUP)
    ]


def _points(path: str) -> bytes:
    points, _ = read_regular(path, _USUAL_POINTS)
    return points if len(points) <= _USUAL_POINTS else read_regular(path, _METADATA_LIMIT)[0]


def _with_skills(
    found: list[DistributionFinding], info: str, skills: tuple[str, ...]
) -> list[DistributionFinding]:
    """Give the skills that a distribution ships to its first plugin, or make them one."""
    if not skills:
        return found
    first, *more = found or [_about(info)]
    return [replace(first, skills=skills), *more]


def _about(info: str, points: bytes = b"") -> DistributionFinding:
    """Read what a distribution says of itself, under its own name."""
    # Lazy: only who has a plugin installed pays for the mail parser.
    from email.parser import HeaderParser

    metadata, _ = read_regular(os.path.join(info, "METADATA"), _METADATA_LIMIT)
    headers = HeaderParser().parsestr(metadata.decode())
    record = _record(info)
    distribution = str(headers["Name"] or os.path.basename(info).split("-")[0])
    return DistributionFinding(
        name=normalized(distribution),
        value="",
        distribution=distribution,
        version=str(headers["Version"] or ""),
        summary=str(headers["Summary"] or ""),
        path=info,
        digest=digest_of(points + metadata + record),
        files=tuple(_recorded(record)),
    )


def recorded_files(info: str) -> tuple[str, ...]:
    """Return the files that a distribution installed, as its RECORD lists them."""
    return tuple(_recorded(_record(info)))


def _record(info: str) -> bytes:
    try:
        return read_regular(os.path.join(info, "RECORD"), _METADATA_LIMIT)[0]
    except UnreadableFileError:
        return b""


def _recorded(record: bytes) -> Iterable[str]:
    """Yield the paths of a RECORD, which is CSV with the path first."""
    for line in record.decode("utf-8", "replace").splitlines():
        path = line.rsplit(",", 2)[0].strip('"')
        if path:
            yield path
