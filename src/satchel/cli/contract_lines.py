"""A contract as lines for a person, made of its JSON."""

from typing import Any

from satchel.cli.rendering import count

NOT_LOADED = "known only once its code was loaded (--run loads it)"

_MERGES = {
    "replace": "replaces what is there",
    "append": "is appended to what is there",
    "merge_dict": "is merged into what is there",
}


def contract_lines(contract: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a contract as lines, each with its label."""
    return [
        ("contract", counted(contract)),
        ("told models", contract["description"]),
        ("arguments", contract["arguments"]),
        *(("rule", _rule(item)) for item in contract["rules"]),
        *(("config", _config(item)) for item in contract["config"]),
        *(("reads", _read(item)) for item in contract["reads"]),
        *(("writes", _effect(item)) for item in contract["effects"]),
    ]


def counted(contract: dict[str, Any]) -> str:
    """Say in short how much a contract says."""
    parts = {"rules": "rule", "config": "config key", "reads": "read", "effects": "effect"}
    return ", ".join(count(len(contract[key]), noun) for key, noun in parts.items())


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
