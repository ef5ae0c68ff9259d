"""One mapping of a manifest, read key by key."""

from collections.abc import Mapping
from dataclasses import dataclass

from satchel.formats.read_result import DiagnosticCollector, quoted
from satchel.formats.yaml_builder import KeyPath, YamlValue
from satchel.formats.yaml_reader import YamlMap, yaml_type_name
from satchel.names import near_misses

_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestBlock:
    """One mapping of the file.

    What does not fit is noted, and the reading goes on with a default to find the next problem;
    whether the plugin is refused for it is up to the code that was noted.
    """

    values: dict[str, YamlValue]
    at: KeyPath
    yaml: YamlMap
    problems: DiagnosticCollector

    def note(self, code: str, key: str, message: str, fix: str) -> None:
        """Note a problem on the line of `key`, or of the block where the key is not given."""
        lines = self.yaml.lines
        self.problems.add(code, message, fix, lines.get((*self.at, key), lines.get(self.at)))

    def misfit(self, key: str, message: str, fix: str) -> None:
        """Note that the value of a key is not what it must be."""
        self.note("plugin-field-type", key, message, fix)

    def text(self, key: str, default: str = "") -> str:
        """Return a text without the blanks around it."""
        value = self.values.get(key)
        if isinstance(value, str):
            return value.strip()
        if value is not None:
            self.misfit(
                key, f"'{key}' is {yaml_type_name(value)}, not text", "Write text, in quotes."
            )
        return default

    def switch(self, key: str, *, default: bool) -> bool:
        """Return whether something is on."""
        value = self.values.get(key)
        if value is None:
            return default
        word = value.lower() if isinstance(value, str) else ""
        if word not in _SWITCH:
            self.misfit(key, f"'{key}' is neither true nor false", "Write true or false.")
        return _SWITCH.get(word, default)

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of words; text with commas is taken for one."""
        value = self.values.get(key)
        if isinstance(value, str):
            value = [*value.split(",")]
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.misfit(key, f"'{key}' is not a list of words", "Write '[one, two]'.")
            return ()
        return tuple(word for item in value if (word := str(item).strip()))

    def blocks(self, key: str, noun: str) -> "list[tuple[str, ManifestBlock]]":
        """Return what is given as a mapping by name, or as a list whose items have a name.

        Each comes with its name, `""` in a list.
        """
        value = self.values.get(key)
        if isinstance(value, dict):
            items = [(name, name, item) for name, item in value.items()]
        elif isinstance(value, list):
            items = [("", str(number), item) for number, item in enumerate(value)]
        elif value is None:
            return []
        else:
            self.misfit(
                key, f"'{key}' is text, not a mapping", f"Write each {noun}'s name and ':'."
            )
            return []
        blocks = []
        for name, step, item in items:
            at = (*self.at, key, step)
            if isinstance(item, dict) or (name and item is None):
                blocks.append(
                    (
                        name,
                        ManifestBlock(
                            values=item or {}, at=at, yaml=self.yaml, problems=self.problems
                        ),
                    )
                )
            else:
                message = f"a {noun} is {yaml_type_name(item)}, not a mapping"
                line = self.yaml.lines.get(at)
                self.problems.add("plugin-field-type", message, "Write its fields below it.", line)
        return blocks

    def name(self, key: str, noun: str) -> str:
        """Return the name of a block that may stand under its name as `key`."""
        name = self.text("name", default=key) or key
        if key and name != key:
            self.misfit("name", f"{quoted(name)} is called {quoted(key)} above", "Remove 'name:'.")
        if not name:
            self.misfit("name", f"a {noun} has no name", "Add 'name:'.")
        return name

    def report_unknown(
        self, known: tuple[str, ...], special: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        """Note the keys that are none of `known`; `special` says why some are not, with a fix."""
        special = special or {}
        for key in self.values:
            if key in known:
                continue
            if key in special:
                why, fix = special[key]
                message = f"'{key}' {why}"
            else:
                meant = near_misses(
                    key, [name for name in known if name not in self.values], most=1
                )
                message = f"{quoted(key)} is not a field that is read here"
                fix = f"Write '{meant[0]}:'." if meant else "Remove it."
            self.note("plugin-field-unknown", key, message, fix)
