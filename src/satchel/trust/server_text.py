"""Show how a declared MCP server is reached, without its secrets."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from shlex import join
from typing import Any

MASK = "***"
_SENSITIVE = r"""(?xi:
    # Names of what is run or who is reached; `PWD` is the current folder.
    (?! [\w.-]* (?: command | cmd | program | helper | plugin | module | script | file | path | dir
        | socket? | host | domain | endpoint | server | url | uri | name ) (?![\w.-]) )
    (?! (?-i: (?:OLD)?PWD ) (?![\w.-]) )
    (?= [\w.-]*? (?: key | token | secret | passw | passphrase | pwd | credential | auth | cookie
        | (?<![^\W_]) (?: pass | pw | (?-i:PIN) ) (?![^\W_]) ) )
    [\w.-]++ )"""
"""The name of an option or variable whose value is a secret."""
_OPTION = re.compile(rf"-{_SENSITIVE}")
_VARIABLE = re.compile(r"(?:(?:bearer|basic|token)\s+)?\$\{\w+\}", re.IGNORECASE)
"""A value that a variable gives; its name is no secret."""

# For lists, which hide also what could be a name or code.
_USER_OPTION = re.compile(r"-u|--(?:proxy-)?user(?:name)?")
_ASSIGNED = re.compile(rf"((?<![\w.-]){_SENSITIVE}\\?[\"']?\s*[=:]\s*)(?!//|-\*)(\S.*)", re.DOTALL)
_DEFAULT = re.compile(rf"(\$\{{{_SENSITIVE}:-)[^}}]+")
_USER_OF_LIST = re.compile(r"(://)(?:[^\s/:@]+:(?!\d*[/?#])\S*|[^\s/?#]*)@")
"""A user, and a password also with a slash in it, which no client takes for a port."""
_USER_WORD = re.compile(
    r"^(?:(-u[\w.-]+:|--(?:proxy-)?user(?:name)?=[\w.-]+:)\S+|([\w.-]+:)[^\s/@:]+(?=@))"
)
_QUERY = re.compile(r"(://[^\s?#]*[?#])\S+")
_TOKEN = re.compile(
    r"""(?x) (?<![\w-]) (?:
    eyJ [\w.-]{8,} | (?= \w*\d ) (?= \w*[a-z] ) (?= \w*[A-Z] ) \w{20,}
    # what well-known services begin their tokens with
    | (?: sk | pk | gh[a-z] | github_pat | glpat | xox[a-z] | hf | npm | pypi ) [_-] [\w-]{8,}
    | (?: AKIA | AIza ) [\w-]{8,}
    # long words of letters and digits
    | (?= (?: [A-Za-z_-]*\d ){3} ) (?= [\d_-]*[A-Za-z] ) [\w-]{20,} )"""
)

# For decisions, which hide only what cannot be a host, a path, the name of what is run, or code.
_NOUN = r"(?i:(?:[a-z]+[_-])*(?:key|token|secret|pass(?:word|wd|phrase)?|pwd?|credentials?))"
_WORD = r"(?:(?i:bearer|basic|token)\s+)?(?:eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|[\w~+=@!#%^*,-]+)"
"""A value without dots, slashes, colons, blanks and signs of a shell; or a JSON Web Token."""
_NOUN_OPTION = re.compile(rf"--(?!no-){_NOUN}")
_NOUN_VALUE = re.compile(rf"((?:--(?!no-))?{_NOUN}=|(?i:authorization):\s*)({_WORD})")
_PASSWORD = re.compile(
    r"""(?x) (://) (?: ([\w.%+~-]*:) [\w.%+~=*!,^@-]+ | (?:gh[a-z]|github_pat|glpat)[_-]\w+ )
    @ (?=[\w\[])"""
)
"""The password in front of the host in an address, or a token in its place."""
_ADDRESS = re.compile(r"https?://(?:[\w.%+~*:-]+@)?[\w.-]+(?::\d+)?[/?][\w.~:/?#@&=%+,-]*")
_PARAMETER = re.compile(rf"([?&]{_NOUN}=)[^&#]+")
_OF_URL = re.compile(rf"([?&][\w.-]+=){_WORD}(?=[&#]|$)")
"""A parameter of the address of a server, which is data for its host, whatever its name."""
_FIELDS = re.compile(r"(?:\w+=\S+(?:\s+|$)){2,}|(?:\w[\w ]*=[^;]*(?:;|$)){2,}")
"""Fields of a connection: `host=x password=y`, or `Server=x;Password=y`."""
_FIELD = re.compile(rf"(?i)\b((?:password|passwd|pwd)\s*=\s*){_WORD}(?=\s|;|$)")
_WITH_DEFAULT = re.compile(rf"(\$\{{{_SENSITIVE}:-){_WORD}(?=\}}$)")
_VARIABLES, _HEADERS = frozenset({"env", "environment"}), frozenset({"headers", "http_headers"})
MASKED_FIELDS = _VARIABLES | _HEADERS | {"args"}
"""The fields of a server that may have secrets, beside its texts."""
_URLS = frozenset({"url", "httpUrl", "serverUrl", "uri"})
_SHOWN_FIRST = frozenset({"command", "args", "url"})


def server_text(reached: str) -> str:
    """Return the command with its arguments, or the URL, without all that may be a secret.

    It is for lists; where a person decides on a server, `declaration_text` hides less.
    `reached` is that of a `ServerOrigin`.
    """
    command, args, _, url = json.loads(reached)
    texts = _list_words([url] if url else [command, *(args or ())])
    return " ".join(text if text.split() == [text] else f'"{text}"' for text in texts)


def reached_text(reached: str) -> str:
    """Return the `reached` of a `ServerOrigin` as in lists, for files that are shared."""
    command, args, folder, url = json.loads(reached)
    words = list(_list_words([command or "", *(args or ())]))
    return json.dumps([command and words[0], args and words[1:], folder, url and _list_word(url)])


def _list_words(words: Iterable[str]) -> Iterator[str]:
    previous, has_user = "", False
    for word in words:
        is_user = bool(_USER_OPTION.fullmatch(previous))
        is_secret = _OPTION.fullmatch(previous) or (previous == "-p" and has_user)
        if is_secret and not word.startswith("--"):
            yield _value(word)
        elif is_user and ":" in word:
            yield f"{word.partition(':')[0]}:{MASK}"
        else:
            yield _list_word(word)
        previous, has_user = word, has_user or is_user


def _list_word(word: str) -> str:
    shown = _USER_WORD.sub(lambda it: f"{it[1] or it[2]}{MASK}", word)
    shown = _DEFAULT.sub(rf"\1{MASK}", shown)
    shown = _QUERY.sub(rf"\1{MASK}", _USER_OF_LIST.sub(rf"\1{MASK}@", shown))
    shown = _ASSIGNED.sub(lambda match: match[1] + _value(match[2]), shown)
    return _TOKEN.sub(MASK, shown)


def _value(text: str) -> str:
    return text if _VARIABLE.fullmatch(text) else MASK


def declaration_text(declared: Mapping[str, Any]) -> str:
    """Return a declaration as one line, for a person who judges what it runs.

    The command or address comes first. Secrets are masked, but nothing that could be code or the
    name of what is run.
    """
    args = declared.get("args") or ()
    shown = masked_value("", {**declared, "args": args})
    words = () if isinstance(args, str) else shown["args"]
    command, url = declared.get("command"), shown.get("url") or ""
    first = join([str(command), *map(str, words)]) if command else str(url)
    rest = (key for key, value in declared.items() if value and key not in _SHOWN_FIRST)
    return ", ".join((first, *(f"{key}={shown[key]}" for key in rest)))


def masked_value(name: str, value: Any) -> Any:
    """Return a value without what its name or its place says is a secret."""
    if isinstance(value, Mapping):
        shown = {key: _masked_field(name, key, item) for key, item in value.items()}
        args = value.get("args")
        words = args if isinstance(args, list | tuple) else ()
        for variables in _VARIABLES & value.keys():
            if isinstance(entries := value[variables], Mapping):
                used = {key: item for key, item in entries.items() if _is_used(key, words)}
                shown[variables] |= used
        return shown
    if isinstance(value, list | tuple):
        if name == "args":
            return list(_masked_words(value))
        return [masked_value(name, item) for item in value]
    if not isinstance(value, str):
        return value
    if name != "command" and re.fullmatch(_SENSITIVE, name) and re.fullmatch(_WORD, value):
        return _value(value)
    if name in _URLS and _ADDRESS.fullmatch(value):
        value = _OF_URL.sub(rf"\1{MASK}", value)
    return _WITH_DEFAULT.sub(rf"\1{MASK}", _masked_word(value))


def _masked_field(owner: str, key: str, item: Any) -> Any:
    return _value(str(item)) if owner in _HEADERS else masked_value(key, item)


def _is_used(variable: str, args: Iterable[Any]) -> bool:
    """Return whether an argument names a variable, so that its value may be run as code.

    It is data if it is the whole value of a header or option, as in `Authorization:${KEY}`.
    """
    name = re.escape(variable)
    data = re.compile(rf"{name}|[\w-]+[:=]\s*(?:(?i:bearer|basic)\s+)?\$\{{{name}\}}")
    return any(variable in str(word) and not data.fullmatch(str(word)) for word in args)


def _masked_words(words: Iterable[Any]) -> Iterator[Any]:
    previous = ""
    for word in words:
        has_value = re.fullmatch(_WORD, str(word)) and not str(word).startswith("-")
        is_secret = has_value and _NOUN_OPTION.fullmatch(previous)
        if is_secret:
            yield _value(str(word))
        else:
            yield _masked_word(word) if isinstance(word, str) else masked_value("", word)
        previous = str(word)


def _masked_word(word: str) -> str:
    if (assigned := _NOUN_VALUE.fullmatch(word)) and not _VARIABLE.fullmatch(assigned[2]):
        return f"{assigned[1]}{MASK}"
    if _FIELDS.fullmatch(word):
        word = _FIELD.sub(rf"\1{MASK}", word)
    if _ADDRESS.fullmatch(word):
        word = _PARAMETER.sub(rf"\1{MASK}", word)
    return _PASSWORD.sub(lambda it: f"{it[1]}{it[2] or ''}{MASK}@", word)
