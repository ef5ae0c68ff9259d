"""An immutable empty mapping, as a shared default value."""

from collections.abc import Iterator, Mapping
from typing import Any


class EmptyMapping(Mapping[str, Any]):
    """An empty mapping that cannot change, so it can be shared."""

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"


NOTHING = EmptyMapping()
