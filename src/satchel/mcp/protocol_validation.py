"""Whether what others wrote fits into the protocol: one thing that does not must cost no other."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from satchel.tools import Tool

_log = logging.getLogger("satchel.mcp")

GROUP_KEY = "dev.satchel/group"
"""Where in `_meta` a tool says which group it belongs to."""

LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The methods that list something, with what they call it."""

_FRAME = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_ERAS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)
_LACKING: tuple[tuple[str, ...], ...] = ((), ("annotations",), ("annotations", "outputSchema"))


Described = dict[str, Any] | None
"""A thing as it is listed, `None` for one that cannot be."""


class DescriptionCache:
    """Describes things as they can be listed, each once for as long as it is there."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Described]] = {}

    def described(self, key: object, describe: Callable[[], Described]) -> Described:
        """Return how a thing is listed, which is the same for the same `key`."""
        if (known := self._known.get(id(key))) is None:
            # With the key itself, so that no other can take its id.
            known = self._known[id(key)] = (key, describe())
        return known[1]

    def forget_all_but(self, keys: Iterable[object]) -> None:
        """Let go of what is there no more."""
        there = set(map(id, keys))
        self._known = {key: known for key, known in self._known.items() if key in there}


def described_tool(tool: Tool, group: str) -> Described:
    """Describe a tool, if need be without what else would keep it from being listed."""
    schema = {**tool.to_schema("mcp"), "_meta": {GROUP_KEY: group}}
    for lacking in _LACKING:
        try:
            described = require_valid(
                "tools/list", {key: schema[key] for key in schema if key not in lacking}
            )
        except Exception as problem:
            fault = type(problem).__name__
            continue
        if lacking:
            _log.warning("tool %s is served without %s", tool.name, " and ".join(lacking))
        return described
    _log.warning("tool %s is not served over MCP: %s", tool.name, fault)
    return None


def require_valid(method: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of what is to be listed that nobody else holds; raise if it does not fit."""
    fitting: dict[str, Any] = json.loads(json.dumps(item, allow_nan=False))
    json.dumps(fitting, ensure_ascii=False).encode()
    for era in _ERAS:
        methods.serialize_server_result(method, era, {LISTED[method]: [fitting], **_FRAME})
    return fitting
