"""A plugin's file of `KEY=value` lines: read, and changed without touching its other lines."""

import os
import re
from collections.abc import Mapping
from io import StringIO

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import SatchelError
from satchel.settings import KIB
from satchel.sources.atomic_write import file_lock, write_atomic
from satchel.sources.file_reader import UnreadableFileError, read_regular

LIMIT = 256 * KIB
"""Largest file that is read, in bytes."""

Values = dict[str, str]
_BEFORE_KEY = re.compile(r"\s*(?:export[^\S\r\n]+)?")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


def read_env(path: str) -> tuple[Values, tuple[Diagnostic, ...]]:
    """Return the values of a file by their keys in lower case, and what is wrong with it."""
    if not os.path.lexists(path):
        return {}, ()
    try:
        return parse_env(_text(path), path)
    except SatchelError as problem:
        return {}, (_unreadable(path, problem.message),)


def parse_env(text: str, path: str) -> tuple[Values, tuple[Diagnostic, ...]]:
    """Take a text apart as `read_env` does; a line that cannot be read is left out."""
    # Not `dotenv_values`: it logs a bad line at every look. Nothing is interpolated either, since
    # a password may hold a dollar sign.
    from dotenv.parser import parse_stream

    lines = list(parse_stream(StringIO(text)))
    bad = [line.original.line for line in lines if line.error]
    values = {line.key.lower(): line.value for line in lines if line.key and line.value}
    return values, tuple(_odd_line(path, number) for number in bad)


def change_env(path: str, changes: Mapping[str, str | None]) -> bool:
    """Give keys of a file new values, or with `None` none; tell whether anything changed.

    Comments, order and the other lines stay as they are. The file is made if it is not there,
    and only its owner may read it. Raises `SatchelError`, also for a value that the file could
    not give back.
    """
    wanted = {key.lower(): value for key, value in changes.items()}
    if not os.path.exists(path) and not any(value is not None for value in wanted.values()):
        return False
    with file_lock(path, private=True):
        return _change(path, wanted)


def _change(path: str, wanted: Mapping[str, str | None]) -> bool:
    before = _text(path) if os.path.exists(path) else ""
    known, odd = parse_env(before, path)
    if all(known.get(key) == value for key, value in wanted.items()):
        return False
    after = _edited(before, wanted)
    merged = {**known, **wanted}
    expected = {key: value for key, value in merged.items() if value is not None}
    found, still_odd = parse_env(after, path)
    if found != expected or len(still_odd) > len(odd):
        fault = "cannot be edited by a program; edit it by hand"
        raise SatchelError(fault, where=path)
    write_env(path, after)
    return True


def replace_env(path: str, before: str, text: str) -> bool:
    """Replace the whole file if its text is still the one `before`; tell whether it was.

    Raises `SatchelError`.
    """
    with file_lock(path, private=True):
        if env_text(path) != before:
            return False
        write_env(path, text)
        return True


def write_env(path: str, text: str) -> None:
    """Replace the whole file. Raises `SatchelError`."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise SatchelError("a value is not proper text; nothing was written") from None
    if len(data) > LIMIT:
        raise SatchelError(f"would be larger than {LIMIT} bytes; nothing was written", where=path)
    write_atomic(path, data, private=True)


def env_text(path: str) -> str:
    """Return the text of a file, `""` if there is none. Raises `SatchelError`."""
    return _text(path) if os.path.lexists(path) else ""


def _text(path: str) -> str:
    try:
        data, _ = read_regular(path, LIMIT)
        text = data.decode("utf-8-sig")
    except UnreadableFileError as problem:
        raise SatchelError(str(problem), where=path) from None
    except UnicodeDecodeError:
        raise SatchelError("it is not UTF-8", where=path) from None
    if len(data) > LIMIT:
        raise SatchelError(f"it is larger than {LIMIT} bytes", where=path)
    return text


def _edited(text: str, changes: Mapping[str, str | None]) -> str:
    """Return a text with other values for some keys; new ones come last."""
    from dotenv.parser import parse_stream

    lines = list(parse_stream(StringIO(text)))
    # Where a key stands twice the last counts, so that one stays.
    last = {line.key.lower(): line for line in lines if line.key and not line.error}
    parts = []
    for line in lines:
        key = line.key.lower() if line.key else None
        written = line.original.string
        if key is None or key not in changes:
            parts.append(written)
            continue
        prefix = _BEFORE_KEY.match(written)
        start = prefix[0] if prefix else ""
        value = changes[key]
        if value is None or line is not last[key]:
            # The empty lines above it are not its own.
            parts.append(start[: start.rfind("\n") + 1])
            continue
        end = written[len(written.rstrip("\r\n")) :]
        parts.append(f"{start}{line.key}={_quoted(value)}{end}")
    new = {key: value for key, value in changes.items() if key not in last and value is not None}
    whole = "".join(parts)
    if new and whole and not whole.endswith(("\n", "\r")):
        whole += "\n"
    return whole + "".join(f"{key.upper()}={_quoted(value)}\n" for key, value in new.items())


def _quoted(value: str) -> str:
    """Write a value so that it is read back the same, also by a shell where that is possible."""
    if _PLAIN.fullmatch(value):
        return value
    if not re.search(r"[\\'\r\n]", value):
        return f"'{value}'"
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in value) + '"'


def _odd_line(path: str, number: int) -> Diagnostic:
    # Without the line itself, which may hold a secret.
    return make_diagnostic(
        "config-unreadable",
        Where(path, number),
        "this line of the configuration is not of the form KEY=value; it is left out",
        "put a value with blanks or quotes into quotes",
    )


def _unreadable(path: str, reason: str) -> Diagnostic:
    return make_diagnostic(
        "config-unreadable", Where(path), f"the configuration cannot be read: {reason}"
    )
