"""Whether what others wrote fits into the protocol: one tool that does not must cost no other."""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

_log = logging.getLogger("satchel.mcp")

_FRAME = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_ERAS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)

Key = tuple[str, str]
"""A tool's name and version."""


class Fitting:
    """Makes tools fit, and remembers how each version did."""

    def __init__(self) -> None:
        self._without: dict[Key, tuple[str, ...] | None] = {}

    def fitted(self, tool: Mapping[str, Any], version: str) -> dict[str, Any] | None:
        """Return a tool as it can be listed, `None` for one that cannot be."""
        key = (tool["name"], version)
        if key not in self._without:
            self._without[key] = _lacking(tool)
        lacking = self._without[key]
        if lacking is None:
            return None
        return {name: value for name, value in tool.items() if name not in lacking}

    def forget_all_but(self, keys: Iterable[Key]) -> None:
        """Let go of versions that are there no more."""
        there = set(keys)
        self._without = {key: known for key, known in self._without.items() if key in there}


def _lacking(tool: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return what must be left out of a tool, `None` if that does not help."""
    for lacking in ((), ("annotations",), ("annotations", "outputSchema")):
        problem = _fault({name: value for name, value in tool.items() if name not in lacking})
        if not problem:
            if lacking:
                _log.warning("tool %s is served without %s", tool["name"], " and ".join(lacking))
            return lacking
    _log.warning("tool %s is not served over MCP: %s", tool["name"], problem)
    return None


def _fault(tool: Mapping[str, Any]) -> str:
    try:
        json.dumps(tool, allow_nan=False).encode()
        for era in _ERAS:
            methods.serialize_server_result("tools/list", era, {"tools": [tool], **_FRAME})
    except (ValueError, TypeError, RecursionError) as problem:
        return type(problem).__name__
    return ""
