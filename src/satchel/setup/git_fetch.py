"""Fetch one commit of a git repository, and write its files without running anything of it.

The installed `git` only transfers and unpacks objects. The files are written here, from the
objects, so no hook, filter, attribute, submodule or setting of the repository has an effect.
The user's own configuration of git is not read either: it can name programs to run.
"""

import os
import posixpath
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import IO

from satchel.errors import SatchelError
from satchel.files.installed_programs import absolute_path_variable, find_program
from satchel.files.process_group import run_in_group
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.archive_extraction import ExtractedMembers, keep_executable
from satchel.setup.source_addresses import SourceAddress
from satchel.text import one_line, shorten

MOST_FILES = 50_000
MOST_BYTES = 512 * MIB
_SECONDS = 300.0
_NO_REPOSITORY = "does not appear to be a git repository"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BEGINNING = re.compile(r"[0-9a-fA-F]{7,64}")
_FILE_MODES = frozenset({"100644", "100755", "100664"})
_LINK = "120000"
_SLASH = re.compile("/")
_MOST_STEPS = 40
"""As many links as systems follow for one path."""
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.sshCommand=ssh -oBatchMode=yes",
    "credential.helper=",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "fetch.writeCommitGraph=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "http.followRedirects=initial",
    "init.defaultBranch=main",
    "protocol.version=2",
)
_MANY = ("+refs/heads/*:refs/remotes/it/*", "+refs/tags/*:refs/tags/*")
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TreeFile:
    mode: str
    blob: str
    path: str


def fetch_commit(address: SourceAddress, target: str) -> tuple[str, tuple[str, ...]]:
    """Write the files of a commit to the new folder `target`.

    Returns the commit, and notes about what was left out. Raises `SatchelError`.
    """
    with tempfile.TemporaryDirectory(prefix="satchel-git-") as folder:
        git = _Git(os.path.join(folder, "repository"), address)
        git.run("init", "--quiet", "--bare", "--template=", git.folder)
        commit = git.fetch()
        notes = _Writer(target, git, address).write(commit)
    return commit, notes


class _Git:
    """Runs git in an environment of its own."""

    def __init__(self, folder: str, address: SourceAddress) -> None:
        self.folder, self._address = folder, address
        scheme = address.location.partition(":")[0]
        names = {*_KEPT, *_PROXIES, *map(str.upper, _PROXIES)}
        self._environment = {
            **{name: value for name, value in os.environ.items() if name in names},
            "PATH": absolute_path_variable(),
            "GIT_ALLOW_PROTOCOL": scheme,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }

    def fetch(self) -> str:
        rev, url = self._address.rev, self._address.location
        one = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", url)
        commit, is_beginning = "", _BEGINNING.fullmatch(rev) and not _COMMIT.fullmatch(rev)
        if not is_beginning:
            try:
                self._git(*one, rev or "HEAD")
                commit = self._commit_of("FETCH_HEAD")
            except SatchelError:
                if not rev:
                    raise
        if not commit:
            # An old server, or the beginning of a commit's name: look through everything.
            self._git("fetch", "--quiet", "--no-recurse-submodules", "--", url, *_MANY)
            names = (f"refs/tags/{rev}", f"refs/remotes/it/{rev}", rev)
            commit = self._beginning_with(rev) if is_beginning else ""
            commit = commit or next(filter(None, map(self._found, names)), "")
        if not commit or (_COMMIT.fullmatch(rev) and commit != rev):
            raise SatchelError(f"has no branch, tag or commit {rev!r}", where=self._shown)
        return commit

    def files(self, commit: str) -> Iterator[_TreeFile]:
        data = self._git("ls-tree", "-r", "-z", "--full-tree", commit)
        for line in data.split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, _, blob = head.decode().split(" ")
            yield _TreeFile(mode=mode, blob=blob, path=path.decode("utf-8", "surrogateescape"))

    @contextmanager
    def blobs(self) -> Iterator["_Blobs"]:
        with self._start("cat-file", "--batch") as process:
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                yield _Blobs(process.stdin, process.stdout)
            finally:
                process.kill()  # it reads the local repository, and starts no other program

    def run(self, *arguments: str) -> bytes:
        try:
            process = run_in_group(
                self._command(arguments),
                _SECONDS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
            )
        except subprocess.TimeoutExpired:
            message = f"git took more than {_SECONDS:.0f} seconds"
            raise SatchelError(message, where=self._shown) from None
        except OSError as problem:
            raise _no_git(problem) from None
        if process.returncode:
            errors = shorten(one_line(process.stderr.decode(errors="replace")), 400)
            if _NO_REPOSITORY in errors:
                raise SatchelError("is no git repository that you may read", where=self._shown)
            raise SatchelError(f"git failed: {errors}", where=self._shown)
        return process.stdout

    @property
    def _shown(self) -> str:
        return one_line(self._address.text)

    def _git(self, *arguments: str) -> bytes:
        return self.run(f"--git-dir={self.folder}", *arguments)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = self._command((f"--git-dir={self.folder}", *arguments))
        try:
            return subprocess.Popen(  # noqa: S603 - as above
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=self._environment, start_new_session=True,
            )  # fmt: skip
        except OSError as problem:
            raise _no_git(problem) from None

    def _command(self, arguments: Iterable[str]) -> list[str]:
        settings = (part for setting in _SETTINGS for part in ("-c", setting))
        git = find_program("git") or "git"
        return [git, "--no-pager", "--no-replace-objects", *settings, *arguments]

    def _commit_of(self, name: str) -> str:
        arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        commit = self._git(*arguments).decode().strip()
        return commit if _COMMIT.fullmatch(commit) else ""

    def _beginning_with(self, rev: str) -> str:
        """Return the commit that begins so: no branch or tag of that name stands for it."""
        objects = self._git("rev-parse", f"--disambiguate={rev}").decode().split()
        commits = [name for name in objects if self._found(name) == name]
        if len(commits) > 1:
            raise SatchelError(f"has several commits that begin with {rev!r}", where=self._shown)
        return commits[0] if commits else ""

    def _found(self, name: str) -> str:
        try:
            return self._commit_of(name)
        except SatchelError:
            return ""


class _Blobs:
    """Reads the contents of files from a running `git cat-file --batch`."""

    def __init__(self, asked: IO[bytes], answered: IO[bytes]) -> None:
        self._asked, self._answered = asked, answered

    def read(self, blob: str, most_bytes: int) -> bytes:
        self._asked.write(blob.encode() + b"\n")
        self._asked.flush()
        _, kind, size = (*self._answered.readline().split(), b"", b"")[:3]
        if kind != b"blob":
            raise SatchelError("the repository is damaged")
        if int(size) > most_bytes:
            raise SatchelError(f"has more than {MOST_BYTES // MIB} MiB of files")
        data = self._answered.read(int(size))
        self._answered.read(1)
        return data


class _Writer:
    """Writes the wanted files of a commit into a new folder."""

    def __init__(self, target: str, git: _Git, address: SourceAddress) -> None:
        self._target, self._git, self._address = target, git, address
        self._members = ExtractedMembers(target, MOST_FILES, MOST_BYTES, with_links=True)
        self._left = MOST_BYTES

    def write(self, commit: str) -> tuple[str, ...]:
        below = self._address.subdirectory
        files = {item.path: item for item in self._git.files(commit)}
        if below and not any(path.startswith(f"{below}/") for path in files):
            raise SatchelError(f"has no folder {below!r}", where=one_line(self._address.text))
        os.makedirs(self._target)
        notes: list[str] = []
        with self._git.blobs() as blobs:
            links = {
                path: self._read(blobs, item).decode("utf-8", "surrogateescape")
                for path, item in files.items()
                if item.mode == _LINK
            }
            chosen = _with_targets(below, links)
            for path, item in files.items():
                if not _is_below(path, chosen):
                    continue
                if path in links:
                    self._members.add_link(path, links[path])
                elif item.mode in _FILE_MODES:
                    self._write_file(path, self._read(blobs, item), int(item.mode, 8))
                else:
                    notes.append(f"left out the submodule {one_line(path)}")
        self._members.write_links()
        return tuple(notes)

    def _read(self, blobs: _Blobs, item: _TreeFile) -> bytes:
        data = blobs.read(item.blob, self._left)
        self._left -= len(data)
        return data

    def _write_file(self, name: str, data: bytes, mode: int) -> None:
        path = self._members.add(name, len(data), is_folder=False, is_plain=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)
        keep_executable(path, is_folder=False, mode=mode)


def _with_targets(folder: str, links: Mapping[str, str]) -> set[str]:
    """Return the paths of a folder, and of what links in it lead to, also through other links."""
    chosen = {folder}
    for _ in range(_MOST_STEPS if folder else 0):
        targets = {
            posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
            for path, text in links.items()
            if _is_below(path, chosen)
        }
        steps = {above for target in targets for above in _paths_to(target) if above in links}
        if targets | steps <= chosen:
            break
        chosen |= targets | steps
    return chosen


def _is_below(path: str, folders: AbstractSet[str]) -> bool:
    return not folders.isdisjoint(_paths_to(path))


def _paths_to(path: str) -> Iterator[str]:
    """Yield `""`, and the path of each folder that a path is in, and the path."""
    yield ""
    for match in _SLASH.finditer(f"{path}/"):
        yield path[: match.start()]


def _no_git(problem: OSError) -> SatchelError:
    return SatchelError(f"cannot run git: {problem.strerror}", fix="install git")
