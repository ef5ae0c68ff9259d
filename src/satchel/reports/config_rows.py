"""The configuration of a plugin as records; secrets are masked."""

from typing import TYPE_CHECKING, Any

from satchel.configuration.configuration import Configuration
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.formats.config_fields import ConfigField

_MASK = "***"
_MAX_SHOWN = 200


def config_rows(config: Configuration) -> list[dict[str, Any]]:
    """Return the JSON of all fields: first the declared ones, then the others."""
    declared = {item.key for item in config.fields}
    return [
        *(_row(config, item.key, item) for item in config.fields),
        *(_row(config, key, None) for key in sorted(config.raw) if key not in declared),
    ]


def _row(config: Configuration, key: str, item: "ConfigField | None") -> dict[str, Any]:
    has_value = key in config.origins
    return {
        "name": item.name if item else key,
        "type": item.type if item else None,
        "description": one_line(item.description) if item else "",
        "required": bool(item and item.required),
        "value": _display(config.raw[key], item) if has_value else None,
        "origin": config.origins.get(key, "missing"),
        "problem": config.invalid.get(key, "")
        or ("has no value" if item and item in config.missing else ""),
    }


def _display(value: Any, item: "ConfigField | None") -> str:
    """Return a value as text; a value that is not declared may be a secret, so it is masked."""
    if item is None or item.is_secret:
        return _MASK
    if isinstance(value, bool):
        return str(value).lower()
    return shorten(str(value), _MAX_SHOWN)
