"""A contract in words: the same shape that one has which was read and not run."""

import hashlib
from collections.abc import Mapping
from typing import Any

from satchel.contracts.contract import ToolContract
from satchel.manifests import (
    DeclaredConfig,
    DeclaredContract,
    DeclaredEffect,
    DeclaredRead,
    DeclaredRule,
)
from satchel.text import shorten
from satchel.tools.schema import kind_of


def declared_of(contract: ToolContract) -> DeclaredContract:
    """Return what a contract says."""
    return DeclaredContract(
        tool=contract.name,
        description=contract.description,
        arguments=_arguments(contract.parameters),
        rules=tuple(
            DeclaredRule(item.id, item.rule, item.correct is not None)
            for item in contract.invariants
        ),
        config=tuple(
            DeclaredConfig(item.key, _written(item.default), item.normalizer is not None)
            for item in contract.config_params
        ),
        reads=tuple(
            DeclaredRead(
                item.key, "" if item.is_required else _written(item.default), item.is_required
            )
            for item in contract.state_reads
        ),
        effects=tuple(
            DeclaredEffect(
                item.key,
                item.merge,
                item.type_hint.__name__
                if isinstance(item.type_hint, type)
                else str(item.type_hint),
                item.preserve_across_turns,
                item.prompt_template_var or "",
            )
            for item in contract.state_effects
        ),
    )


def fingerprint_of(contract: ToolContract) -> str:
    """Return what differs when the words of a contract do."""
    return hashlib.blake2b(
        repr(declared_of(contract)).encode(errors="replace"), digest_size=8
    ).hexdigest()


def _arguments(parameters: Mapping[str, Any]) -> str:
    required = parameters.get("required", ())
    properties: Mapping[str, Any] = parameters.get("properties", {})
    return ", ".join(
        f"{name}: {kind_of(about)}{'' if name in required else ', optional'}"
        for name, about in properties.items()
    )


def _written(value: Any) -> str:
    """Write a default as Python does; one that is no literal by its type alone."""
    if value is None:
        return ""
    is_plain = isinstance(value, str | int | float | bool | list | dict | tuple)
    return shorten(repr(value), 200) if is_plain else f"<{type(value).__name__}>"
