"""Show how a declared MCP server is reached, without its secrets."""

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.mcp_servers.server_contributions import ServerConfig

_MASK = "***"
_SENSITIVE = r"[\w.-]*(?:key|token|secret|passw|pwd|credential|auth|cookie)[\w.-]*"
_OPTION = re.compile(rf"-{_SENSITIVE}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"({_SENSITIVE}[\"']?\s*[=:]\s*)(?!//|-\*)(\S.*)", re.IGNORECASE | re.DOTALL
)
_DEFAULT = re.compile(rf"(\$\{{{_SENSITIVE}:-)[^}}]+", re.IGNORECASE)
_VARIABLE = re.compile(r"(?:(?:bearer|basic|token)\s+)?\$\{\w+\}", re.IGNORECASE)
"""A value that a variable gives; its name is no secret."""
_USER = re.compile(r"(://)(?:[^\s/:@]+:(?!\d+[/?#])\S*|[^\s/?#]*)@")
_QUERY = re.compile(r"(://[^\s?#]*[?#])\S+")
_TOKEN = re.compile(
    r"""(?x) (?<![\w-]) (?:
    # long words of letters and digits
    (?= (?: [A-Za-z_-]*\d ){3} ) (?= [\d_-]*[A-Za-z] ) [\w-]{20,}
    | (?= \w*\d ) (?= \w*[a-z] ) (?= \w*[A-Z] ) \w{20,}
    # what well-known services begin their tokens with
    | (?: sk | pk | gh[a-z] | github_pat | glpat | xox[a-z] | hf | npm | pypi ) [_-] [\w-]{8,}
    | (?: AKIA | AIza | eyJ ) [\w-]{8,} )"""
)


def server_text(config: "ServerConfig") -> str:
    """Return the command with its arguments, or the URL, as declared; secrets are masked."""
    command, args, _, url = json.loads(config.origin.reached)
    texts = [url] if url else [command, *(args or ())]
    return " ".join(text if text.split() == [text] else f'"{text}"' for text in _masked(texts))


def _masked(texts: Iterable[str]) -> Iterable[str]:
    is_secret = False
    for text in texts:
        if is_secret and not text.startswith("--"):
            yield _value(text)
        else:
            shown = _DEFAULT.sub(rf"\1{_MASK}", text)
            shown = _QUERY.sub(rf"\1{_MASK}", _USER.sub(rf"\1{_MASK}@", shown))
            shown = _ASSIGNED.sub(lambda match: match[1] + _value(match[2]), shown)
            yield _TOKEN.sub(_MASK, shown)
        is_secret = bool(_OPTION.fullmatch(text))


def _value(text: str) -> str:
    return text if _VARIABLE.fullmatch(text) else _MASK
