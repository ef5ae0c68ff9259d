"""Show JSON files and definitions without the secrets of the MCP servers in them.

A tag behind each mask changes with the secret, so that a comparison shows the masked values that
changed. Other files are shown as they are: what hides a value there could hide code.
"""

import json
import re
from hashlib import pbkdf2_hmac
from typing import Any

from satchel.formats.json_reader import without_comments
from satchel.trust.server_text import MASK, MASKED_FIELDS, masked_value

_OF_SERVERS = frozenset({"command", "url", "httpUrl", "serverUrl", "uri", "env", "headers"})
"""The fields by which a server is recognized in the files of all clients."""
_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
_ROUNDS = 20_000


def shown_settings(path: str, text: str) -> str:
    """Return a JSON file with masked and tagged secrets of servers, behind its comments.

    Return the text as it is if it has none, or is no valid JSON.
    """
    try:
        value = _parsed(text) if path.endswith((".json", ".jsonc", ".json5")) else None
        masked = _with_masked_servers(value)
    except (ValueError, RecursionError):
        return text
    if masked == value:
        return text
    comments = [part for part in _COMMENT_OR_STRING.findall(text) if part[0] == "/"]
    return "\n".join([*comments, json.dumps(_tagged(masked, value), indent=1)])


def _parsed(text: str) -> Any:
    return json.loads(without_comments(text.encode()), object_pairs_hook=_unique)


def shown_definition(value: Any) -> str:
    """Return a definition, of JSON values, as JSON with masked and tagged secrets."""
    return json.dumps(_tagged(masked_value("", value), value), indent=1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises `ValueError` for a doubled key, which would hide a value."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError
    return value


def _with_masked_servers(value: Any) -> Any:
    if isinstance(value, dict):
        is_server = bool(value.keys() & _OF_SERVERS)
        fields = {
            key: item
            for key, item in value.items()
            if is_server and (key in MASKED_FIELDS or isinstance(item, str))
        }
        masked = masked_value("", fields)
        return {
            key: masked[key] if key in fields else _with_masked_servers(item)
            for key, item in value.items()
        }
    return [_with_masked_servers(item) for item in value] if isinstance(value, list) else value


def _tagged(masked: Any, value: Any) -> Any:
    """Return a masked value with a tag behind each text that was masked."""
    if isinstance(masked, dict):
        return {key: _tagged(item, value[key]) for key, item in masked.items()}
    if isinstance(masked, list):
        return [_tagged(*pair) for pair in zip(masked, value, strict=True)]
    if not isinstance(masked, str) or masked == str(value):
        return masked
    at = masked.rindex(MASK) + len(MASK)
    return f"{masked[:at]}<{_tag(str(value))}>{masked[at:]}"


def _tag(secret: str) -> str:
    """Return a part of a slow hash, as weak passwords could be guessed from a fast one."""
    return pbkdf2_hmac("sha256", secret.encode(errors="replace"), b"satchel", _ROUNDS, 4).hex()
