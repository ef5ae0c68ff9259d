"""Find the programs that Satchel itself starts, such as git, uv and bubblewrap."""

import os


def absolute_path_variable() -> str:
    """Return `PATH` without relative folders: these may be those of a project that is not trusted.

    An empty entry is the current folder.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, folders)) or os.defpath


def find_program(name: str) -> str | None:
    """Return the path of an installed program, `None` if there is none."""
    import shutil  # lazy: slow to import

    return shutil.which(name, path=absolute_path_variable())
