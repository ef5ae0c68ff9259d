"""Find git's lock files: while one exists, git is changing the work tree."""

import os

from satchel.files.file_reader import read_or_none


def git_locks(roots: tuple[str, ...]) -> set[str]:
    """Return the paths of git's lock files for the work trees that contain the roots."""
    folders = (_git_folder(root) for root in roots)
    return {os.path.join(folder, "index.lock") for folder in folders if folder}


def _git_folder(folder: str) -> str:
    """Return the git folder of the work tree that contains a folder, or `""`."""
    while not os.path.exists(git := os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return ""
    if os.path.isdir(git):
        return git
    # In a worktree or submodule it is a file that names the folder: "gitdir: PATH".
    text = read_or_none(git, 4096)
    if text is None:
        return ""
    return os.path.join(folder, os.fsdecode(text).removeprefix("gitdir:").strip())
