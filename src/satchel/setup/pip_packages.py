"""Install and remove packages with pip or uv, in the running Python environment."""

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from satchel.errors import SatchelError
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.files.installed_programs import find_program
from satchel.files.state_files import make_folder, names_in, user_folder
from satchel.formats.source_text import masked_source
from satchel.importing.distributions import (
    ENTRY_POINT_GROUP,
    DistributionFinding,
    installed_folders,
    normalized,
    scan_distributions,
)
from satchel.importing.shipped_skills import SHIPPED_SKILLS
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.artefact_signatures import digest_of_file

_PROJECT_FILE = "pyproject.toml"
_REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[\[<>=!~;@(].*)?")
_QUIET = ("--disable-pip-version-check", "--no-input")
PACKAGE_FILES = (".whl", ".tar.gz", ".zip")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipPackage:
    """A package to install: a requirement, or the path of a project or a file."""

    target: str
    distribution: str
    """The name of its distribution, `""` if it is unknown before the installation."""
    editable: bool = False
    sha256: str = ""
    """The digest of a file, or of the wheel of an index; another content is not installed."""
    version: str = ""
    """The version of that wheel."""

    @property
    def shown(self) -> str:
        """What messages say about the target; its address may have a token."""
        return masked_source(self.target)

    @property
    def is_file(self) -> bool:
        """Whether it is a local file, such as a wheel."""
        return bool(self.sha256 and not self.version)

    def install(self) -> None:
        """Install it. Raises `SatchelError`."""
        target = self.target
        if self.version:
            self._install_wheel()
        if self.is_file:
            target = f"{Path(target).as_uri()}#sha256={self.sha256}"
        _run(["install", *(["--editable"] if self.editable else []), target])

    def _install_wheel(self) -> None:
        """Install exactly the wheel with the digest, without what it depends on."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(f"{self.distribution}=={self.version} --hash=sha256:{self.sha256}\n")
            file.flush()
            exactly = ["--no-deps", "--only-binary", ":all:", "--require-hashes"]
            _run(["install", *exactly, "-r", file.name])

    def plugins(self, before: Iterable[DistributionFinding]) -> list[DistributionFinding]:
        """Return the installed plugins of the package, given the plugins before it."""
        if self.distribution:
            name = normalized(self.distribution)
            return [item for item in installed() if normalized(item.distribution) == name]
        earlier = {(item.path, item.digest) for item in before}
        return [item for item in installed() if (item.path, item.digest) not in earlier]


def installed() -> tuple[DistributionFinding, ...]:
    """Return every plugin of every installed distribution."""
    return scan_distributions(installed_folders()).findings


def is_project(path: str) -> bool:
    """Return whether a folder has the file of a pip project."""
    return os.path.isfile(os.path.join(path, _PROJECT_FILE))


def project(path: str, *, editable: bool) -> PipPackage | None:
    """Return the pip project in a folder, or `None`.

    Raises `SatchelError` for a project that cannot contain a plugin.
    """
    if not is_project(path):
        return None
    file = os.path.join(path, _PROJECT_FILE)
    # Lazy: most plugins are folders.
    import tomllib

    try:
        data, _ = read_regular(file, MIB)
        content = tomllib.loads(data.decode())
    except (UnreadableFileError, ValueError) as problem:
        raise SatchelError(f"cannot read: {problem}", where=file) from None
    table = content.get("project")
    if not isinstance(table, dict):  # the build tool has a table of its own
        return PipPackage(target=os.path.abspath(path), distribution="", editable=editable)
    points = table.get("entry-points")
    has_plugin = isinstance(points, dict) and ENTRY_POINT_GROUP in points
    if not (has_plugin or "entry-points" in table.get("dynamic", ()) or _ships_skills(path)):
        message = f"contains no plugin: it has no [project.entry-points.{ENTRY_POINT_GROUP!r}]"
        raise SatchelError(message, where=file)
    name = str(table.get("name", ""))
    return PipPackage(target=os.path.abspath(path), distribution=name, editable=editable)


def _ships_skills(path: str) -> bool:
    """Return whether a project has skills that its wheel may contain."""
    bases = (path, os.path.join(path, "src"))
    folders = [os.path.join(base, name) for base in bases for name in names_in(base)]
    return any(os.path.isdir(os.path.join(folder, *SHIPPED_SKILLS)) for folder in (path, *folders))


def package_file(path: str) -> PipPackage | None:
    """Return the package in a file such as a wheel; `None` if the name is not a package's."""
    name = os.path.basename(path)
    if not name.endswith(PACKAGE_FILES):
        return None
    is_wheel = name.endswith(".whl")
    path, distribution = os.path.abspath(path), name.split("-")[0] if is_wheel else ""
    return PipPackage(target=path, distribution=distribution, sha256=digest_of_file(path))


def requirement(text: str) -> PipPackage | None:
    """Parse a requirement such as `acme-weather>=2`; `None` if the text is not one."""
    match = _REQUIREMENT.fullmatch(text)
    return PipPackage(target=text, distribution=match[1]) if match else None


def uninstall(distribution: str) -> None:
    """Remove a distribution. Raises `SatchelError`."""
    _run(["uninstall", distribution])


def wheel_report(requirement: str) -> str:
    """Return what pip says about the wheel that it would install, as JSON; nothing is built.

    Raises `SatchelError`.
    """
    only = ["--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:"]
    return _output(["install", *_QUIET, *only, "--report", "-", requirement])


def index_urls() -> tuple[str, ...]:
    """Return the indexes that pip is configured to use. Raises `SatchelError`."""
    matches = re.findall(
        r"^[\w:.-]+\.((?:extra-)?index-url)='(.*)'$", _output(["config", "list"]), re.MULTILINE
    )
    first = [url for key, url in matches if key == "index-url"] or ["https://pypi.org/simple"]
    others = [url for key, text in matches if key != "index-url" for url in text.split("\\n")]
    return tuple(dict.fromkeys(it for url in (*first, *others) for it in url.split()))


def _output(arguments: list[str]) -> str:
    """Return what pip prints. Raises `SatchelError`."""
    import subprocess  # lazy: slow to import

    if not find_spec("pip"):
        raise SatchelError("only pip says which wheel it would install, and it is not installed")
    line = [sys.executable, "-P", "-m", "pip", *arguments]
    try:
        process = subprocess.run(  # noqa: S603
            line, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError as problem:
        raise SatchelError(f"cannot run pip: {problem.strerror}") from None
    if process.returncode:
        raise SatchelError("pip finds no wheel for it")
    return process.stdout


def _run(arguments: list[str]) -> None:
    import subprocess  # lazy: slow to import, and most plugins are folders

    command, *rest = arguments
    folder = None
    if find_spec("pip"):
        quiet = {"install": _QUIET, "uninstall": ["--yes"]}
        # -P: modules of the current folder must not be imported in place of those of pip.
        line = [sys.executable, "-P", "-m", "pip", command, *quiet[command], *rest]
    elif uv := find_program("uv"):
        line = [uv, "pip", command, "--python", sys.executable, *rest]
        # A uv.toml of the current folder could name the index to install from.
        folder = user_folder("cache", "")
        make_folder(folder)
    else:
        raise SatchelError(
            f"found neither pip nor uv to {command} the package",
            fix=f"run: {sys.executable} -m ensurepip",
        )
    try:
        # Stdout is for data. Descriptor 2, because `sys.stderr` may be replaced.
        process = subprocess.run(  # noqa: S603
            line, check=False, cwd=folder, stdin=subprocess.DEVNULL, stdout=2
        )
    except OSError as problem:
        raise SatchelError(f"cannot run {line[0]}: {problem.strerror}") from None
    if process.returncode:
        raise SatchelError(f"{'uv' if folder else 'pip'} could not {command} {rest[-1]!r}")
