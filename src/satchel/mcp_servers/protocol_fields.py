"""Optional fields of the protocol that Satchel does not use itself, for the clients it serves.

Icons, titles, annotations, `_meta` and what later versions add. They are whatever the SDK's model
has beside the fields that Satchel reads, so a field that a newer SDK knows needs no code here.
"""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from satchel.settings import Limits
from satchel.text import shorten, visible
from satchel.tools.empty_mapping import NOTHING

if TYPE_CHECKING:
    from pydantic import BaseModel

META = "_meta"
MCP_FIELDS = "mcp_fields"
"""The key of these fields in the metadata of a result."""

LONGEST_TEXT = 1_000
"""Characters of a title or a description that are used."""

# Each holds for one connection only: what its client and its server are, and what we add.
_OF_A_CONNECTION = ("io.modelcontextprotocol/", "dev.satchel/")
_PROGRESS = ("progress_token", "progressToken")
_TEXTS = frozenset({"title", "description"})


class FieldReader:
    """Reads the fields of the items of one list, within the limits for untrusted servers."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._left = limits, limits.mcp_listing

    def read(
        self, kind: "type[BaseModel]", item: Any, *, used: Collection[str]
    ) -> Mapping[str, Any]:
        """Return the fields of an item beside those in `used`; none if they are invalid or large.

        Texts are without invisible characters.
        """
        try:
            fields = fields_beside(kind, item, used=used)
            fields = {key: _cleaned(value, key) for key, value in fields.items()}
            size = len(json.dumps(fields)) if fields else 0
        except (ValueError, RecursionError):
            return NOTHING
        if not fields or size > min(self._limits.mcp_schema, self._left):
            return NOTHING
        self._left -= size
        return fields


def fields_of(model: "BaseModel", exclude: Any = None) -> dict[str, Any]:
    """Return the fields of a model as the protocol names them, without those in `exclude`."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=exclude)


def fields_beside(kind: "type[BaseModel]", item: Any, *, used: Collection[str]) -> dict[str, Any]:
    """Return the fields of an item that are not in `used`; none if the item is invalid."""
    try:
        fields = fields_of(kind.model_validate(item, by_name=False))
    except ValueError:
        return {}
    return {key: value for key, value in fields.items() if key not in used}


def result_metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a result, beside its content, as metadata of a `ToolResult`."""
    kept = forwarded_fields(fields)
    return {MCP_FIELDS: kept} if kept else {}


def forwarded_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a result that are for the other end."""
    fields = {**fields, META: forwarded_meta(fields.get(META, {}))}
    return {key: value for key, value in fields.items() if value != {}}


def forwarded_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `_meta` that is for the other end, not for one connection on the way to it."""
    return {
        key: value
        for key, value in meta.items()
        if key not in _PROGRESS and not key.startswith(_OF_A_CONNECTION)
    }


def _cleaned(value: Any, key: str) -> Any:
    match value:
        case str():
            text = visible(value)
            return shorten(text, LONGEST_TEXT) if key in _TEXTS else text
        case list():
            return [_cleaned(item, key) for item in value]
        case dict():
            # In `_meta`, a title is whatever its author means by it.
            return {visible(k): _cleaned(v, META if key == META else k) for k, v in value.items()}
    return value
