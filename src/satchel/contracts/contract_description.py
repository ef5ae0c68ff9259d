"""A contract in words: the same shape that one has which was read and not run."""

import hashlib
from collections.abc import Mapping
from typing import Any

from satchel.contracts.tool_contract import ToolContract
from satchel.formats import (
    DeclaredConfig,
    DeclaredContract,
    DeclaredEffect,
    DeclaredRead,
    DeclaredRule,
    arguments_of,
)
from satchel.text import shorten


def declared_of(contract: ToolContract) -> DeclaredContract:
    """Return what a contract says."""
    return DeclaredContract(
        tool=contract.name,
        description=contract.description,
        arguments=_arguments(contract.schema),
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
                key=item.key,
                merge=item.merge,
                type=item.type_hint.__name__
                if isinstance(item.type_hint, type)
                else str(item.type_hint),
                is_preserved=item.preserve_across_turns,
                variable=item.prompt_template_var or "",
            )
            for item in contract.state_effects
        ),
    )


def fingerprint_of(contract: ToolContract) -> str:
    """Return what differs when the words of a contract do."""
    said = f"{declared_of(contract)}\0{contract.parameters}"
    return hashlib.blake2b(said.encode(errors="replace"), digest_size=8).hexdigest()


def _arguments(schema: Any) -> str:
    return arguments_of(schema)[0] if isinstance(schema, Mapping) else str(schema.__name__)


def _written(value: Any) -> str:
    """Write a default as Python does; one that is no literal by its type alone."""
    if value is None:
        return ""
    is_plain = isinstance(value, str | int | float | bool | list | dict | tuple)
    return shorten(repr(value), 200) if is_plain else f"<{type(value).__name__}>"
