"""What a `$ref` points at. Only what stands in the same schema is ever looked up."""

from collections.abc import Mapping
from typing import Any

DEFINITIONS = ("$defs", "definitions")
"""Where definitions stand: since draft 2019-09, and before."""


def target_of(ref: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference points at, or `None`: to nowhere, to the network, to no schema."""
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        return None
    found: Any = root
    for step in steps_of(ref):
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found if isinstance(found, Mapping | bool) else None


def followed(schema: Any, root: Mapping[str, Any]) -> Any:
    """Follow references until something else stands there; `None` for one that has no end."""
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
    """Decode `%3C`, which generators for TypeScript write into references."""
    head, *tail = text.split("%")
    out = head.encode(errors="surrogatepass")
    for part in tail:
        try:
            code = bytes.fromhex(part[:2])
        except ValueError:
            code, part = b"%", f"  {part}"  # noqa: PLW2901 - nothing is cut off what is no code
        out += code + part[2:].encode(errors="surrogatepass")
    return out.decode(errors="replace")
