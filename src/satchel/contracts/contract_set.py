"""The contracts of several tools, as one value that a planner works with."""

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
    """The contracts of several tools, by the tool's name; it never changes."""

    def __init__(self, contracts: Iterable[ToolContract] = ()) -> None:
        """Gather contracts. Raises `ConflictError` for two of one tool."""
        found: dict[str, ToolContract] = {}
        for item in contracts:
            if not isinstance(item, ToolContract):
                told = f"{type(item).__name__} is no ToolContract"
                raise DefinitionError(told, fix="give a list of ToolContract")
            if found.setdefault(item.name, item) is not item:
                told = f"there are two contracts of the tool {item.name!r}"
                raise ConflictError(told, fix="leave one of them out")
        self._by_name = MappingProxyType(found)

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
        """Describe the tools in the words of a provider, for a planner to be bound to.

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
        """Return what is to be run of a plan, and what was corrected, pruned and rejected."""
        return validate(plan, self, state, config, schema_mismatch(self))

    def collect_effects(
        self,
        plan: Iterable[ToolCall],
        results: Iterable[ToolResult],
        state: Mapping[str, Any] = NOTHING,
    ) -> dict[str, Any]:
        """Return the new values of the state after calls with these results, in their order.

        Raises `ContractError` for a value that cannot be merged.
        """
        found: dict[str, Any] = {}
        for call, result in zip(plan, results, strict=True):
            if (contract := contract_of(self, call)) is not None:
                found |= effects_of(contract, result, {**state, **found})
        return found

    def new_turn(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a state without what a new turn clears."""
        return {key: value for key, value in state.items() if key not in self.cleared}

    @cached_property
    def cleared(self) -> frozenset[str]:
        """Return the keys that a new turn clears."""
        return frozenset(key for key, is_kept in kept_keys(self.values()).items() if not is_kept)

    @cached_property
    def prompt_variables(self) -> Mapping[str, tuple[str, ...]]:
        """Return each prompt variable with the keys that want to fill it; the first does."""
        return keys_of(self.values())
