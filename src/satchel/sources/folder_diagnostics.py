"""The diagnostics of folders and files that cannot be searched or read."""

import errno
import os
from dataclasses import replace
from shlex import quote

from satchel.diagnostics import Diagnostic, Severity, Where, make_diagnostic
from satchel.files.file_reader import real_path, reason_of

LET_READ = "let this process read it"


def in_repository(folder: str) -> Diagnostic:
    """Return the diagnostic of a repository inside a project, which is not loaded."""
    return make_diagnostic(
        "source-nested-repository",
        Where(folder),
        "is a repository of its own; the trust in the project around it does not include it",
        f"look at it, then name it with --skills or --plugins {quote(folder)}",
    )


def unlistable(path: str, reason: str) -> Diagnostic:
    """Return the diagnostic of a folder that cannot be listed."""
    message = f"cannot be listed: {reason}"
    return make_diagnostic("source-unreadable", Where(path), message, LET_READ)


def fix_of_unreadable(cause: Diagnostic | None, fix: str) -> str:
    """Return how to make a needed file readable; `fix` is for what is no regular file."""
    if cause is not None and cause.code == "source-unreadable":
        return LET_READ
    is_link = cause is not None and cause.message.startswith("is a link")
    return f"correct the link, or {fix}" if is_link else fix


def link_loop(path: str) -> Diagnostic:
    """Return the diagnostic of a link to a folder above it."""
    return make_diagnostic(
        "source-link-loop", Where(path), "leads back to a folder above; not followed"
    )


def link_outside(path: str) -> Diagnostic:
    """Return the diagnostic of a link that leaves the root."""
    return make_diagnostic(
        "source-link-outside",
        Where(path),
        f"is a link to {_target_of(path)}, outside the folder you named; it is not followed",
        "name its target as a folder of its own, or copy it in",
    )


def link_to_no_skill(path: str) -> Diagnostic:
    """Return the diagnostic of a link of the user's own that leads out, and not to one skill."""
    return make_diagnostic(
        "source-link-outside",
        Where(path),
        f"is a link to {_target_of(path)}, outside of this folder; such a link is followed only "
        "to the folder of one skill",
        "link to each skill's folder, or name its target as a folder of its own",
    )


def unfollowed(path: str, error: OSError) -> Diagnostic:
    """Return the diagnostic of a link that cannot be followed."""
    if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
        return unlistable(path, reason_of(error))
    why = "leads back to itself" if error.errno == errno.ELOOP else "does not exist"
    return make_diagnostic(
        "source-link-broken",
        Where(path),
        f"is a link to {_target_of(path)}, which {why}",
        "correct the link, or remove it",
    )


def _target_of(path: str) -> str:
    """Return what a link says, in quotes; the place where it leads if it was replaced."""
    try:
        return repr(os.readlink(path))
    except OSError:
        return repr(real_path(path))


def missing(path: str) -> Diagnostic:
    """Return the diagnostic of a search root or project that does not exist."""
    message = "is not a folder" if os.path.exists(path) else "does not exist"
    fix = "create it, or name another folder"
    item = make_diagnostic("source-missing", Where(path), message, fix)
    # The user or the host named it. A missing folder of a manifest is only a warning.
    return replace(item, severity=Severity.ERROR)


def too_deep(folder: str, depth: int, limit_name: str = "") -> Diagnostic:
    """Return the diagnostic of a folder that is too deep to be searched."""
    setting = f" (limit {limit_name})" if limit_name else ""
    return make_diagnostic(
        "source-too-deep",
        Where(folder),
        f"is more than {depth} levels deep{setting}; it is not searched",
        "move it up, or name it as a folder of its own",
    )


def special_file(path: str) -> Diagnostic:
    """Return the diagnostic of what is neither a regular file nor a folder."""
    return make_diagnostic(
        "source-special-file",
        Where(path),
        "is not a regular file; it is never read",
        "remove it if nothing needs it there",
    )


def too_many_files(folder: str, most: int, kind: str) -> Diagnostic:
    """Return the diagnostic of a folder of which only a part is read."""
    return make_diagnostic(
        "source-too-many",
        Where(folder),
        f"has more than {most} {kind} (limit files_per_skill); the rest is left out",
        "remove files, or raise the limit",
    )


def not_utf8(folder: str, name: str) -> Diagnostic:
    """Return the diagnostic of a file or folder whose name is not UTF-8."""
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    return make_diagnostic(
        "source-name-not-utf8",
        Where(folder),
        f"the name {shown!r} is not UTF-8; it is left out",
        "rename it",
    )
