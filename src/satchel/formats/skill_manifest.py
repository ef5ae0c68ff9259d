"""Read SKILL.md (the open Agent Skills format) leniently, and report every deviation."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic, Where
from satchel.formats.front_matter import FrontMatter, load_frontmatter, split_front_matter
from satchel.formats.frozen_values import frozen, to_plain
from satchel.formats.packed_text import Compressed, PackedText
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.formats.simple_skill import COMPATIBILITY_LENGTH, read_simple_skill
from satchel.formats.yaml_builder import YamlValue
from satchel.formats.yaml_reader import YamlMap, yaml_type_name
from satchel.lazy_dataclass import dataclass
from satchel.names import composed, near_misses, skill_name_fault, tidy_name, unsafe_name_fault
from satchel.settings import Limits
from satchel.text import has_hidden

KNOWN_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""The fields of the Agent Skills format."""

_KNOWN = frozenset(KNOWN_FIELDS)
_FALSE = frozenset({"false", "no", "off", "0", ""})
_TRUE = frozenset({"true", "yes", "on", "1"})
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_DOUBTFUL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_REMOTE_BODY = "The instructions are at the server."
_GROUP_FIELDS = ("groups", "include_tools", "adk_additional_tools")
_TOOL_REQUESTS = frozenset({"allowed-tools", "hooks", *_GROUP_FIELDS})
TOOL_PATTERN = re.compile(r"(?P<name>[^\s()]+)\s*(?:\((?P<condition>.*)\))?", re.DOTALL)
"""An item of `allowed-tools`."""
_LAZY_FIELDS = ("license", "compatibility", "allowed_tools", "metadata")
"""The attributes besides `fields` that `SkillManifest.restored` leaves unread."""

_EXTRA_FIELDS = ("disable-model-invocation", *_GROUP_FIELDS)
"""Fields that are not part of the format, but that Satchel uses."""
_FOREIGN_FIELDS = frozenset(
    {
        # Claude Code
        *("agent", "argument-hint", "arguments", "context", "disable-model-invocation"),
        *("disallowed-tools", "effort", "hooks"),
        *("model", "paths", "shell", "user-invocable", "version", "when_to_use"),
        # Cursor, VS Code, OpenCode, Hermes and catalogs of skills
        *("alwaysApply", "applyTo", "author", "category", "dependencies", "globs", "homepage"),
        *("icon", "keywords", "mode", "platforms", "repository", "requires", "tags", "title"),
        *("tools", "triggers"),
    }
)
"""Fields of other clients: advice to move them would break the skill there."""

_IGNORED_FIELDS = _FOREIGN_FIELDS - frozenset(_EXTRA_FIELDS)
"""Those that Satchel only keeps."""


@dataclass(frozen=True, kw_only=True)
class SkillManifest:
    """A SKILL.md; `fields` has its whole front matter, with unknown keys.

    It is immutable: mappings are read-only and lists are tuples, at every depth.
    """

    name: str
    description: str
    license: str | None
    compatibility: str | None
    allowed_tools: tuple[str, ...]
    metadata: Mapping[str, Any]
    fields: Mapping[str, Any]
    body: PackedText = PackedText()

    @classmethod
    def of_texts(cls, fields: dict[str, Any], body: bytes) -> "SkillManifest":
        """Return the manifest of fields that are in order, as those of most skills are."""
        metadata = frozen(fields.get("metadata", {}))
        if metadata:
            fields["metadata"] = metadata
        manifest = cls.__new__(cls)
        # Several times faster than the constructor.
        manifest.__dict__.update(
            name=fields["name"],
            description=fields["description"].strip(),
            license=fields.get("license"),
            compatibility=fields.get("compatibility"),
            allowed_tools=(),
            metadata=metadata,
            fields=MappingProxyType(fields),
            body=body,
            is_for_model=True,
        )
        return manifest

    @classmethod
    def restored(
        cls, name: str, description: str, rest: bytes, body: Compressed, *, is_for_model: bool
    ) -> "SkillManifest":
        """Return a manifest that was saved with its `rest`, which is read when it is needed."""
        manifest = cls.__new__(cls)
        manifest.__dict__.update(
            name=name, description=description, body=body, is_for_model=is_for_model, _rest=rest
        )
        return manifest

    if not TYPE_CHECKING:  # A type checker would allow every name.

        def __getattr__(self, name: str) -> Any:
            """Read the rest of a restored manifest."""
            if name not in ("fields", *_LAZY_FIELDS) or "_rest" not in self.__dict__:
                raise AttributeError(name)
            fields, other = json.loads(self._rest)
            values = {key: fields.get(key) for key in _LAZY_FIELDS} | other
            values["allowed_tools"] = tuple(values["allowed_tools"])
            frozen_values = {key: frozen(value) for key, value in values.items()}
            # One update: other threads may read it at this moment.
            self.__dict__.update(frozen_values, fields=frozen(fields))
            return self.__dict__[name]

    @property
    def rest(self) -> bytes:
        """Return what `restored` needs."""
        if rest := self.__dict__.get("_rest"):
            return bytes(rest)
        fields = to_plain(self.fields)
        values = {key: to_plain(getattr(self, key)) for key in _LAZY_FIELDS}
        # Most values are those of the fields.
        other = {key: value for key, value in values.items() if value != fields.get(key)}
        return json.dumps((fields, other)).encode()

    @cached_property
    def is_for_model(self) -> bool:
        """Return whether a model may load it: not with `disable-model-invocation: true`."""
        value = self.fields.get("disable-model-invocation")
        # Any other value was probably meant to forbid it.
        return value is None or (isinstance(value, str) and value.strip().lower() in _FALSE)

    @property
    def is_restricting(self) -> bool:
        """Return whether it has the field `allowed-tools`, even if that names no tool."""
        return "allowed-tools" in self.fields

    @property
    def groups(self) -> tuple[str, ...]:
        """Return what loading it enables: names of groups, or of tools in them.

        Other clients call the field `include_tools` or `adk_additional_tools`.
        """
        names = [
            name
            for key in _GROUP_FIELDS
            for value in (self.metadata.get(key), self.fields.get(key))
            for name in _names(value)
        ]
        return tuple(dict.fromkeys(names))

    @property
    def without_leave(self) -> "SkillManifest":
        """Return a copy without the fields that allow tools, as a server must not allow any."""

        def kept(fields: Mapping[str, Any]) -> Mapping[str, Any]:
            return {key: item for key, item in fields.items() if key not in _TOOL_REQUESTS}

        metadata, fields = kept(self.metadata), kept(self.fields)
        if "metadata" in fields:
            fields = {**fields, "metadata": metadata}
        return replace(self, allowed_tools=(), metadata=metadata, fields=fields)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", frozen(self.metadata))
        object.__setattr__(self, "fields", frozen(self.fields))


def read_skill(data: bytes, folder: str, path: str, limits: Limits) -> ReadResult[SkillManifest]:
    """Read the SKILL.md of a folder named `folder`; diagnostics show `path`."""
    simple = read_simple_skill(data, limits)
    if simple is None:
        return read_any_skill(data, folder, path, limits)
    yaml = YamlMap(simple.fields, simple.lines)
    if not simple.is_in_order(folder, limits, _IGNORED_FIELDS):
        return _judged(yaml, simple.body, folder, DiagnosticCollector(path), limits)
    diagnostics: tuple[Diagnostic, ...] = ()
    if not _KNOWN.issuperset(simple.fields):
        collector = DiagnosticCollector(path)
        _report_unknown(_Fields(yaml, collector))
        diagnostics = collector.diagnostics
    return ReadResult(SkillManifest.of_texts(simple.fields, simple.body), diagnostics)


def read_any_skill(
    data: bytes, folder: str, path: str, limits: Limits
) -> ReadResult[SkillManifest]:
    """Read a SKILL.md, simple or not."""
    split = split_front_matter(data, path, limits)
    if split.value is None:
        return ReadResult(None, split.diagnostics)
    return _read(split.value, folder, path, limits)


def read_listed_skill(
    frontmatter: Mapping[str, Any], folder: str, path: str, limits: Limits
) -> ReadResult[SkillManifest]:
    """Read the front matter that a server lists for a skill, as if it were in a SKILL.md.

    The body of the manifest is empty, because the instructions are still at the server.
    """
    # JSON is YAML, so the same reader is used; characters that the two treat differently are
    # escaped.
    text = json.dumps(frontmatter, ensure_ascii=False)
    text = _DOUBTFUL.sub(lambda letter: f"\\u{ord(letter[0]):04x}", text)
    reading = _read(FrontMatter(text, _REMOTE_BODY, 1), folder, path, limits)
    value = replace(reading.value, body="") if reading.value else None
    # The text was generated, so its line numbers are meaningless.
    diagnostics = (replace(item, where=Where(path)) for item in reading.diagnostics)
    return ReadResult(value, tuple(diagnostics))


def _read(front: FrontMatter, folder: str, path: str, limits: Limits) -> ReadResult[SkillManifest]:
    collector = DiagnosticCollector(path)
    reading = load_frontmatter(front, path, limits)
    collector.extend(reading.diagnostics)
    if not front.body.strip():
        message = "there is nothing below the front matter"
        collector.add("skill-body-empty", message, "Write the instructions there.")
    if reading.value is None:
        return ReadResult(None, collector.diagnostics)
    return _judged(reading.value, front.body, folder, collector, limits)


def _judged(
    yaml: YamlMap, body: str | bytes, folder: str, collector: DiagnosticCollector, limits: Limits
) -> ReadResult[SkillManifest]:
    fields = _Fields(yaml, collector)
    manifest = SkillManifest(
        name=_name(fields, folder),
        description=_description(fields, limits),
        license=fields.text("license"),
        compatibility=_compatibility(fields),
        allowed_tools=_allowed_tools(fields),
        metadata=_metadata(fields),
        fields=yaml.values,
        body=body,
    )
    _report_unknown(fields)
    return ReadResult(None if collector.fatal else manifest, collector.diagnostics)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The front matter, read key by key; invalid values are reported."""

    yaml: YamlMap
    collector: DiagnosticCollector

    def get(self, key: str) -> YamlValue:
        return self.yaml.values.get(key)

    def report(self, code: str, key: str, message: str, fix: str) -> None:
        self.collector.add(code, message, fix, self.yaml.lines.get((key,)))

    def text(self, key: str) -> str | None:
        value = self.get(key)
        if value is None or isinstance(value, str):
            return value
        message = f"'{key}' is {yaml_type_name(value)}, not text; it is left out"
        self.report("skill-field-type", key, message, "Write one line of text.")
        return None


def _name(fields: _Fields, folder: str) -> str:
    """Return the name, or the folder's name if none is given."""
    value = fields.get("name")
    if "name" not in fields.yaml.values:
        fix = f"Add 'name: {folder}'." if not skill_name_fault(folder) else "Add a name."
        fields.collector.add("skill-name-missing", "no name; the folder's name is used", fix)
        value = folder
    elif not isinstance(value, str):
        message = f"the name is {yaml_type_name(value)}, not text"
        fields.report("skill-name-unsafe", "name", message, _fix_of_name("", folder))
        return ""
    if value == folder and not skill_name_fault(value):
        return value  # Most names are good, and the other checks are slow.
    name = tidy_name(value)
    if fault := unsafe_name_fault(name):
        message = f"the name {quoted(name)} {fault}"
        fields.report("skill-name-unsafe", "name", message, _fix_of_name(name, folder))
    elif fault := skill_name_fault(value):
        message = f"the name {quoted(value)} {fault}"
        fields.report("skill-name-shape", "name", message, _fix_of_name(name, folder))
    # A file system may store the folder's name in another Unicode normal form.
    elif value != folder and name != composed(folder):
        message = f"the name {quoted(name)} is not the folder's name, {quoted(folder)}"
        fields.report("skill-name-folder", "name", message, "Make them equal.")
    return name


def _fix_of_name(name: str, folder: str) -> str:
    """Return how to correct a name: with a good folder, nothing needs to be renamed."""
    if not skill_name_fault(folder):
        return f"Write 'name: {folder}'."
    example = f", for example to '{slug}'" if (slug := valid_name_like(name)) else ""
    return f"Rename the skill and its folder{example}."


def valid_name_like(name: str) -> str:
    """Return a name that follows the rules of the format and resembles another, or `""`."""
    slug = _SEPARATORS.sub("-", name.lower()).strip("-")
    return "" if skill_name_fault(slug) else slug


def _description(fields: _Fields, limits: Limits) -> str:
    value = fields.get("description")
    if not isinstance(value, str) or not value.strip():
        is_given = isinstance(value, (list, dict))
        message = (
            f"the description is {yaml_type_name(value)}, not text"
            if is_given
            else "no description"
        )
        fix = "Write 'description:' and, in quotes, what the skill does and when to use it."
        fields.report("skill-description-missing", "description", message, fix)
        return ""
    text = value.strip()
    if len(text) > limits.description_accepted:
        message = (
            f"the description has {len(text):,} characters, at most "
            f"{limits.description_accepted:,} are accepted (limit description_accepted)"
        )
        fix = "Move the details into the body."
        fields.report("skill-description-too-long", "description", message, fix)
        return ""
    if len(text) > limits.description_shown:
        message = (
            f"the description has {len(text):,} characters, "
            f"{limits.description_shown:,} are shown (limit description_shown)"
        )
        fix = "Move the details into the body."
        fields.report("skill-description-long", "description", message, fix)
    _report_hidden(fields, "description", text)
    return text


def _compatibility(fields: _Fields) -> str | None:
    text = fields.text("compatibility")
    if "compatibility" in fields.yaml.values and fields.get("compatibility") in (None, ""):
        message = "'compatibility' is empty"
        fields.report("skill-compatibility-long", "compatibility", message, "Remove it.")
        return None
    if text and len(text) > COMPATIBILITY_LENGTH:
        message = f"'compatibility' has {len(text):,} characters, not 1-{COMPATIBILITY_LENGTH}"
        fields.report("skill-compatibility-long", "compatibility", message, "Shorten it.")
    _report_hidden(fields, "compatibility", text or "")
    return text


def _report_hidden(fields: _Fields, key: str, text: str) -> None:
    if has_hidden(text):
        message = f"'{key}' has invisible or control characters; a model never sees them"
        fields.report("skill-text-hidden", key, message, "Remove them.")


def _allowed_tools(fields: _Fields) -> tuple[str, ...]:
    tools = _requested_tools(fields)
    if unreadable := [tool for tool in tools if not TOOL_PATTERN.fullmatch(tool)]:
        names = " and ".join(map(quoted, unreadable))
        message = f"'allowed-tools' has {names}, which cannot be read: no call is allowed by it"
        fix = "Write 'Tool' or 'Tool(condition)', with both parentheses."
        fields.report("skill-field-type", "allowed-tools", message, fix)
    return tools


def _requested_tools(fields: _Fields) -> tuple[str, ...]:
    key, value = "allowed-tools", fields.get("allowed-tools")
    tools: list[str] = []
    if isinstance(value, str):
        tools, has_commas = _split_tools(value)
        if not has_commas:
            return tuple(tools)
        code, message = "skill-field-form", f"'{key}' is separated by commas"
    elif isinstance(value, list):
        tools = [item.strip() for item in value if isinstance(item, str) and item.strip()]
        code, message = "skill-field-form", f"'{key}' is a list, not text"
        if len(tools) < len(value):
            code = "skill-field-type"
            message += f"; {len(value) - len(tools)} items that are not text are left out"
    elif value is None:
        return ()
    else:
        code = "skill-field-type"
        message = f"'{key}' is {yaml_type_name(value)}, not text; it allows no tool"
    example = f"Write '{key}: {' '.join(tools or ['Read', 'Bash(git:*)'])}'."
    fields.report(code, key, message, example)
    return tuple(tools)


def _names(value: Any) -> list[str]:
    """Return the names in a list, or in a text separated by commas or blanks."""
    if isinstance(value, str):
        return value.replace(",", " ").split()
    items = value if isinstance(value, list | tuple) else ()
    return [name for item in items if isinstance(item, str) and (name := item.strip())]


def _split_tools(text: str) -> tuple[list[str], bool]:
    """Split at blanks and commas outside parentheses; return also whether there were commas."""
    if "(" not in text and "," not in text:
        return text.split(), False
    depth, has_commas, separated = 0, False, ""
    for letter in text:
        if letter == "(" and depth == 0:
            separated = separated.rstrip("\n")  # `Bash (git:*)` is one pattern
        depth = max(depth + (letter == "(") - (letter == ")"), 0)
        is_comma = depth == 0 and letter == ","
        has_commas = has_commas or is_comma
        separated += "\n" if is_comma or (depth == 0 and letter.isspace()) else letter
    return [part for part in separated.split("\n") if part], has_commas


def _metadata(fields: _Fields) -> Mapping[str, Any]:
    value = fields.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = f"'metadata' is {yaml_type_name(value)}, not a mapping; it is left out"
        fix = "Write 'key: value' lines, indented below 'metadata:'."
        fields.report("skill-field-type", "metadata", message, fix)
        return {}
    for key, item in value.items():
        if not isinstance(item, str):
            message = f"{quoted(key)} in 'metadata' is {yaml_type_name(item)}, not text; it is kept"
            line = fields.yaml.lines.get(("metadata", key))
            fields.collector.add("skill-field-form", message, "Write its value as text.", line)
    return value


def _is_switch(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in _TRUE | _FALSE)


def _report_unknown(fields: _Fields) -> None:
    values = fields.yaml.values
    if values.keys() <= _KNOWN:
        return
    unused = [key for key in KNOWN_FIELDS if key not in values]
    for key in values:
        if key not in KNOWN_FIELDS:
            if key in _FOREIGN_FIELDS:
                use = "uses it, too" if key in _EXTRA_FIELDS else "only keeps it"
                message = f"{quoted(key)} is a field of other clients; Satchel {use}"
                fields.report("skill-field-foreign", key, message, "")
                if key == "disable-model-invocation" and not _is_switch(values[key]):
                    problem = f"'{key}' is neither true nor false; no model may load the skill"
                    fields.report("skill-field-type", key, problem, "Write true or false.")
                continue
            near = near_misses(key, unused, most=1)
            fix = f"Write '{near[0]}:'." if near else "Move it below 'metadata:'."
            message = f"{quoted(key)} is not a field of skills"
            if key in _EXTRA_FIELDS:
                message += "; Satchel uses it nevertheless"
                fix = "Keep it if your other clients know it."
            fields.report("skill-field-unknown", key, message, fix)
