"""Where skills and plugins come from: a git repository, an archive or a folder."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from satchel.errors import SatchelError
from satchel.formats.source_text import without_known_user
from satchel.lazy_dataclass import dataclass
from satchel.sources.search_roots import full_path

_GITHUB = re.compile(
    r"github:(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<repo>[A-Za-z0-9_.-]+?)(?:\.git)?"
    r"(?:/(?P<path>[^@]*))?(?:@(?P<rev>.+))?"
)
_REV = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_SCHEMES = ("https", "ssh", "file")
ARCHIVE_ENDING = re.compile(r"\.(?:zip|tar(?:\.(?:gz|bz2|xz))?|tgz|tbz2?|txz)$", re.IGNORECASE)
_SUBDIRECTORY = "subdirectory="
_SHA256 = re.compile(r"sha256=[0-9A-Fa-f]{64}")
_LEAST_OF_COMMIT = 7
"""Letters of a commit's name that stand for it."""
_FORMS = "write a folder, an archive, git+https://..., or github:owner/repo"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAddress:
    """One source as the user wrote it, checked."""

    kind: Literal["git", "archive", "folder"]
    text: str
    """What the user wrote, for the record."""
    location: str
    """The URL for git, the URL or path of an archive, or the path of a folder."""
    rev: str = ""
    """The branch, tag or commit; `""` for the default branch."""
    subdirectory: str = ""
    """The folder to use, with `/`."""
    sha256: str = ""
    """The digest that the archive must have, if it is known."""

    @property
    def name(self) -> str:
        """Return a name for the folder of its content."""
        last = (self.subdirectory or self.location).rstrip("/").rpartition("/")[2]
        return ARCHIVE_ENDING.sub("", last.removesuffix(".git")) or "source"

    @property
    def is_path(self) -> bool:
        """Return whether it is a path on this machine."""
        return self.kind != "git" and not self.text.startswith("https://")

    @property
    def is_local(self) -> bool:
        """Return whether it is on this machine, also as a repository."""
        return self.is_path or self.location.lower().startswith("file:")

    def pinned(self, commit: str) -> "SourceAddress":
        """Return it with the whole name of the commit if its beginning was given."""
        if len(self.rev) < _LEAST_OF_COMMIT or not commit.startswith(self.rev.lower()):
            return self
        # A folder in github:owner/repo/folder may have a "#".
        is_url = self.text.startswith("git+")
        source, sign, fragment = self.text.partition("#") if is_url else (self.text, "", "")
        text = f"{source.removesuffix(self.rev)}{commit}{sign}{fragment}"
        return replace(self, text=text, rev=commit)


def read_address(text: str) -> SourceAddress:
    """Return the source that a text means. Raises `SatchelError`; secrets are never quoted."""
    if not text or not text.isprintable():
        raise SatchelError("the source is empty or has invisible characters", fix=_FORMS)
    # Without a password it has no effect. Any other user name of https may be a token.
    text = without_known_user(text)
    if text.startswith("github:"):
        return _github(text)
    if text.startswith("git+"):
        return _git(text)
    if text.startswith("https://"):
        return _web_archive(text)
    path = full_path(text)
    if os.path.isdir(path):
        if _is_bare_repository(path):
            fix = f"write git+{Path(path).as_uri()}"
            raise SatchelError("is a bare git repository", where=text, fix=fix)
        return SourceAddress(kind="folder", text=text, location=path)
    if os.path.isfile(path) and ARCHIVE_ENDING.search(path):
        return SourceAddress(kind="archive", text=text, location=path)
    # Not quoted: the part before "@" may be a token.
    if text.startswith("http://"):
        raise SatchelError("addresses with 'http' are not used", fix="use https://")
    if "://" in text or re.match(r"(?:\w+:/*)?[^/\\]*@", text):
        raise SatchelError("this kind of address is not supported", fix=_FORMS)
    message = "is neither a folder nor an archive" if os.path.lexists(path) else "does not exist"
    fix = "leave out '#sha256=', which is for https addresses" if "#sha256=" in text else _FORMS
    raise SatchelError(message, where=text, fix=fix)


def _is_bare_repository(folder: str) -> bool:
    """Return whether a folder has the files of a git repository in place of its content."""
    folders = (os.path.join(folder, name) for name in ("objects", "refs"))
    return os.path.isfile(os.path.join(folder, "HEAD")) and all(map(os.path.isdir, folders))


def _github(text: str) -> SourceAddress:
    match = _GITHUB.fullmatch(text)
    if match is None or match["repo"] in {".", ".."}:
        shown = re.sub(r"^[^/]*@|\?.*", "***", text)
        raise SatchelError("is not github:owner/repo[/path][@rev]", where=shown)
    return SourceAddress(
        kind="git",
        text=text,
        location=f"https://github.com/{match['owner']}/{match['repo']}.git",
        rev=_checked_rev(match["rev"] or ""),
        subdirectory=_checked_path(match["path"] or ""),
    )


def _git(text: str) -> SourceAddress:
    url, _, fragment = text.removeprefix("git+").partition("#")
    if fragment and not fragment.startswith(_SUBDIRECTORY):
        raise SatchelError("after '#', only subdirectory=PATH is known")
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    path, _, rev = path.rpartition("@") if "@" in path else (path, "", "")
    location = f"{scheme}{separator}{host}{slash}{path}"
    _require_safe(location)
    return SourceAddress(
        kind="git",
        text=text,
        location=location,
        rev=_checked_rev(rev),
        subdirectory=_checked_path(unquote(fragment.removeprefix(_SUBDIRECTORY))),
    )


def _web_archive(text: str) -> SourceAddress:
    url, sign, fragment = text.partition("#")
    if sign and not _SHA256.fullmatch(fragment):
        raise SatchelError("after '#', only sha256= with 64 hexadecimal digits is known")
    _require_safe(url)
    if not ARCHIVE_ENDING.search(urlsplit(url).path):
        raise SatchelError(
            "this address is not an archive such as .zip or .tar.gz",
            fix="write git+https://... for a repository",
        )
    digest = fragment.removeprefix("sha256=")
    return SourceAddress(kind="archive", text=text, location=url, sha256=digest)


def _require_safe(url: str) -> None:
    """Raise `SatchelError` for an address that git could take for something else."""
    try:
        parts = urlsplit(url)
        host, user, port = parts.netloc.rpartition("@")[2], parts.username or "", parts.port
    except ValueError:
        raise SatchelError("this is not an address", fix=_FORMS) from None
    if parts.scheme not in _SCHEMES:
        fix = f"use {', '.join(f'git+{scheme}://' for scheme in _SCHEMES)}"
        raise SatchelError(f"addresses with {parts.scheme!r} are not used", fix=fix)
    if parts.password is not None or (user and parts.scheme == "https"):
        problem = "the address has a password or token, which would be written down"
        raise SatchelError(problem, fix="leave out the part before '@', or use ssh")
    if parts.query:
        problem = "the address has a query, which may be a token and would be written down"
        raise SatchelError(problem, fix="leave out the part from '?' on")
    host = host.removesuffix(f":{port}") if port is not None else host
    is_host = not host if parts.scheme == "file" else bool(_HOST.fullmatch(host))
    if not is_host or (user and not _USER.fullmatch(user)) or not parts.path.startswith("/"):
        raise SatchelError("the address has no valid host or path", fix=_FORMS)
    if " " in url or not url.isascii():
        character = next(it for it in url if it == " " or not it.isascii())
        problem = f"the address has {'a space' if character == ' ' else repr(character)} in it"
        raise SatchelError(problem, fix=f"write {quote(character)} for it")
    if parts.path.startswith("/-"):
        raise SatchelError("the path of the address begins with '-'", fix=_FORMS)


def _checked_rev(rev: str) -> str:
    bad = (".." in rev, rev.endswith(("/", ".", ".lock")), "//" in rev)
    if rev and (not _REV.fullmatch(rev) or any(bad)):
        raise SatchelError("the part after '@' is not a branch, tag or commit")
    return rev


def _checked_path(path: str) -> str:
    """Return a path inside the source, without empty parts."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]
    if ".." in parts or not path.isprintable():
        raise SatchelError("the folder inside the source leads out of it")
    return "/".join(parts)
