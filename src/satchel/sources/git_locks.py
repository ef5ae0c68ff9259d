"""Git, as far as a watch must know it: a work tree under a lock is being changed."""

import os

from satchel.sources.file_reader import UnreadableFileError, read_regular


def git_locks(roots: tuple[str, ...]) -> set[str]:
    """Return where git would put its lock for the work trees that the roots lie in."""
    folders = (_git_folder(root) for root in roots)
    return {os.path.join(folder, "index.lock") for folder in folders if folder}


def _git_folder(folder: str) -> str:
    """Return git's own folder for the work tree that a folder lies in, or `""`."""
    while not os.path.exists(git := os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return ""
    if os.path.isdir(git):
        return git
    # In a worktree or submodule it is a file that names the folder: "gitdir: PATH".
    try:
        text, _ = read_regular(git, 4096)
    except UnreadableFileError:
        return ""
    return os.path.join(folder, os.fsdecode(text).removeprefix("gitdir:").strip())
