"""toolkit.yaml: what a plugin folder says about itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from satchel.formats.code_references import (
    DEFAULT_TOOLS,
    ContractReference,
    ToolReference,
    is_dotted,
    read_code_references,
)
from satchel.formats.config_fields import ConfigField, read_fields
from satchel.formats.manifest_block import ManifestBlock
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.formats.utf8_text import decode
from satchel.formats.yaml_builder import KeyPath
from satchel.formats.yaml_reader import yaml_type_name
from satchel.formats.yaml_repair import read_repairing
from satchel.names import near_misses, plugin_name_fault
from satchel.settings import Limits
from satchel.text import has_hidden

SKILLS_FOLDER = "skills"
"""The folder that holds the skills where the manifest names none."""

_TEXTS = ("version", "description", "author", "license", "homepage", "notes")
_PARTS = ("keywords", "active", "groups", "tools", "skills", "config", "setup", "contract")
_PROCESS = ("isolation", "dependencies")
_FIELDS = ("name", *_TEXTS, *_PARTS, *_PROCESS)
_GROUP_FIELDS = ("name", "description", "notes", "active", "tools", "skills", "requires")
# Names that later versions will read; a manifest may carry them already.
_LATER_FIELDS = frozenset({"requires"})
_ISOLATIONS = ("none", "process")
_FILE_NAME = re.compile(r"[^\n]+\.(?:md|txt)")
# What an open plugin tells in its plugin.json is not its extension's to say.
_CORE_FIELDS = frozenset({"name", *_TEXTS, "keywords"}) - {"notes"}
# The folder of a Python package bears its name in that form.
_MODULE = re.compile(r"[._-]+")
_STRUCTURED = (_LATER_FIELDS | {*_FIELDS}) - {"name", *_TEXTS}
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:===|~=|==|!=|<=|>=|<|>)\s*+[A-Za-z0-9._*+!-]+"
_VERSIONS = rf"{_VERSION}(?:\s*+,\s*+{_VERSION})*"
_MARKER = r";\s*+[^\n;]+"
_REQUIREMENT = re.compile(
    rf"{_WORD}\s*+(?:\[\s*+{_WORD}(?:\s*+,\s*+{_WORD})*\s*+\]\s*+)?"
    rf"(?:(?:\(\s*+{_VERSIONS}\s*+\)|{_VERSIONS})?\s*+(?:{_MARKER})?"
    rf"|@\s*+https://\S+(?:\s++{_MARKER})?)"
)
"""What PEP 508 writes, and no option of an installer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupManifest:
    """One tool group of a plugin; `tools` and `skills` name what belongs to it.

    `requires` are keys of the configuration without which it cannot be used.
    """

    name: str
    description: str
    notes: str
    active: bool
    tools: tuple[str, ...]
    skills: tuple[str, ...]
    requires: tuple[str, ...]
    at: KeyPath = field(default=(), compare=False)
    """Where it stands in the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginManifest:
    """What a toolkit.yaml says; `tools` is a module and `skills` a folder inside the plugin's.

    `notes`, also those of a group, may be the name of a file; see `notes_files`. No module holds
    the tools of a plugin that wants none to be served.
    """

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    license: str = ""
    homepage: str = ""
    keywords: tuple[str, ...] = ()
    notes: str = ""
    active: bool = False
    groups: tuple[GroupManifest, ...] = ()
    tools: str = DEFAULT_TOOLS
    skills: str = SKILLS_FOLDER
    chosen: tuple[ToolReference, ...] = ()
    """The tools that are served, if the manifest chooses some; they may be in other modules."""
    contracts: tuple[ContractReference, ...] = ()
    """The contracts that it names; hooks may bring others."""
    config: tuple[ConfigField, ...] = ()
    isolation: str = "none"
    """Where its code runs: in the host's process, or in a `process` of its own."""
    dependencies: tuple[str, ...] = ()
    """What that process has installed for it: requirements as PEP 508 writes them."""
    setup: str = ""
    """The module that is run when the plugin is installed, if the manifest names one."""
    lines: Mapping[KeyPath, int] = field(default_factory=dict, compare=False, repr=False)
    """The line of each key; an item of a list has its number as key."""

    def line(self, *at: str) -> int | None:
        """Return the line of a key, or of the nearest one around it; `None` if it is not given."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at)

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the modules that hold the tools, each once."""
        return tuple(dict.fromkeys(tool.module for tool in self.chosen)) or (self.tools,)

    @property
    def contract_modules(self) -> tuple[str, ...]:
        """Return the modules that hold the contracts that it names, each once."""
        return tuple(dict.fromkeys(contract.module for contract in self.contracts))

    @property
    def notes_files(self) -> Mapping[str, int | None]:
        """Return the texts among the notes that may be names of files here, with their lines."""
        texts = {self.notes: self.line("notes")}
        for group in self.groups:
            texts.setdefault(group.notes, self.line(*group.at, "notes"))
        return {text: line for text, line in texts.items() if _FILE_NAME.fullmatch(text)}

    def with_notes(self, files: Mapping[str, str]) -> "PluginManifest":
        """Return a manifest whose notes are the texts of these files where they name them."""
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
    """Read the toolkit.yaml of a folder named `folder`; `path` is what diagnostics print.

    One that `extends` the open plugin of that name has no say in what its plugin.json tells. That
    of an installed package is named by its `entry_point`.
    """
    decoded = decode(data, path, "plugin-unreadable")
    if decoded.value is None:
        return ReadResult(None, decoded.diagnostics)
    reading = read_repairing(decoded.value, path, limits, _STRUCTURED)
    if reading.value is None:
        return ReadResult(None, reading.diagnostics)
    problems = DiagnosticCollector(path)
    problems.extend(reading.diagnostics)
    top = ManifestBlock(
        values=dict(reading.value.values), at=(), yaml=reading.value, problems=problems
    )
    choice = read_code_references(top)
    isolation = _isolation(top)
    manifest = PluginManifest(
        name=extends or _name(top, folder, entry_point),
        **{key: top.text(key) for key in _TEXTS},
        keywords=top.names("keywords"),
        active=top.switch("active", default=False),
        groups=_groups(top),
        tools=choice.module,
        chosen=choice.tools,
        contracts=choice.contracts,
        skills=_skills(top),
        config=read_fields(top),
        isolation=isolation,
        dependencies=_dependencies(top, isolation),
        setup=_setup(top),
        lines=reading.value.lines,
    )
    _report_undeclared(manifest, top)
    known = tuple(key for key in _FIELDS if not extends or key not in (*_CORE_FIELDS, "skills"))
    top.report_unknown(known, _unread(extends=bool(extends)))
    return ReadResult(None if problems.fatal else manifest, problems.found, manifest)


def _unread(*, extends: bool) -> Mapping[str, tuple[str, str]]:
    """Return why some fields are not read, with what to do about it."""
    later = ("is not read by this version", "Leave it, or remove it.")
    core = ("is not read here: plugin.json tells it", "Remove it, or move it there.")
    skills = ("is not read here: an open plugin has them in skills/", "Remove it.")
    special = dict.fromkeys(_LATER_FIELDS, later)
    return special | dict.fromkeys(_CORE_FIELDS, core) | {"skills": skills} if extends else special


def _name(top: ManifestBlock, folder: str, entry_point: str) -> str:
    name = top.text("name")
    if entry_point:
        if name not in {"", entry_point}:
            counts = quoted(entry_point)
            message = f"the name {quoted(name)} is not the entry point's, {counts}, which counts"
            top.note("plugin-name-folder", "name", message, "Make them equal, or leave it out.")
        return entry_point
    fault = plugin_name_fault(name)
    if not name and not isinstance(top.values.get("name"), (list, dict)):
        top.note("plugin-field-missing", "name", "no name is given", "Add 'name:' and a name.")
    elif name and fault:
        message = f"the name {quoted(name)} {fault}"
        top.note("plugin-name-shape", "name", message, "Choose another name.")
    elif name and folder not in {name, _MODULE.sub("_", name.lower())}:
        message = f"the name {quoted(name)} is not the folder's name, {quoted(folder)}"
        top.note("plugin-name-folder", "name", message, "Make them equal if you can.")
    return name


def _groups(top: ManifestBlock) -> tuple[GroupManifest, ...]:
    """Read the groups, given as a mapping by name or as a list whose items have a name."""
    return _distinct([_group(name, block) for name, block in top.blocks("groups", "group")], top)


def _group(key: str, block: ManifestBlock) -> GroupManifest:
    name = block.name(key, "group")
    if name and (fault := plugin_name_fault(name)):
        block.misfit("name", f"the group's name {quoted(name)} {fault}", "Choose another name.")
    block.report_unknown(_GROUP_FIELDS)
    return GroupManifest(
        name=name,
        description=block.text("description"),
        notes=block.text("notes"),
        active=block.switch("active", default=False),
        tools=block.names("tools"),
        skills=block.names("skills"),
        requires=block.names("requires"),
        at=block.at,
    )


def _distinct(groups: list[GroupManifest], top: ManifestBlock) -> tuple[GroupManifest, ...]:
    names = [group.name for group in groups]
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        top.misfit("groups", f"two groups are named {quoted(name)}", "Make them one.")
    return tuple(groups)


def _report_undeclared(manifest: PluginManifest, top: ManifestBlock) -> None:
    """Note what groups require and `config` lacks; without one, tools may say what they take."""
    declared = {field.key: field.name for field in manifest.config}
    for group in manifest.groups if declared else ():
        for key in group.requires:
            if key.lower() not in declared:
                meant = near_misses(key, declared.values(), most=1)
                message = f"group {quoted(group.name)} requires {quoted(key)}, no field of 'config'"
                fix = f"Write '{meant[0]}'." if meant else "Declare it, or remove it."
                line = top.yaml.lines.get((*group.at, "requires"))
                top.problems.add("plugin-field-unknown", message, fix, line)


def _dependencies(top: ManifestBlock, isolation: str) -> tuple[str, ...]:
    """Read what the process of the plugin has installed for it."""
    key, given = "dependencies", top.values.get("dependencies")
    if given is None:
        return ()
    if not isinstance(given, list):
        top.misfit(key, f"'{key}' is {yaml_type_name(given)}, not a list", "Write '[one, two]'.")
        return ()
    items = [item.strip() if isinstance(item, str) else "" for item in given]
    for number, (item, text) in enumerate(zip(given, items, strict=True)):
        if not _REQUIREMENT.fullmatch(text):
            shown = quoted(text) if isinstance(item, str) else yaml_type_name(item)
            message = f"{shown} is no requirement"
            fix = "Write a name and versions, such as 'httpx>=0.28'."
            line = top.yaml.lines.get((key, str(number)))
            top.problems.add("plugin-field-type", message, fix, line)
    if isolation != "process":
        message = f"'{key}' mean nothing without 'isolation: process'"
        top.note("plugin-field-unknown", key, message, "Add that, or remove them.")
    return tuple(items)


def _isolation(top: ManifestBlock) -> str:
    word = top.text("isolation", default="none")
    if word not in _ISOLATIONS:
        message = f"'isolation' is {quoted(word)}"
        top.misfit("isolation", message, f"Write one of {', '.join(_ISOLATIONS)}.")
    return word


def _setup(top: ManifestBlock) -> str:
    module = top.text("setup").removesuffix(".py")
    if not module or is_dotted(module):
        return module
    message = f"'setup' is {quoted(module)}, which is no module of this folder"
    top.misfit("setup", message, "Write a module's name, such as 'setup'.")
    return ""


def _skills(top: ManifestBlock) -> str:
    folder = top.text("skills", default=SKILLS_FOLDER)
    path = PurePosixPath(folder)
    leads_out = path.is_absolute() or ".." in path.parts or re.search(r"[\\:]", folder)
    if not folder or leads_out or has_hidden(folder):
        message = f"'skills' is {quoted(folder)}, which is no folder inside this one"
        top.misfit("skills", message, "Write a folder's name, such as 'skills'.")
        return SKILLS_FOLDER
    return str(path)
