"""Validate each listed item against the protocol, so that an invalid one is left out alone."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from satchel.tools import Tool
from satchel.tools.empty_mapping import NOTHING

_log = logging.getLogger("satchel.mcp")

GROUP_KEY = "dev.satchel/group"
"""The `_meta` key for the group of a tool."""

LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The list methods, with the key of the items in their results."""

_FRAME = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_ERAS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)
_LACKING: tuple[tuple[str, ...], ...] = ((), ("annotations",), ("annotations", "outputSchema"))


Described = dict[str, Any] | None
"""A listed item, or `None` for one that is invalid."""


class DescriptionCache:
    """A cache of listed items by the objects they describe."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Described]] = {}

    def described(self, key: object, describe: Callable[[], Described]) -> Described:
        """Return the cached item for `key`, or create it."""
        if (item := self._known.get(id(key))) is None:
            # Keep the key itself, so that no other object gets its id.
            item = self._known[id(key)] = (key, describe())
        return item[1]

    def forget_all_but(self, keys: Iterable[object]) -> None:
        """Drop the items of all other keys."""
        there = set(map(id, keys))
        self._known = {key: item for key, item in self._known.items() if key in there}


def described_tool(tool: Tool, group: str) -> Described:
    """Describe a tool; leave out invalid annotations or an invalid output schema."""
    try:
        meta = {**tool.mcp_fields.get("_meta", NOTHING), GROUP_KEY: group}
        schema = {**tool.to_schema("mcp"), "_meta": {GROUP_KEY: group}}
    except Exception as problem:  # one tool must not take the server down
        _log.warning("tool %s is not served over MCP: %s", tool.name, type(problem).__name__)
        return None
    for lacking in _LACKING:
        try:
            described = require_valid(
                "tools/list",
                {key: schema[key] for key in schema if key not in lacking},
                {**tool.mcp_fields, "_meta": meta},
            )
        except Exception as problem:
            fault = type(problem).__name__
            continue
        if lacking:
            _log.warning("tool %s is served without %s", tool.name, " and ".join(lacking))
        return described
    _log.warning("tool %s is not served over MCP: %s", tool.name, fault)
    return None


def require_valid(
    method: str, item: Mapping[str, Any], further: Mapping[str, Any] = NOTHING
) -> dict[str, Any]:
    """Return a deep copy of a listed item, with further fields unless they are invalid.

    Raises an error if the item itself is invalid.
    """
    if further:
        with suppress(Exception):
            return require_valid(method, {**item, **further})
    fitting: dict[str, Any] = json.loads(json.dumps(item, allow_nan=False))
    json.dumps(fitting, ensure_ascii=False).encode()
    for era in _ERAS:
        methods.serialize_server_result(method, era, {LISTED[method]: [fitting], **_FRAME})
    return fitting
