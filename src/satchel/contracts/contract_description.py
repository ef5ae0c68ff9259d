"""A contract as JSON."""

import hashlib
from collections.abc import Mapping
from typing import Any

from satchel.contracts.tool_contract import ToolContract
from satchel.text import shorten


def contract_json(contract: ToolContract) -> dict[str, Any]:
    """Return a contract in the shape that docs/reference/json.md describes."""
    return {
        "description": contract.description,
        "arguments": _arguments(contract.parameters),
        "rules": [
            {"id": item.id, "rule": item.rule, "corrects": item.correct is not None}
            for item in contract.invariants
        ],
        "config": [
            {
                "key": item.key,
                "default": _default(item.default),
                "normalized": item.normalizer is not None,
            }
            for item in contract.config_params
        ],
        "reads": [
            {
                "key": item.key,
                "default": "" if item.is_required else _default(item.default),
                "required": item.is_required,
            }
            for item in contract.state_reads
        ],
        "effects": [
            {
                "key": item.key,
                "type": _type(item.type_hint),
                "merge": item.merge,
                "preserved": item.preserve_across_turns,
                "variable": item.prompt_template_var or "",
            }
            for item in contract.state_effects
        ],
    }


def fingerprint_of(contract: ToolContract) -> str:
    """Return a digest that changes with the contract."""
    content = f"{contract.name}\0{contract_json(contract)}\0{contract.parameters}"
    return hashlib.blake2b(content.encode(errors="replace"), digest_size=8).hexdigest()


def _arguments(parameters: Mapping[str, Any]) -> str:
    """Return the names of the arguments, each with its type where the schema has one."""
    properties = parameters.get("properties")
    return ", ".join(
        f"{name}: {schema['type']}"
        if isinstance(schema, Mapping) and isinstance(schema.get("type"), str)
        else name
        for name, schema in (properties.items() if isinstance(properties, Mapping) else ())
    )


def _type(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _default(value: Any) -> str:
    """Return the `repr` of a literal default, or the type's name of any other."""
    if value is None:
        return ""
    is_literal = isinstance(value, str | int | float | bool | list | dict | tuple)
    return shorten(repr(value), 200) if is_literal else f"<{type(value).__name__}>"
