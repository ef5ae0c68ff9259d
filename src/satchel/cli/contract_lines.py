"""Render a contract, given as JSON, as lines of text."""

from typing import Any

from satchel.reports.short_texts import count

NOT_LOADED = "unknown until the plugin's code is loaded (use --run)"
NOT_LOADABLE = "unknown, because the plugin's code was not loaded"

_MERGES = {
    "replace": "replaces the old value",
    "append": "is appended to the old value",
    "merge_dict": "is merged into the old value",
}


def contract_lines(contract: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the labels and values of a contract."""
    return [
        ("contract", contract_size(contract)),
        ("description", contract["description"]),
        ("arguments", contract["arguments"]),
        *(("rule", _rule(item)) for item in contract["rules"]),
        *(("config", _config(item)) for item in contract["config"]),
        *(("reads", _read(item)) for item in contract["reads"]),
        *(("writes", _effect(item)) for item in contract["effects"]),
    ]


def contract_size(contract: dict[str, Any]) -> str:
    """Return how many rules, keys, reads and effects a contract has."""
    parts = {"rules": "rule", "config": "config key", "reads": "read", "effects": "effect"}
    return ", ".join(count(len(contract[key]), noun) for key, noun in parts.items())


def _rule(item: dict[str, Any]) -> str:
    outcome = "corrects or drops the call" if item["corrects"] else "refuses the call"
    return f"{item['id']}: {item['rule']} ({outcome})"


def _config(item: dict[str, Any]) -> str:
    default = f"{item['default']} by default" if item["default"] else "no default"
    return f"{item['key']}: {default}" + (", normalized" if item["normalized"] else "")


def _read(item: dict[str, Any]) -> str:
    return f"{item['key']}: " + ("required" if item["required"] else f"default {item['default']}")


def _effect(item: dict[str, Any]) -> str:
    lifetime = "kept across turns" if item["preserved"] else "cleared by a new turn"
    variable = f"; in the prompt as {{{{{item['variable']}}}}}" if item["variable"] else ""
    return f"{item['key']}: {item['type']} that {_MERGES[item['merge']]}; {lifetime}{variable}"
