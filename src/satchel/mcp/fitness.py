"""Whether what others wrote fits into the protocol: one tool that does not must cost no other."""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from satchel.tools import Tool

_log = logging.getLogger("satchel.mcp")

GROUP_KEY = "dev.satchel/group"
"""Where in `_meta` a tool says which group it belongs to."""

_FRAME = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_ERAS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)
_LACKING: tuple[tuple[str, ...], ...] = ((), ("annotations",), ("annotations", "outputSchema"))


class Fitting:
    """Describes tools as they can be listed, each once for as long as it is there."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, dict[str, Any] | None]] = {}

    def described(self, key: object, tool: Tool, group: str) -> dict[str, Any] | None:
        """Return a tool as it is listed, `None` for one that cannot be.

        It is the same for the same `key`, such as an entry of the catalog.
        """
        if (known := self._known.get(id(key))) is None:
            # With the key itself, so that no other can take its id.
            known = self._known[id(key)] = (key, _described(tool, group))
        return known[1]

    def forget_all_but(self, keys: Iterable[object]) -> None:
        """Let go of what is there no more."""
        there = set(map(id, keys))
        self._known = {key: known for key, known in self._known.items() if key in there}


def _described(tool: Tool, group: str) -> dict[str, Any] | None:
    schema = {**tool.to_schema("mcp"), "_meta": {GROUP_KEY: group}}
    for lacking in _LACKING:
        fitting, problem = _fit({key: schema[key] for key in schema if key not in lacking})
        if fitting is not None:
            if lacking:
                _log.warning("tool %s is served without %s", tool.name, " and ".join(lacking))
            return fitting
    _log.warning("tool %s is not served over MCP: %s", tool.name, problem)
    return None


def _fit(schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return a copy that nobody else holds, or what is wrong."""
    try:
        fitting: dict[str, Any] = json.loads(json.dumps(schema, allow_nan=False))
        json.dumps(fitting, ensure_ascii=False).encode()
        for era in _ERAS:
            methods.serialize_server_result("tools/list", era, {"tools": [fitting], **_FRAME})
    except (ValueError, TypeError, RecursionError) as problem:
        return None, type(problem).__name__
    return fitting, ""
