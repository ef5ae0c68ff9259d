"""A contract in words, made of its JSON shape."""

from typing import Any

from satchel.cli.rendering import count, relative

_MERGES = {
    "replace": "replaces what is there",
    "append": "is appended to what is there",
    "merge_dict": "is merged into what is there",
}
_PARTS = {
    "name": ("tool", "tool"),
    "schema": ("arguments", "arguments"),
    "description": ("told models", "description"),
    "invariants": ("rules", "rules"),
    "config_params": ("config", "config"),
    "state_reads": ("reads", "reads"),
    "state_effects": ("writes", "effects"),
}
"""What each parameter of the record is called here, and its key in the shape."""

_ONCE_RUN = "known once its code runs"


def contract_lines(shape: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a contract as lines, each with what it is about."""
    place = relative(shape["path"]) + (f":{shape['line']}" if shape["line"] else "")
    return [
        ("contract", place),
        ("told models", shape["description"]),
        ("arguments", shape["arguments"]),
        *(("rule", _rule(item)) for item in shape["rules"]),
        *(("config", _config(item)) for item in shape["config"]),
        *(("reads", _read(item)) for item in shape["reads"]),
        *(("writes", _effect(item)) for item in shape["effects"]),
        *(_unread(part, shape) for part in shape["unread"]),
    ]


def contract_counts(shape: dict[str, Any]) -> str:
    """Say in short how much a contract says."""
    parts = [
        count(len(shape["rules"]), "rule"),
        count(len(shape["config"]), "config key"),
        count(len(shape["reads"]), "read"),
        count(len(shape["effects"]), "effect"),
    ]
    unread = ", ".join(_PARTS[part][0] for part in shape["unread"])
    return ", ".join(parts) + (f"; more once its code runs ({unread})" if unread else "")


def _rule(item: dict[str, Any]) -> str:
    outcome = "corrects or drops the call" if item["corrects"] else "refuses the call"
    return f"{item['id']}: {item['rule']} ({outcome})"


def _config(item: dict[str, Any]) -> str:
    default = f"{item['default']} by default" if item["default"] else "no default"
    return f"{item['key']}: {default}" + (", normalised" if item["normalized"] else "")


def _read(item: dict[str, Any]) -> str:
    return f"{item['key']}: " + ("required" if item["required"] else f"or else {item['default']}")


def _effect(item: dict[str, Any]) -> str:
    life = "outlives a turn" if item["preserved"] else "a new turn clears it"
    variable = f"; in the prompt as {{{{{item['variable']}}}}}" if item["variable"] else ""
    return f"{item['key']}: {item['type']} that {_MERGES[item['merge']]}; {life}{variable}"


def _unread(part: str, shape: dict[str, Any]) -> tuple[str, str]:
    label, key = _PARTS[part]
    is_known_in_part = isinstance(shape[key], list) and shape[key]
    return label, f"more are {_ONCE_RUN}" if is_known_in_part else _ONCE_RUN
