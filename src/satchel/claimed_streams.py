"""Private streams of a process to stdin and stdout, which other code in it cannot use."""

import os
from contextlib import suppress
from typing import BinaryIO


def claim_stdin() -> BinaryIO:
    """Return a private stream from stdin; other readers of stdin get end-of-file.

    A plugin, or a program that it starts, could otherwise read messages of the client.
    """
    private = _duplicate(0, os.O_RDONLY)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return open(private, "rb")


def claim_stdout() -> BinaryIO:
    """Return a private stream to stdout; all other output to stdout goes to stderr.

    Otherwise a plugin that prints at import, or a C library that it loads, corrupts the data.
    """
    private = _duplicate(1, os.O_WRONLY)
    with suppress(OSError):  # stderr may be closed; then descriptor 1 stays as it is
        os.dup2(2, 1)
    return open(private, "wb")


def _duplicate(descriptor: int, mode: int) -> int:
    try:
        return os.dup(descriptor)
    except OSError:  # the process was started with it closed
        return os.open(os.devnull, mode)
