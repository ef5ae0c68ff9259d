"""The mapping that holds nothing, for values to begin with."""

from collections.abc import Iterator, Mapping
from typing import Any


class EmptyMapping(Mapping[str, Any]):
    """An empty mapping; unlike a `dict` nobody can put something in, so it can be shared."""

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
