"""Resolve `$ref`, only inside the same schema."""

from collections.abc import Mapping
from typing import Any

DEFINITIONS = ("$defs", "definitions")
"""The keywords for definitions: since draft 2019-09, and before."""


def target_of(ref: Any, root: Mapping[str, Any]) -> Any:
    """Return the target of a local reference; `None` if it is missing, remote or not a schema."""
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        return None
    target: Any = root
    for step in steps_of(ref):
        if isinstance(target, Mapping) and step in target:
            target = target[step]
        elif isinstance(target, list) and step.isdecimal() and int(step) < len(target):
            target = target[int(step)]
        else:
            return None
    return target if isinstance(target, Mapping | bool) else None


def followed(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return a schema with its references resolved; `None` for a cycle or a missing target."""
    seen = set()
    while isinstance(schema, Mapping) and "$ref" in schema:
        ref = schema["$ref"]
        if not isinstance(ref, str) or ref in seen:
            return None
        seen.add(ref)
        schema = target_of(ref, root)
    return schema


def steps_of(ref: str) -> list[str]:
    """Split a local reference into the keys that lead to its target."""
    steps = _unquoted(ref).removeprefix("#").split("/")[1:]
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def _unquoted(text: str) -> str:
    """Decode percent-encoding such as `%3C`, which some TypeScript generators write."""
    head, *tail = text.split("%")
    decoded = head.encode(errors="surrogatepass")
    for part in tail:
        try:
            code, rest = bytes.fromhex(part[:2]), part[2:]
        except ValueError:
            code, rest = b"%", part
        decoded += code + rest.encode(errors="surrogatepass")
    return decoded.decode(errors="replace")
