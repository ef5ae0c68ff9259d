"""Show files of settings and definitions without the secrets of the MCP servers in them.

In a text that is kept, a tag behind each mask changes with the secret, so that a comparison finds
the masked values that changed. The tag is taken away before the text is printed.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from hashlib import pbkdf2_hmac
from typing import Any

from satchel.formats.json_reader import without_comments
from satchel.formats.yaml_reader import read_yaml
from satchel.settings import Limits
from satchel.trust.server_text import MASK, MASKED_FIELDS, masked_value

_OF_SERVERS = frozenset({"command", "url", "httpUrl", "serverUrl", "uri", "env", "headers"})
"""The fields by which a server is recognized in the files of all clients."""
_TAG = re.compile(r"(?<=\*\*\*)<[0-9a-f]{8}>")
_ROUNDS = 20_000


def shown_settings(path: str, text: str) -> str:
    """Return a file of settings as JSON with masked and tagged secrets of servers.

    Return the text as it is if it has none, is in no known format, or is invalid in it.
    """
    try:
        value = _parsed(path, text)
        masked = _with_masked_servers(value)
    except (ValueError, RecursionError):
        return text
    return text if masked == value else json.dumps(_tagged(masked, value), indent=1, default=str)


def shown_definition(value: Any) -> str:
    """Return a definition, of JSON values, as JSON with masked and tagged secrets."""
    return json.dumps(_tagged(masked_value("", value), value), indent=1)


def changed_secrets(before: str, now: str) -> str:
    """Say which masked secrets differ between two texts that are kept; `""` for none."""
    try:
        names = list(_differing("", json.loads(before), json.loads(now)))
    except (ValueError, RecursionError):
        return ""
    return f"changed, masked as secret: {', '.join(names)}" if names else ""


def _differing(at: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in filter(now.__contains__, before):
            yield from _differing(f"{at}.{key}" if at else key, before[key], now[key])
    elif isinstance(before, list) and isinstance(now, list):
        options = ["", *map(str, now)]
        for number, (option, *pair) in enumerate(zip(options, before, now, strict=False), 1):
            name = pair[1].get("name") if isinstance(pair[1], dict) else ""
            place = f"after {option}" if option.startswith("-") else name or f"item {number}"
            yield from _differing(f"{at} {place}".lstrip(), *pair)
    elif before != now and without_tags(str(before)) == without_tags(str(now)):
        yield at


def without_tags(text: str) -> str:
    """Return a text as it is printed."""
    return _TAG.sub("", text)


def _parsed(path: str, text: str) -> Any:
    """Return the value in a file, `None` in other formats. Raises `ValueError`."""
    if path.endswith((".json", ".jsonc", ".json5")):
        return json.loads(without_comments(text.encode()), object_pairs_hook=_unique)
    if path.endswith(".toml"):
        return tomllib.loads(text)
    if path.endswith((".yaml", ".yml")):
        content = read_yaml(text, path, Limits(frontmatter=len(text.encode()) + 1)).value
        return content and content.values
    return None


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
