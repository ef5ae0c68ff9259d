"""Where Python keeps the compiled files of what Satchel starts, and who may forge them."""

import os
import stat
from collections.abc import Mapping
from contextlib import suppress

from satchel.files.state_files import cache_path, make_folder

VARIABLE = "PYTHONPYCACHEPREFIX"


def compiled_cache() -> str:
    """Return the folder that Python uses instead of `__pycache__`, which only the user can write.

    Without such a folder it is one that cannot exist, so that nothing is kept.
    """
    if os.path.isabs(folder := os.environ.get(VARIABLE, "")):
        return folder
    make_folder(path := cache_path("compiled"))
    try:
        status = os.lstat(path)
    except OSError:
        return os.devnull
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    is_private = stat.S_ISDIR(status.st_mode) and is_own and not status.st_mode & 0o022
    return path if is_private else os.devnull


def own_compiled() -> Mapping[str, str]:
    """Return the variable that keeps a program from the compiled files beside its sources."""
    return {VARIABLE: compiled_cache()}


def forget_compiled(path: str) -> None:
    """Delete what Python keeps there of a folder or a module that may be new.

    Python compares only the second and the size of a source, and an installer that replaces it
    cleans `__pycache__` alone.
    """
    import shutil
    from glob import escape, glob

    below = os.path.splitdrive(os.path.abspath(path))[1].lstrip(os.sep)
    kept = os.path.join(compiled_cache(), below)
    if not path.endswith(".py"):
        shutil.rmtree(kept, ignore_errors=True)
    for file in glob(f"{escape(kept.removesuffix('.py'))}.*.pyc"):
        with suppress(OSError):
            os.remove(file)


def is_replaceable(path: str) -> bool:
    """Return whether a file is compiled from a source beside, so Python makes it again.

    It has a tag, as `STEM.TAG.pyc`: a `STEM.pyc` there could be imported without a source.
    """
    folder, name = os.path.split(path)
    above, last = os.path.split(folder)
    stem, _, tag = name.removesuffix(".pyc").partition(".")
    is_cached = last == "__pycache__" and name.endswith(".pyc") and tag != ""
    return is_cached and os.path.isfile(os.path.join(above, f"{stem}.py"))
