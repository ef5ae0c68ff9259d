"""The contracts of several tools, for a planner."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from types import MappingProxyType
from typing import Any

from satchel.contracts.plan import Validation
from satchel.contracts.plan_validation import contract_of, schema_mismatch, validate
from satchel.contracts.prompt_variables import keys_of
from satchel.contracts.state_effects import effects_of, kept_keys
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ConflictError, DefinitionError
from satchel.text import visible
from satchel.tools import ToolCall, ToolResult
from satchel.tools.dialects import ToolShape, in_dialect
from satchel.tools.empty_mapping import NOTHING


class Contracts(Mapping[str, ToolContract]):
    """An immutable mapping of tool names to contracts."""

    def __init__(self, contracts: Iterable[ToolContract] = ()) -> None:
        """Collect contracts. Raises `ConflictError` if two are for the same tool."""
        by_name: dict[str, ToolContract] = {}
        for item in contracts:
            if not isinstance(item, ToolContract):
                message = f"{type(item).__name__} is not a ToolContract"
                raise DefinitionError(message, fix="pass a list of ToolContract")
            if by_name.setdefault(item.name, item) is not item:
                message = f"there are two contracts for the tool {item.name!r}"
                raise ConflictError(message, fix="leave one of them out")
        self._by_name = MappingProxyType(by_name)

    def __getitem__(self, name: str) -> ToolContract:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Contracts, (tuple(self.values()),)

    def __repr__(self) -> str:
        return f"<Contracts of {', '.join(self) or 'nothing'}>"

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the tools' schemas in the dialect of a provider.

        Raises `NotFoundError` for an unknown dialect.
        """
        shapes = (
            ToolShape(
                name=item.name,
                description=visible(item.description),
                parameters=deepcopy(dict(item.parameters)),
                output=None,
                annotations=None,
            )
            for item in self.values()
        )
        return [in_dialect(dialect, shape) for shape in shapes]

    def validate(
        self,
        plan: Iterable[ToolCall],
        state: Mapping[str, Any] = NOTHING,
        config: Mapping[str, Any] = NOTHING,
    ) -> Validation:
        """Return the calls to run, and those that were corrected, pruned and rejected."""
        return validate(plan, self, state, config, schema_mismatch(self))

    def collect_effects(
        self,
        plan: Iterable[ToolCall],
        results: Iterable[ToolResult],
        state: Mapping[str, Any] = NOTHING,
    ) -> dict[str, Any]:
        """Return the new state values after calls with these results, applied in order.

        Raises `ContractError` for a value that cannot be merged.
        """
        changes: dict[str, Any] = {}
        for call, result in zip(plan, results, strict=True):
            if (contract := contract_of(self, call)) is not None:
                changes |= effects_of(contract, result, {**state, **changes})
        return changes

    def new_turn(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state without the keys that a new turn clears."""
        return {key: value for key, value in state.items() if key not in self.cleared}

    @cached_property
    def cleared(self) -> frozenset[str]:
        """The keys that a new turn clears."""
        return frozenset(key for key, is_kept in kept_keys(self.values()).items() if not is_kept)

    @cached_property
    def prompt_variables(self) -> Mapping[str, tuple[str, ...]]:
        """The state keys of each prompt variable; the first one fills it."""
        return keys_of(self.values())
