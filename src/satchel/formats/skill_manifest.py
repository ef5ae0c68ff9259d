"""SKILL.md, the open Agent Skills format, read leniently and judged completely."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from satchel.diagnostics import Where
from satchel.formats.front_matter import FrontMatter, load_frontmatter, split_front_matter
from satchel.formats.frozen_values import frozen
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.formats.yaml_builder import YamlValue
from satchel.formats.yaml_reader import YamlMap, yaml_type_name
from satchel.names import composed, near_misses, skill_name_fault, tidy_name, unsafe_name_fault
from satchel.settings import Limits
from satchel.text import has_hidden

COMPATIBILITY_LENGTH = 500
"""Longest compatibility note of the Agent Skills format, in characters."""

KNOWN_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""The fields of the Agent Skills format."""

_FALSE = frozenset({"false", "no", "off", "0", ""})
_DOUBTFUL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_ELSEWHERE = "The instructions are at the server."
_SWITCHING_FIELDS = ("groups", "include_tools", "adk_additional_tools")
_ASKING_FIELDS = frozenset({"allowed-tools", "hooks", *_SWITCHING_FIELDS})
_HEEDED_FIELDS = ("disable-model-invocation", *_SWITCHING_FIELDS)
"""Fields that are no part of the format, but that we go by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillManifest:
    """What a SKILL.md says; `fields` holds its whole frontmatter as read, unknown keys too.

    Nobody can change it: its mappings are read only and its lists are tuples, at every depth.
    """

    name: str
    description: str
    license: str | None
    compatibility: str | None
    allowed_tools: tuple[str, ...]
    metadata: Mapping[str, Any]
    fields: Mapping[str, Any]
    body: str

    @property
    def is_for_model(self) -> bool:
        """Tell whether a model may see and load it; `disable-model-invocation: true` forbids."""
        value = self.fields.get("disable-model-invocation")
        # Whatever else stands there, somebody wanted to forbid.
        return value is None or (isinstance(value, str) and value.strip().lower() in _FALSE)

    @property
    def groups(self) -> tuple[str, ...]:
        """Return what loading it switches on: names of groups, or of tools in them.

        Other programs call the same `include_tools` and `adk_additional_tools`.
        """
        found = [
            word
            for key in _SWITCHING_FIELDS
            for given in (self.metadata.get(key), self.fields.get(key))
            for word in _words(given)
        ]
        return tuple(dict.fromkeys(found))

    @property
    def without_leave(self) -> "SkillManifest":
        """Return it without what asks for tools: a server may not give leave on this machine."""

        def kept(fields: Mapping[str, Any]) -> Mapping[str, Any]:
            return {key: item for key, item in fields.items() if key not in _ASKING_FIELDS}

        metadata, fields = kept(self.metadata), kept(self.fields)
        if "metadata" in fields:
            fields = {**fields, "metadata": metadata}
        return replace(self, allowed_tools=(), metadata=metadata, fields=fields)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", frozen(self.metadata))
        object.__setattr__(self, "fields", frozen(self.fields))


def read_skill(data: bytes, folder: str, path: str, limits: Limits) -> ReadResult[SkillManifest]:
    """Read the SKILL.md of a folder named `folder`; `path` is what diagnostics print."""
    split = split_front_matter(data, path, limits)
    if split.value is None:
        return ReadResult(None, split.diagnostics)
    return _read(split.value, folder, path, limits)


def read_listed_skill(
    frontmatter: Mapping[str, Any], folder: str, path: str, limits: Limits
) -> ReadResult[SkillManifest]:
    """Read what a server says that the frontmatter of a SKILL.md is, as if it stood in one.

    The instructions are still at the server, so the manifest is without.
    """
    # JSON is YAML, so the same reader judges it; what both write differently is escaped.
    text = json.dumps(frontmatter, ensure_ascii=False)
    text = _DOUBTFUL.sub(lambda letter: f"\\u{ord(letter[0]):04x}", text)
    reading = _read(FrontMatter(text, _ELSEWHERE, 1), folder, path, limits)
    value = replace(reading.value, body="") if reading.value else None
    # Lines of a text that nobody wrote say nothing.
    told = (replace(item, where=Where(path)) for item in reading.diagnostics)
    return ReadResult(value, tuple(told))


def _read(front: FrontMatter, folder: str, path: str, limits: Limits) -> ReadResult[SkillManifest]:
    problems = DiagnosticCollector(path)
    reading = load_frontmatter(front, path, limits)
    problems.extend(reading.diagnostics)
    body = _body(front.body, problems)
    if reading.value is None:
        return ReadResult(None, problems.found)
    fields = _Fields(reading.value, problems)
    manifest = SkillManifest(
        name=_name(fields, folder),
        description=_description(fields, limits),
        license=fields.text("license"),
        compatibility=_compatibility(fields),
        allowed_tools=_allowed_tools(fields),
        metadata=_metadata(fields),
        fields=reading.value.values,
        body=body,
    )
    _report_unknown(fields)
    return ReadResult(None if problems.fatal else manifest, problems.found)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The frontmatter, and where to note what does not fit."""

    yaml: YamlMap
    problems: DiagnosticCollector

    def get(self, key: str) -> YamlValue:
        return self.yaml.values.get(key)

    def note(self, code: str, key: str, message: str, fix: str) -> None:
        """Note a problem on the line of a top-level key."""
        self.problems.add(code, message, fix, self.yaml.lines.get((key,)))

    def text(self, key: str) -> str | None:
        """Return an optional text, or None with a warning if the value is no text."""
        value = self.get(key)
        if value is None or isinstance(value, str):
            return value
        message = f"'{key}' is {yaml_type_name(value)}, not text; it is left out"
        self.note("skill-field-type", key, message, "Write one line of text.")
        return None


def _body(text: str, problems: DiagnosticCollector) -> str:
    if not text.strip():
        message = "there is nothing below the frontmatter"
        problems.add("skill-body-empty", message, "Write the instructions there.")
    return text


def _name(fields: _Fields, folder: str) -> str:
    """Return the name, or the folder's name where none is given."""
    value = fields.get("name")
    if "name" not in fields.yaml.values:
        fix = f"Add 'name: {folder}'." if not skill_name_fault(folder) else "Add a name."
        fields.problems.add("skill-name-missing", "no name; the folder's name serves", fix)
        value = folder
    elif not isinstance(value, str):
        message = f"the name is {yaml_type_name(value)}, not text"
        fields.note("skill-name-unsafe", "name", message, "Write the folder's name.")
        return ""
    name = tidy_name(value)
    if fault := unsafe_name_fault(name):
        message = f"the name {quoted(name)} {fault}"
        fields.note("skill-name-unsafe", "name", message, "Write the folder's name.")
    elif fault := skill_name_fault(value):
        message = f"the name {quoted(value)} {fault}"
        fields.note("skill-name-shape", "name", message, "Rename skill and folder alike.")
    # A file system may keep the folder's letters in another normal form than the author's.
    if value != folder and name != composed(folder):
        message = f"the name {quoted(name)} is not the folder's name, {quoted(folder)}"
        fields.note("skill-name-folder", "name", message, "Make them equal.")
    return name


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
        fields.note("skill-description-missing", "description", message, fix)
        return ""
    text = value.strip()
    if len(text) > limits.description_accepted:
        message = (
            f"the description has {len(text):,} characters, at most "
            f"{limits.description_accepted:,} are accepted (limit description_accepted)"
        )
        fix = "Move the details into the body."
        fields.note("skill-description-too-long", "description", message, fix)
        return ""
    if len(text) > limits.description_shown:
        message = (
            f"the description has {len(text):,} characters, "
            f"{limits.description_shown:,} are shown (limit description_shown)"
        )
        fix = "Move the details into the body."
        fields.note("skill-description-long", "description", message, fix)
    _report_hidden(fields, "description", text)
    return text


def _compatibility(fields: _Fields) -> str | None:
    text = fields.text("compatibility")
    if "compatibility" in fields.yaml.values and fields.get("compatibility") in (None, ""):
        message = "'compatibility' is empty"
        fields.note("skill-compatibility-long", "compatibility", message, "Remove it.")
        return None
    if text and len(text) > COMPATIBILITY_LENGTH:
        message = f"'compatibility' has {len(text):,} characters, not 1-{COMPATIBILITY_LENGTH}"
        fields.note("skill-compatibility-long", "compatibility", message, "Shorten it.")
    _report_hidden(fields, "compatibility", text or "")
    return text


def _report_hidden(fields: _Fields, key: str, text: str) -> None:
    if has_hidden(text):
        message = f"'{key}' holds invisible or control characters; they are never shown to a model"
        fields.note("skill-text-hidden", key, message, "Remove them.")


def _allowed_tools(fields: _Fields) -> tuple[str, ...]:
    key, value = "allowed-tools", fields.get("allowed-tools")
    found: list[str] = []
    if isinstance(value, str):
        found, commas = _split_tools(value)
        if not commas:
            return tuple(found)
        message = f"'{key}' is separated by commas"
    elif isinstance(value, list):
        found = [item.strip() for item in value if isinstance(item, str) and item.strip()]
        message = f"'{key}' is a list, not text"
        if len(found) < len(value):
            message += f"; {len(value) - len(found)} items that are not text are left out"
    elif value is None:
        return ()
    else:
        message = f"'{key}' is {yaml_type_name(value)}, not text; it is left out"
    example = f"Write '{key}: {' '.join(found or ['Read', 'Bash(git:*)'])}'."
    fields.note("skill-field-type", key, message, example)
    return tuple(found)


def _words(given: Any) -> list[str]:
    """Return the words of a list, or of a text with commas or blanks between them."""
    if isinstance(given, str):
        return given.replace(",", " ").split()
    items = given if isinstance(given, list | tuple) else ()
    return [word for item in items if isinstance(item, str) and (word := item.strip())]


def _split_tools(text: str) -> tuple[list[str], bool]:
    """Split at blanks and commas outside parentheses; tell whether there were such commas."""
    depth, commas, marked = 0, False, ""
    for letter in text:
        depth = max(depth + (letter == "(") - (letter == ")"), 0)
        comma = depth == 0 and letter == ","
        commas = commas or comma
        marked += "\n" if comma or (depth == 0 and letter.isspace()) else letter
    return [part for part in marked.split("\n") if part], commas


def _metadata(fields: _Fields) -> Mapping[str, Any]:
    value = fields.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = f"'metadata' is {yaml_type_name(value)}, not a mapping; it is left out"
        fix = "Write 'key: value' lines, indented below 'metadata:'."
        fields.note("skill-field-type", "metadata", message, fix)
        return {}
    for key, item in value.items():
        if not isinstance(item, str):
            message = f"{quoted(key)} in 'metadata' is {yaml_type_name(item)}, not text; it is kept"
            line = fields.yaml.lines.get(("metadata", key))
            fields.problems.add("skill-field-type", message, "Write its value as text.", line)
    return value


def _report_unknown(fields: _Fields) -> None:
    given = fields.yaml.values
    candidates = [key for key in KNOWN_FIELDS if key not in given]
    for key in given:
        if key not in KNOWN_FIELDS:
            meant = near_misses(key, candidates, most=1)
            fix = f"Write '{meant[0]}:'." if meant else "Move it below 'metadata:'."
            message = f"{quoted(key)} is not a field of skills"
            if key in _HEEDED_FIELDS:
                message += "; Satchel goes by it all the same"
                fix = "Leave it if the clients that you care for know it."
            fields.note("skill-field-unknown", key, message, fix)
