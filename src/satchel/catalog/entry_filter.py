"""Which tools and skills of a catalog a session sees."""

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import chain

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_changes import entry_kind
from satchel.catalog.catalog_entries import Entry
from satchel.configuration.selection import SelectionPatterns
from satchel.lazy_dataclass import dataclass
from satchel.names import SESSION_TOOLS, near_misses


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Patterns that enable and disable tools and skills, as in `satchel.toml`."""

    enable: SelectionPatterns | None = None
    """Only entries that match are accepted, of each kind that a pattern may match."""
    disable: SelectionPatterns = field(default_factory=SelectionPatterns)
    """Entries that match are refused, whatever `enable` says."""

    @classmethod
    def of(cls, enable: Iterable[str] | None, disable: Iterable[str]) -> "EntryFilter":
        """Return the filter of these patterns; without any in `enable`, it enables everything."""
        enabled = tuple(enable or ())
        return cls(
            enable=SelectionPatterns(enabled) if enabled else None,
            disable=SelectionPatterns(tuple(disable)),
        )

    def accepts(self, entry: Entry) -> bool:
        """Return whether the session sees an entry."""
        kind, texts = entry_kind(entry), entry.selectors
        if self.disable.match(kind, texts):
            return False
        return (
            self.enable is None
            or not self.enable.concerns(kind)
            or bool(self.enable.match(kind, texts))
        )


def names_neither(pattern: str) -> bool:
    """Return whether a pattern is for groups or plugins only, so it counts for no session."""
    single = SelectionPatterns((pattern,))
    return not (single.concerns("tool") or single.concerns("skill"))


def unmatched_patterns(patterns: Iterable[str], catalog: Catalog) -> Iterator[str]:
    """Yield a warning, with a hint, for each pattern that no tool and no skill matches."""
    for pattern in patterns:
        if names_neither(pattern):
            kind, _, name = pattern.partition(":")
            hint = f"; write {name!r} for all of a source" if kind == "plugin" else ""
            yield f"no tool and no skill matches {pattern!r}{hint}"
            continue
        if pattern in catalog.tools or pattern in catalog.skills:
            continue
        chosen = EntryFilter.of((pattern,), ())
        single = SelectionPatterns((pattern,))
        # The session's own tools are not in the catalog.
        if any(single.match("tool", (name,)) for name in SESSION_TOOLS):
            continue
        entries: list[Entry] = list(chain(catalog.all_tools, catalog.all_skills))
        if any(single.concerns(entry_kind(item)) and chosen.accepts(item) for item in entries):
            continue
        name = pattern.removeprefix("tool:").removeprefix("skill:")
        near = near_misses(name, {entry.name for entry in entries})
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        yield f"no tool and no skill matches {pattern!r}{hint}"
