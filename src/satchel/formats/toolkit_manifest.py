"""Read toolkit.yaml, the manifest of a plugin folder."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import PurePosixPath

from satchel.formats.code_references import (
    DEFAULT_TOOLS,
    ContractReference,
    ToolReference,
    module_of,
    read_code_references,
)
from satchel.formats.config_fields import ConfigField, read_fields
from satchel.formats.manifest_block import ManifestBlock
from satchel.formats.read_result import DiagnosticCollector, ReadResult, nearest_line, quoted
from satchel.formats.utf8_text import decode
from satchel.formats.yaml_builder import KeyPath
from satchel.formats.yaml_reader import yaml_type_name
from satchel.formats.yaml_repair import read_repairing
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses, plugin_name_fault
from satchel.settings import Limits
from satchel.text import has_hidden

SKILLS_FOLDER = "skills"
"""The folder with the skills if the manifest names none."""

_TEXTS = ("version", "description", "author", "license", "homepage", "notes", "runner")
_LISTS = ("keywords", "compatible-with")
_PARTS = (*_LISTS, "active", "groups", "tools", "skills", "config", "setup", "contract")
_PROCESS = ("isolation", "dependencies")
_FIELDS = ("name", *_TEXTS, *_PARTS, *_PROCESS)
_GROUP_FIELDS = ("name", "description", "notes", "active", "tools", "skills", "requires", "runner")
# Reserved for later versions; a manifest may have them already.
_LATER_FIELDS = frozenset({"requires"})
ISOLATIONS = ("none", "process")
DIGEST = re.compile(r"[0-9a-f]{64}")
_FILE_NAME = re.compile(r"[^\n]+\.(?:md|txt)")
# The fields that an open plugin has in its plugin.json.
_CORE_FIELDS = frozenset({"name", *_TEXTS, "keywords"}) - {"notes", "runner"}
# A Python package is named like the plugin, but with underscores.
_MODULE = re.compile(r"[._-]+")
_STRUCTURED = (_LATER_FIELDS | {*_FIELDS}) - {"name", *_TEXTS}
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:===|~=|==|!=|<=|>=|<|>)\s*+[A-Za-z0-9._*+!-]+"
_VERSIONS = rf"{_VERSION}(?:\s*+,\s*+{_VERSION})*"
_MARKER = r";\s*+[^\s;][^\n;]*"
REQUIREMENT = re.compile(
    rf"{_WORD}\s*+(?:\[\s*+{_WORD}(?:\s*+,\s*+{_WORD})*\s*+\]\s*+)?"
    rf"(?:(?:\(\s*+{_VERSIONS}\s*+\)|{_VERSIONS})?\s*+(?:{_MARKER})?"
    rf"|@\s*+https://\S+(?:\s++{_MARKER})?)"
)
"""A requirement of PEP 508; installer options do not match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupManifest:
    """One tool group of a plugin; `tools` and `skills` are the names of its members.

    `requires` are the configuration keys that it needs.
    """

    name: str
    description: str
    notes: str
    active: bool
    tools: tuple[str, ...]
    skills: tuple[str, ...]
    requires: tuple[str, ...]
    runner: str = ""
    """The name of the host's runner that runs its tools."""
    is_off: bool = False
    """Whether it says `active: false`."""
    at: KeyPath = field(default=(), compare=False)
    """Its position in the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginManifest:
    """A toolkit.yaml; `tools` is a module and `skills` a folder inside the plugin's folder.

    `notes`, also those of a group, may be the name of a file; see `notes_files`. `tools` is `""`
    if the plugin serves none.
    """

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    license: str = ""
    homepage: str = ""
    keywords: tuple[str, ...] = ()
    notes: str = ""
    runner: str = ""
    """The name of the host's runner that runs its tools, if neither they nor their groups say."""
    compatible_with: tuple[str, ...] = ()
    """The digests of other versions whose calls this version may answer on a worker."""
    active: bool = False
    is_off: bool = False
    groups: tuple[GroupManifest, ...] = ()
    tools: str = DEFAULT_TOOLS
    skills: str = SKILLS_FOLDER
    listed_tools: tuple[ToolReference, ...] = ()
    """The tools that the manifest lists, if it does; they may be in other modules."""
    contracts: tuple[ContractReference, ...] = ()
    """The contracts that it names; hooks may add others."""
    config: tuple[ConfigField, ...] = ()
    isolation: str = "none"
    """Where its code runs: `none` is the host's process, `process` is its own."""
    dependencies: tuple[str, ...] = ()
    """The requirements (PEP 508) that are installed for that process."""
    setup: str = ""
    """The module that runs when the plugin is installed, if the manifest names one."""
    lines: Mapping[KeyPath, int] = field(default_factory=dict, compare=False, repr=False)
    """The line of each key; items of lists have their index as key."""

    def line(self, *at: str) -> int | None:
        """Return the line of a key, or of the nearest key around it; `None` if there is none."""
        return nearest_line(self.lines, at)

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the modules with the tools, without duplicates."""
        return tuple(dict.fromkeys(tool.module for tool in self.listed_tools)) or (self.tools,)

    @property
    def contract_modules(self) -> tuple[str, ...]:
        """Return the modules with the contracts that it names, without duplicates."""
        return tuple(dict.fromkeys(contract.module for contract in self.contracts))

    @property
    def notes_files(self) -> Mapping[str, int | None]:
        """Return the notes that may be names of files, with their lines."""
        texts = {self.notes: self.line("notes")}
        for group in self.groups:
            texts.setdefault(group.notes, self.line(*group.at, "notes"))
        return {text: line for text, line in texts.items() if _FILE_NAME.fullmatch(text)}

    def with_notes(self, files: Mapping[str, str]) -> "PluginManifest":
        """Return a copy with the names of these files replaced by their texts."""
        groups = (
            replace(group, notes=files.get(group.notes, group.notes)) for group in self.groups
        )
        return replace(self, notes=files.get(self.notes, self.notes), groups=tuple(groups))


def read_plugin(
    data: bytes,
    folder: str,
    path: str,
    limits: Limits,
    *,
    extends: str = "",
    entry_point: str = "",
) -> ReadResult[PluginManifest]:
    """Read the toolkit.yaml of a folder named `folder`; diagnostics show `path`.

    If it `extends` the open plugin of that name, the fields of plugin.json are not read here. An
    installed package has the name of its `entry_point`.
    """
    decoded = decode(data, path, "plugin-unreadable")
    if decoded.value is None:
        return ReadResult(None, decoded.diagnostics)
    reading = read_repairing(decoded.value, path, limits, _STRUCTURED)
    if reading.value is None:
        return ReadResult(None, reading.diagnostics)
    collector = DiagnosticCollector(path)
    collector.extend(reading.diagnostics)
    top = ManifestBlock(
        values=dict(reading.value.values), at=(), yaml=reading.value, collector=collector
    )
    references = read_code_references(top)
    isolation = top.text("isolation", default="none")
    if isolation not in ISOLATIONS:
        message = f"'isolation' is {quoted(isolation)}"
        top.report_invalid("isolation", message, f"Write one of {', '.join(ISOLATIONS)}.")
    manifest = PluginManifest(
        name=extends or _name(top, folder, entry_point),
        **{key: top.text(key) for key in _TEXTS},
        keywords=top.names("keywords"),
        compatible_with=_compatible_with(top),
        active=top.switch("active", default=False),
        is_off=top.is_off("active"),
        groups=_groups(top),
        tools=references.module,
        listed_tools=references.tools,
        contracts=references.contracts,
        skills=_skills(top),
        config=read_fields(top),
        isolation=isolation,
        dependencies=_dependencies(top, isolation),
        setup=module_of(top, "setup", "", "Write a module's name, such as 'setup'."),
        lines=reading.value.lines,
    )
    _report_undeclared(manifest, top)
    fields = tuple(key for key in _FIELDS if not extends or key not in (*_CORE_FIELDS, "skills"))
    top.report_unknown(fields, _unread(extends=bool(extends)))
    return ReadResult(None if collector.fatal else manifest, collector.diagnostics, manifest)


def _unread(*, extends: bool) -> Mapping[str, tuple[str, str]]:
    """Return the fields that are not read, each with the reason and a fix."""
    later = ("is not read by this version", "Keep it, or remove it.")
    core = ("is not read here: plugin.json has it", "Remove it, or move it there.")
    skills = ("is not read here: an open plugin has them in skills/", "Remove it.")
    special = dict.fromkeys(_LATER_FIELDS, later)
    return special | dict.fromkeys(_CORE_FIELDS, core) | {"skills": skills} if extends else special


def _name(top: ManifestBlock, folder: str, entry_point: str) -> str:
    name = top.text("name")
    if entry_point:
        if name not in {"", entry_point}:
            used = f"the entry point's name, {quoted(entry_point)}, is used"
            message = f"the name {quoted(name)} is ignored; {used}"
            top.report("plugin-name-folder", "name", message, "Make them equal, or remove 'name:'.")
        return entry_point
    fault = plugin_name_fault(name)
    if not name and not isinstance(top.values.get("name"), (list, dict)):
        top.report("plugin-field-missing", "name", "no name is given", "Add 'name:' and a name.")
    elif name and fault:
        message = f"the name {quoted(name)} {fault}"
        top.report("plugin-name-shape", "name", message, "Choose another name.")
    elif name and folder not in {name, _MODULE.sub("_", name.lower())}:
        message = f"the name {quoted(name)} is not the folder's name, {quoted(folder)}"
        top.report("plugin-name-folder", "name", message, "Make them equal if you can.")
    return name


def _groups(top: ManifestBlock) -> tuple[GroupManifest, ...]:
    groups = [_group(name, block) for name, block in top.blocks("groups", "group")]
    top.report_doubles("groups", "group", (group.name for group in groups), "Make them one.")
    return tuple(groups)


def _group(key: str, block: ManifestBlock) -> GroupManifest:
    name = block.name(key, "group")
    if name and (fault := plugin_name_fault(name)):
        block.report_invalid(
            "name", f"the group's name {quoted(name)} {fault}", "Choose another name."
        )
    block.report_unknown(_GROUP_FIELDS)
    return GroupManifest(
        name=name,
        description=block.text("description"),
        notes=block.text("notes"),
        active=block.switch("active", default=False),
        is_off=block.is_off("active"),
        tools=block.names("tools"),
        skills=block.names("skills"),
        requires=block.names("requires"),
        runner=block.text("runner"),
        at=block.at,
    )


def _report_undeclared(manifest: PluginManifest, top: ManifestBlock) -> None:
    """Report keys that groups require and `config` does not declare.

    Without `config`, the tools may declare the keys.
    """
    declared = {field.key: field.name for field in manifest.config}
    for group in manifest.groups if declared else ():
        for key in group.requires:
            if key.lower() not in declared:
                near = near_misses(key, declared.values(), most=1)
                group_name, name = quoted(group.name), quoted(key)
                message = f"group {group_name} requires {name}, which is not a field of 'config'"
                fix = f"Write '{near[0]}'." if near else "Declare it, or remove it."
                line = top.yaml.lines.get((*group.at, "requires"))
                top.collector.add("plugin-field-unknown", message, fix, line)


def _dependencies(top: ManifestBlock, isolation: str) -> tuple[str, ...]:
    key, entries = "dependencies", top.values.get("dependencies")
    if entries is None:
        return ()
    if not isinstance(entries, list):
        top.report_invalid(
            key, f"'{key}' is {yaml_type_name(entries)}, not a list", "Write '[one, two]'."
        )
        return ()
    items = [item.strip() if isinstance(item, str) else "" for item in entries]
    for number, (item, text) in enumerate(zip(entries, items, strict=True)):
        if not REQUIREMENT.fullmatch(text):
            shown = quoted(text) if isinstance(item, str) else yaml_type_name(item)
            message = f"{shown} is not a requirement"
            fix = "Write a name and versions, such as 'httpx>=0.28'."
            line = top.yaml.lines.get((key, str(number)))
            top.collector.add("plugin-field-type", message, fix, line)
    if isolation != "process":
        message = f"'{key}' have no effect without 'isolation: process'"
        top.report("plugin-field-unknown", key, message, "Add it, or remove them.")
    return tuple(items)


def _compatible_with(top: ManifestBlock) -> tuple[str, ...]:
    key = "compatible-with"
    digests = top.names(key)
    for text in digests:
        if not DIGEST.fullmatch(text):
            message = f"{quoted(text)} is not the digest of a version"
            top.report_invalid(key, message, "Copy the one that 'satchel show PLUGIN' prints.")
    return digests


def _skills(top: ManifestBlock) -> str:
    folder = top.text("skills", default=SKILLS_FOLDER)
    path = PurePosixPath(folder)
    leads_out = path.is_absolute() or ".." in path.parts or re.search(r"[\\:]", folder)
    if not folder or leads_out or has_hidden(folder):
        message = f"'skills' is {quoted(folder)}, which is not a folder inside this one"
        top.report_invalid("skills", message, "Write a folder's name, such as 'skills'.")
        return SKILLS_FOLDER
    return str(path)
