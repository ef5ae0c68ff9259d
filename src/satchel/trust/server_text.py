"""Show how a declared MCP server is reached, without its secrets."""

import json
import re
from collections.abc import Iterable, Mapping
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
_USER_OPTION = re.compile(r"-u|--(?:proxy-)?user(?:name)?")
_USER_AND_PASSWORD = re.compile(r"([\w.@-]+:)(?!\d+$)[\w.~+=@!#%^*,-]+")
_SHORT_PASSWORD = re.compile(r"(?!\d+$)[\w~+=@!#%^*,-]+")
_PROGRAM = r"(?i:(?:.*[/\\])?(?:%s)[\d.w]*(?:\.\w+)?)"
_SHELL = re.compile(_PROGRAM % "python|perl|(?:ba|da|fi|k|z)?sh")
"""Programs for which `-u` has no value."""
_RUNNER = re.compile(_PROGRAM % "np[mx]|pnp[mx]|yarn|bunx?|deno|node|tsx|uvx?|pipx?|ruby|php")
"""Programs for which `-p` names what is run."""
_ASSIGNED = re.compile(rf"((?<![\w.-]){_SENSITIVE}[\"']?\s*[=:]\s*)(?!//|-\*)(\S.*)", re.DOTALL)
_DEFAULT = re.compile(rf"(\$\{{{_SENSITIVE}:-)[^}}]+")
_VARIABLE = re.compile(r"(?:(?:bearer|basic|token)\s+)?\$\{\w+\}", re.IGNORECASE)
"""A value that a variable gives; its name is no secret."""
_USER = re.compile(
    r"""(?x) (://) (?: (?: [\w.~%+:!*,=@-] | \$\{\w+\} )*
    # Also a password with other characters, which no client takes for a port; no code of a shell.
    | [^\s/:@?#&;|<>()`"'\\]+ : (?!\d*[/?#]) [^\s/&;|<>()`"'\\]* ) @"""
)
"""The user and the password in an address. They end before the first slash: what is behind it is
a path, and the host in front of it is the one that is reached."""
_USER_OF_LIST = re.compile(r"(://)(?:[^\s/:@]+:(?!\d*[/?#])\S*|[^\s/?#]*)@")
"""The same for lists: also a password with a slash in it, which no client takes for a port."""
_QUERY = re.compile(r"(://[^\s?#]*[?#])\S+")
_FIELDS = re.compile(r"(?:\w[\w ]*=[\w.~+/:@!#%^*,=?-]*(?:\s*;\s*|\s+|$)){2,}")
"""Fields of a connection: `host=x password=y`, or `Server=x;Password=y`."""
_FIELD = re.compile(r"(?i)\b((?:password|passwd|pwd|pass)\s*=\s*)[^\s;]+")
_TOKEN = re.compile(
    r"""(?x) (?<![\w-]) (?:
    (?= \w*\d ) (?= \w*[a-z] ) (?= \w*[A-Z] ) \w{20,}
    # what well-known services begin their tokens with
    | (?: sk | pk | gh[a-z] | github_pat | glpat | xox[a-z] | hf | npm | pypi ) [_-] [\w-]{8,}
    | (?: AKIA | AIza | eyJ ) [\w-]{8,}
    # long words of letters and digits
    | (?= (?: [A-Za-z_-]*\d ){3} ) (?= [\d_-]*[A-Za-z] ) [\w-]{20,} )"""
)
_WORD = r"(?i:(?:bearer|basic|token)\s+)?(?:eyJ[\w.=-]+|[\w~+=@!#%^*,-]+)"
"""An argument that is no file, no path and no code, so that a reviewer needs not see it."""
_VALUE = re.compile(r"(?i:(?:bearer|basic|token)\s+)?(?!\S*://)[\w.~+/=:@!#%^*,?-]+")
"""A value without blanks, without what makes a command of it for a shell, and no address."""
_ASSIGNED_WORD = re.compile(rf"((?![\w-]*\.){_SENSITIVE}\s*[=:]\s*)({_WORD})")
_ADDRESS = re.compile(r"https?://[\w.~:/?#@&=%+,${}-]+")
_VARIABLES, _HEADERS = frozenset({"env", "environment"}), frozenset({"headers", "http_headers"})
MASKED_FIELDS = _VARIABLES | _HEADERS | {"args"}
"""The fields of a server that may have secrets, beside its texts."""
_SHOWN_FIRST = frozenset({"command", "args", "url"})


def server_text(reached: str) -> str:
    """Return the command with its arguments, or the URL, without all that may be a secret.

    It is for lists; where a person decides on a server, `declaration_text` hides less.
    `reached` is that of a `ServerOrigin`.
    """
    command, args, _, url = json.loads(reached)
    texts = _masked_words([url] if url else [command, *(args or ())], in_list=True)
    return " ".join(text if text.split() == [text] else f'"{text}"' for text in texts)


def reached_text(reached: str) -> str:
    """Return the `reached` of a `ServerOrigin` without its secrets, for files that are shared."""
    values = json.loads(reached)
    fields = ("command", "args", "cwd", "url")
    return json.dumps([*masked_value("", dict(zip(fields, values, strict=True))).values()])


def _value(text: str) -> str:
    return text if _VARIABLE.fullmatch(text) else MASK


def declaration_text(declared: Mapping[str, Any]) -> str:
    """Return a declaration as one line, for a person who judges what it runs.

    The command or address comes first. Secrets are masked, but nothing that could be code or the
    name of what is run.
    """
    args = declared.get("args") or ()
    words = map(str, () if isinstance(args, str) else args)
    if command := declared.get("command"):
        first = join(_masked_words([str(command), *words]))
    else:
        first = masked_value("url", str(declared.get("url") or ""))
    rest = {key: value for key, value in declared.items() if value and key not in _SHOWN_FIRST}
    shown = masked_value("", rest | {"args": args})
    return ", ".join((first, *(f"{key}={shown[key]}" for key in rest)))


def _is_used(variable: str, args: Any) -> bool:
    """Return whether an argument names a variable, so that its value may be run as code."""
    words = args if isinstance(args, list | tuple) else ()
    return any(variable in str(word) and variable != word for word in words)


def masked_value(name: str, value: Any) -> Any:
    """Return a value without what its name or its form says is a secret."""
    masked = value
    if isinstance(value, Mapping):
        masked = {key: _masked_field(name, key, item) for key, item in value.items()}
        args = value.get("args")
        if isinstance(args, list | tuple):
            words = _masked_words([str(value.get("command") or ""), *map(str, args)])
            masked["args"] = list(words)[1:]
        for variables in _VARIABLES & value.keys():
            entries = value[variables] if isinstance(value[variables], Mapping) else {}
            used = {key: entries[key] for key in entries if _is_used(key, args)}
            masked[variables] = {**masked[variables], **used} if entries else masked[variables]
    elif isinstance(value, list | tuple):
        masked = [masked_value(name, item) for item in value]
    elif isinstance(value, str):
        is_secret = name != "command" and re.fullmatch(_SENSITIVE, name)
        masked = _value(value) if is_secret and _VALUE.fullmatch(value) else _masked_word(value)
    return masked


def _masked_field(owner: str, key: str, item: Any) -> Any:
    return _value(str(item)) if owner in _HEADERS else masked_value(key, item)


def _masked_words(words: Iterable[str], *, in_list: bool = False) -> Iterable[str]:
    """Yield a command and its arguments; in lists, also what could be a file or code is masked."""
    words = list(words)
    has_user, previous = False, ""
    is_shell, is_runner = (any(map(it.fullmatch, words)) for it in (_SHELL, _RUNNER))
    for word in words:
        is_user = bool(_USER_OPTION.fullmatch(previous)) and not is_shell
        user = _USER_AND_PASSWORD.fullmatch(word) if is_user else None
        if _OPTION.fullmatch(previous):
            is_hidden = not word.startswith("--" if in_list else "-")
            is_hidden = is_hidden and bool(in_list or re.fullmatch(_WORD, word))
        else:
            is_hidden = previous == "-p" and has_user and bool(_SHORT_PASSWORD.fullmatch(word))
        if is_hidden:
            yield _value(word)
        elif user:
            yield f"{user[1]}{MASK}"
        else:
            yield _list_word(word) if in_list else _masked_word(word)
        has_user, previous = has_user or (is_user and not is_runner), word


def _list_word(word: str) -> str:
    shown = _DEFAULT.sub(rf"\1{MASK}", word)
    shown = _QUERY.sub(rf"\1{MASK}", _USER_OF_LIST.sub(rf"\1{MASK}@", shown))
    shown = _ASSIGNED.sub(lambda match: match[1] + _value(match[2]), shown)
    return _TOKEN.sub(MASK, shown)


def _masked_word(word: str) -> str:
    if assigned := _ASSIGNED_WORD.fullmatch(word):
        return f"{assigned[1]}{MASK}"
    if _FIELDS.fullmatch(word):
        word = _FIELD.sub(rf"\1{MASK}", word)
    if _ADDRESS.fullmatch(word):
        word = _QUERY.sub(rf"\1{MASK}", word)
    return _DEFAULT.sub(rf"\1{MASK}", _USER.sub(rf"\1{MASK}@", word))
