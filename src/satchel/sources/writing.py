"""Writing the user's own files: at one stroke, or not at all."""

import os
from contextlib import suppress

from satchel.errors import SatchelError

_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700


def write_whole(path: str, data: bytes, *, private: bool = False) -> None:
    """Replace a file at one stroke; a link stays a link, and a mode what it was.

    What is `private` only its owner may read, whatever mode it had; so may a folder that is made
    for it. Raises `SatchelError`.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    try:
        os.makedirs(folder, mode=_PRIVATE_FOLDER if private else 0o777, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(beside, flags, _PRIVATE_FILE if private else 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                if os.path.exists(target) and not private:
                    os.fchmod(file.fileno(), os.stat(target).st_mode & 0o7777)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise SatchelError(f"cannot be written: {reason}", where=path) from None
