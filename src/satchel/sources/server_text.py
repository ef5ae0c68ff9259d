"""Show how a declared MCP server is reached, without its secrets."""

import json
import re
from collections.abc import Iterable, Mapping
from shlex import join
from typing import Any

from satchel.formats.json_reader import without_comments

_MASK = "***"
_SENSITIVE = r"[\w.-]*(?:key|token|secret|passw|pwd|credential|auth|cookie)[\w.-]*"
_OPTION = re.compile(rf"-{_SENSITIVE}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"({_SENSITIVE}[\"']?\s*[=:]\s*)(?!//|-\*)(\S.*)", re.IGNORECASE | re.DOTALL
)
_DEFAULT = re.compile(rf"(\$\{{{_SENSITIVE}:-)[^}}]+", re.IGNORECASE)
_VARIABLE = re.compile(r"(?:(?:bearer|basic|token)\s+)?\$\{\w+\}", re.IGNORECASE)
"""A value that a variable gives; its name is no secret."""
_USER = re.compile(r"(://)(?:[\w.~%+:!*,=@-]|\$\{\w+\})*@")
"""The user and the password in an address. They end before the first slash: what is behind it is
a path, and the host in front of it is the one that is reached."""
_USER_OF_LIST = re.compile(r"(://)(?:[^\s/:@]+:(?!\d*[/?#])\S*|[^\s/?#]*)@")
"""The same for lists: also a password with a slash in it, which no client takes for a port."""
_QUERY = re.compile(r"(://[^\s?#]*[?#])\S+")
_KNOWN_FORMS = re.compile(
    r"""(?x) (?<![\w-]) (?:
    (?= \w*\d ) (?= \w*[a-z] ) (?= \w*[A-Z] ) \w{20,}
    # what well-known services begin their tokens with
    | (?: sk | pk | gh[a-z] | github_pat | glpat | xox[a-z] | hf | npm | pypi ) [_-] [\w-]{8,}
    | (?: AKIA | AIza | eyJ ) [\w-]{8,} )"""
)
_TOKEN = re.compile(
    rf"""{_KNOWN_FORMS.pattern} | (?<![\w-])
    # long words of letters and digits
    (?= (?: [A-Za-z_-]*\d ){{3}} ) (?= [\d_-]*[A-Za-z] ) [\w-]{{20,}}"""
)
_WORD = r"(?:(?:bearer|basic|token)\s+)?(?:eyJ[\w.=-]+|[\w~+=-]+)"
"""An argument that is no file, no path and no code, so that a reviewer needs not see it."""
_VALUE = re.compile(r"(?i:(?:bearer|basic|token)\s+)?[\w.~+/=:@!#%^*,?-]+")
"""A value without blanks and without what makes a command of it for a shell."""
_ASSIGNED_WORD = re.compile(
    rf"([\w-]*(?:key|token|secret|passw|pwd|credential|auth|cookie)[\w-]*\s*[=:]\s*)({_WORD})",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://[\w.~:/?#@&=%+,${}-]+")
_OF_SERVERS = frozenset({"command", "url", "httpUrl", "serverUrl", "uri", "env", "headers"})
"""The fields by which a server is recognized in the files of all clients."""
_VARIABLES, _HEADERS = frozenset({"env", "environment"}), frozenset({"headers", "http_headers"})
_MASKED_FIELDS = _VARIABLES | _HEADERS | {"args"}
_SHOWN_FIRST = frozenset({"command", "args", "url"})


def server_text(reached: str) -> str:
    """Return the command with its arguments, or the URL, without all that may be a secret.

    It is for lists; where a person decides on a server, `declaration_text` hides less.
    `reached` is that of a `ServerOrigin`.
    """
    command, args, _, url = json.loads(reached)
    texts = [url] if url else [command, *(args or ())]
    return " ".join(text if text.split() == [text] else f'"{text}"' for text in _masked(texts))


def reached_text(reached: str) -> str:
    """Return the `reached` of a `ServerOrigin` without its secrets, for files that are shared."""
    values = json.loads(reached)
    fields = ("command", "args", "cwd", "url")
    return json.dumps([masked_value(key, value) for key, value in zip(fields, values, strict=True)])


def _masked(texts: Iterable[str]) -> Iterable[str]:
    is_secret = False
    for text in texts:
        if is_secret and not text.startswith("--"):
            yield _value(text)
        else:
            shown = _DEFAULT.sub(rf"\1{_MASK}", text)
            shown = _QUERY.sub(rf"\1{_MASK}", _USER_OF_LIST.sub(rf"\1{_MASK}@", shown))
            shown = _ASSIGNED.sub(lambda match: match[1] + _value(match[2]), shown)
            yield _TOKEN.sub(_MASK, shown)
        is_secret = bool(_OPTION.fullmatch(text))


def _value(text: str) -> str:
    return text if _VARIABLE.fullmatch(text) else _MASK


def declaration_text(declared: Mapping[str, Any]) -> str:
    """Return a declaration as one line, for a person who judges what it runs.

    The command or address comes first. Secrets are masked, but nothing that could be code or the
    name of what is run.
    """
    args = declared.get("args") or ()
    words = map(str, () if isinstance(args, str) else args)
    if command := declared.get("command"):
        first = join([str(command), *_masked_words(words)])
    else:
        first = masked_value("url", str(declared.get("url") or ""))
    rest = {key: value for key, value in declared.items() if value and key not in _SHOWN_FIRST}
    shown = masked_value("", rest | {"args": args})
    return ", ".join((first, *(f"{key}={shown[key]}" for key in rest)))


def _is_used(variable: str, args: Any) -> bool:
    """Return whether an argument names a variable, so that its value may be run as code."""
    words = args if isinstance(args, list | tuple) else ()
    return any(variable in str(word) and variable != word for word in words)


def shown_json(text: str) -> str:
    """Return JSON without the secrets of the servers in it, or the text if it is no JSON."""
    try:
        value = json.loads(without_comments(text.encode()), object_pairs_hook=_unique)
        masked = _with_masked_servers(value)
    except (ValueError, RecursionError):
        return text
    return text if masked == value else json.dumps(masked, indent=1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises `ValueError` for a doubled key, which would hide a value."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError
    return value


def _with_masked_servers(value: Any) -> Any:
    if isinstance(value, dict):
        is_server = bool(value.keys() & _OF_SERVERS)
        return {
            key: masked_value(key, item)
            if is_server and (key in _MASKED_FIELDS or isinstance(item, str))
            else _with_masked_servers(item)
            for key, item in value.items()
        }
    return [_with_masked_servers(item) for item in value] if isinstance(value, list) else value


def masked_value(name: str, value: Any) -> Any:
    """Return a value without what its name or its form says is a secret."""
    masked = value
    if isinstance(value, Mapping):
        masked = {key: _masked_field(name, key, item) for key, item in value.items()}
        for variables in _VARIABLES & value.keys():
            entries = value[variables] if isinstance(value[variables], Mapping) else {}
            used = {key: entries[key] for key in entries if _is_used(key, value.get("args"))}
            masked[variables] = {**masked[variables], **used} if entries else masked[variables]
    elif isinstance(value, list | tuple):
        masked = (
            list(_masked_words(map(str, value)))
            if name == "args"
            else [masked_value(name, item) for item in value]
        )
    elif isinstance(value, str):
        is_secret = name != "command" and re.fullmatch(_SENSITIVE, name, re.IGNORECASE)
        masked = _value(value) if is_secret and _VALUE.fullmatch(value) else _masked_word(value)
    return masked


def _masked_field(owner: str, key: str, item: Any) -> Any:
    return _value(str(item)) if owner in _HEADERS else masked_value(key, item)


def _masked_words(words: Iterable[str]) -> Iterable[str]:
    is_secret = False
    for word in words:
        is_hidden = is_secret and not word.startswith("-") and re.fullmatch(_WORD, word)
        yield _MASK if is_hidden else _masked_word(word)
        is_secret = bool(_OPTION.fullmatch(word))


def _masked_word(word: str) -> str:
    if assigned := _ASSIGNED_WORD.fullmatch(word):
        return f"{assigned[1]}{_MASK}"
    if _ADDRESS.fullmatch(word):
        word = _QUERY.sub(rf"\1{_MASK}", word)
    return _DEFAULT.sub(rf"\1{_MASK}", _USER.sub(rf"\1{_MASK}@", word))
