"""Read a plugin's file of `KEY=value` lines, and change values without touching other lines."""

import os
import re
from collections.abc import Mapping
from io import StringIO

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, write_atomic
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.settings import KIB

LIMIT = 256 * KIB
"""Largest file that is read, in bytes."""

Values = dict[str, str]
_BEFORE_KEY = re.compile(r"\s*(?:export[^\S\r\n]+)?")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


def read_env(path: str) -> tuple[Values, tuple[Diagnostic, ...]]:
    """Return the values of a file, by key in lower case, and the diagnostics."""
    if not os.path.lexists(path):
        return {}, ()
    try:
        return parse_env(_text(path), path)
    except SatchelError as error:
        return {}, (_unreadable(path, error.message),)


def parse_env(text: str, path: str) -> tuple[Values, tuple[Diagnostic, ...]]:
    """Parse a text as `read_env` does; invalid lines are left out."""
    # Not `dotenv_values`, which logs an invalid line at every read. And values are not
    # interpolated, because a password may contain a dollar sign.
    from dotenv.parser import parse_stream

    lines = list(parse_stream(StringIO(text)))
    invalid = [line.original.line for line in lines if line.error]
    values = {line.key.lower(): line.value for line in lines if line.key and line.value}
    return values, tuple(_invalid_line(path, number) for number in invalid)


def env_variables(path: str) -> Values:
    """Return the variables of a file by their names as written; invalid lines are left out.

    Raises `SatchelError`.
    """
    from dotenv.parser import parse_stream

    lines = parse_stream(StringIO(_text(path)))
    return {line.key: line.value for line in lines if line.key and line.value is not None}


def change_env(path: str, changes: Mapping[str, str | None]) -> bool:
    """Set keys of a file, or remove those with `None`; return whether anything changed.

    Comments, order and other lines stay as they are. A missing file is created; only its owner
    can read it. Raises `SatchelError`, also for a value that could not be read back.
    """
    if not os.path.exists(path) and not any(value is not None for value in changes.values()):
        return False
    with file_lock(path, private=True):
        before = _text(path) if os.path.exists(path) else ""
        after = changed_env(before, changes, path)
        if after != before:
            write_env(path, after)
        return after != before


def changed_env(text: str, changes: Mapping[str, str | None], path: str) -> str:
    """Return a text with changed values, as `change_env` writes it. Raises `SatchelError`."""
    changes = {key.lower(): value for key, value in changes.items()}
    before, old_diagnostics = parse_env(text, path)
    if all(before.get(key) == value for key, value in changes.items()):
        return text
    after = _edited(text, changes)
    expected = {key: value for key, value in {**before, **changes}.items() if value is not None}
    values, diagnostics = parse_env(after, path)
    if values != expected or len(diagnostics) > len(old_diagnostics):
        raise SatchelError("cannot be edited by a program; edit it by hand", where=path)
    return after


def replace_env(path: str, before: str, text: str) -> bool:
    """Replace the whole file if its text is still `before`; return whether it was.

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
        raise SatchelError("a value is not valid text; nothing was written") from None
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
    except UnreadableFileError as error:
        raise SatchelError(str(error), where=path) from None
    except UnicodeDecodeError:
        raise SatchelError("it is not UTF-8", where=path) from None
    if len(data) > LIMIT:
        raise SatchelError(f"it is larger than {LIMIT} bytes", where=path)
    return text


def _edited(text: str, changes: Mapping[str, str | None]) -> str:
    """Return the text with changed values; new keys come last."""
    from dotenv.parser import parse_stream

    lines = list(parse_stream(StringIO(text)))
    # The last of duplicate keys is the one in use, so it stays.
    last = {line.key.lower(): line for line in lines if line.key and not line.error}
    parts = []
    for line in lines:
        key = line.key.lower() if line.key else None
        original = line.original.string
        if key is None or key not in changes:
            parts.append(original)
            continue
        prefix = _BEFORE_KEY.match(original)
        start = prefix[0] if prefix else ""
        value = changes[key]
        if value is None or line is not last[key]:
            # The parser adds the blank lines above to the line; keep them.
            parts.append(start[: start.rfind("\n") + 1])
            continue
        end = original[len(original.rstrip("\r\n")) :]
        parts.append(f"{start}{line.key}={_quoted(value)}{end}")
    new = {key: value for key, value in changes.items() if key not in last and value is not None}
    whole = "".join(parts)
    if new and whole and not whole.endswith(("\n", "\r")):
        whole += "\n"
    return whole + "".join(f"{key.upper()}={_quoted(value)}\n" for key, value in new.items())


def _quoted(value: str) -> str:
    """Quote a value so that it is read back unchanged, if possible by a shell too."""
    if _PLAIN.fullmatch(value):
        return value
    if not re.search(r"[\\'\r\n]", value):
        return f"'{value}'"
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in value) + '"'


def _invalid_line(path: str, number: int) -> Diagnostic:
    # The message does not show the line, which may have a secret.
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
