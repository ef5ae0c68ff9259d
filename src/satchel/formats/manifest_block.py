"""Read the mappings of a toolkit.yaml key by key."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.formats.read_result import DiagnosticCollector, quoted
from satchel.formats.yaml_builder import KeyPath, YamlValue
from satchel.formats.yaml_reader import YamlMap, yaml_type_name
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses

_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestBlock:
    """One mapping of the file.

    Invalid values are reported and replaced by a default, so that reading continues and finds all
    of them. The codes of the diagnostics decide whether the plugin is refused.
    """

    values: dict[str, YamlValue]
    at: KeyPath
    yaml: YamlMap
    collector: DiagnosticCollector

    def report(self, code: str, key: str, message: str, fix: str) -> None:
        """Add a diagnostic on the line of `key`, or of the block if the key is missing."""
        lines = self.yaml.lines
        self.collector.add(code, message, fix, lines.get((*self.at, key), lines.get(self.at)))

    def report_invalid(self, key: str, message: str, fix: str) -> None:
        """Report an invalid value."""
        self.report("plugin-field-type", key, message, fix)

    def text(self, key: str, default: str = "") -> str:
        """Return a text, stripped."""
        value = self.values.get(key)
        if isinstance(value, str):
            return value.strip()
        if value is not None:
            self.report_invalid(
                key, f"'{key}' is {yaml_type_name(value)}, not text", "Write text, in quotes."
            )
        return default

    def switch(self, key: str, *, default: bool) -> bool:
        """Return a boolean."""
        value = self.values.get(key)
        if value is None:
            return default
        text = value.lower() if isinstance(value, str) else ""
        if text not in _BOOLEANS:
            self.report_invalid(key, f"'{key}' is neither true nor false", "Write true or false.")
        return _BOOLEANS.get(text, default)

    def is_off(self, key: str) -> bool:
        """Return whether a boolean is given, and false."""
        value = self.values.get(key)
        return isinstance(value, str) and _BOOLEANS.get(value.lower()) is False

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; a text is split at commas."""
        value = self.values.get(key)
        if isinstance(value, str):
            value = [*value.split(",")]
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.report_invalid(key, f"'{key}' is not a list of texts", "Write '[one, two]'.")
            return ()
        return tuple(text for item in value if (text := str(item).strip()))

    def blocks(self, key: str, noun: str) -> "list[tuple[str, ManifestBlock]]":
        """Return the blocks of a mapping by name, or of a list of items with a name.

        Each comes with its name, which is `""` in a list.
        """
        value = self.values.get(key)
        if isinstance(value, dict):
            items = [(name, name, item) for name, item in value.items()]
        elif isinstance(value, list):
            items = [("", str(number), item) for number, item in enumerate(value)]
        elif value is None:
            return []
        else:
            self.report_invalid(
                key, f"'{key}' is text, not a mapping", f"Write each {noun}'s name and ':'."
            )
            return []
        blocks = []
        for name, step, item in items:
            at = (*self.at, key, step)
            if isinstance(item, dict) or (name and item is None):
                blocks.append((name, replace(self, values=item or {}, at=at)))
            else:
                message = f"a {noun} is {yaml_type_name(item)}, not a mapping"
                line = self.yaml.lines.get(at)
                self.collector.add("plugin-field-type", message, "Write its fields below it.", line)
        return blocks

    def name(self, key: str, noun: str) -> str:
        """Return the name of a block, given by its `key` or by its field `name`."""
        name = self.text("name", default=key) or key
        if key and name != key:
            self.report_invalid(
                "name", f"{quoted(name)} is called {quoted(key)} above", "Remove 'name:'."
            )
        if not name:
            self.report_invalid("name", f"a {noun} has no name", "Add 'name:'.")
        return name

    def report_doubles(self, key: str, noun: str, names: Iterable[str], fix: str) -> None:
        """Report the names that several blocks below a key have."""
        counts = Counter(filter(None, names))
        for name in sorted(name for name, count in counts.items() if count > 1):
            self.report_invalid(key, f"two {noun}s are named {quoted(name)}", fix)

    def report_unknown(
        self, fields: tuple[str, ...], special: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        """Report the keys that are not in `fields`; `special` has reasons and fixes for some."""
        special = special or {}
        for key in self.values:
            if key in fields:
                continue
            if key in special:
                reason, fix = special[key]
                message = f"'{key}' {reason}"
            else:
                unused = [name for name in fields if name not in self.values]
                near = near_misses(key, unused, most=1)
                message = f"{quoted(key)} is not a known field"
                fix = f"Write '{near[0]}:'." if near else "Remove it."
            self.report("plugin-field-unknown", key, message, fix)
