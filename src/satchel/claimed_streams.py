"""Private streams of a process to stdin and stdout, which other code in it cannot use."""

import os
from typing import BinaryIO

_STANDARD = (0, 1, 2)


def claim_stdin() -> BinaryIO:
    """Return a private stream from stdin; other readers of stdin get end-of-file.

    A plugin, or a program that it starts, could otherwise read messages of the client.
    """
    private = _duplicate(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return open(private, "rb")


def claim_stdout() -> BinaryIO:
    """Return a private stream to stdout; all other output to stdout goes to stderr.

    Otherwise a plugin that prints at import, or a C library that it loads, corrupts the data.
    """
    private = _duplicate(1)
    os.dup2(2, 1)
    return open(private, "wb")


def _duplicate(descriptor: int) -> int:
    """Return a duplicate of a standard stream, which is no standard stream itself.

    Those that are closed are first opened to the null device: a new descriptor gets the lowest
    free number.
    """
    while (free := os.open(os.devnull, os.O_RDWR)) in _STANDARD:
        os.set_inheritable(free, True)
    os.close(free)
    return os.dup(descriptor)
