"""toolkit.yaml: what a plugin folder says about itself."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from satchel.manifests.decoding import decode
from satchel.manifests.reading import Problems, Reading, shown
from satchel.manifests.repair import read_repairing
from satchel.manifests.yamlbuilder import KeyPath, YamlValue
from satchel.manifests.yamltext import YamlMap, kind_of
from satchel.names import near_misses, plugin_name_fault
from satchel.settings import Limits
from satchel.text import has_hidden

_SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TEXTS = ("version", "description", "author", "license", "homepage", "notes")
_FIELDS = ("name", *_TEXTS, "keywords", "active", "groups", "tools", "skills")
_GROUP_FIELDS = ("name", "description", "notes", "active", "tools", "skills", "requires")
# Names that later versions will read; a manifest may carry them already.
_LATER_FIELDS = frozenset({"config", "setup", "requires", "isolation", "contract"})
# What an open plugin tells in its plugin.json is not its extension's to say.
_CORE_FIELDS = {"name", *_TEXTS, "keywords", "skills"} - {"notes"}
_EXTENSION_FIELDS = tuple(name for name in _FIELDS if name not in _CORE_FIELDS)
_STRUCTURED = (_LATER_FIELDS | {*_FIELDS}) - {"name", *_TEXTS}


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class PluginManifest:
    """What a toolkit.yaml says; `tools` is a module and `skills` a folder inside the plugin's."""

    name: str
    version: str
    description: str
    author: str
    license: str
    homepage: str
    keywords: tuple[str, ...]
    notes: str
    active: bool
    groups: tuple[GroupManifest, ...]
    tools: str
    skills: str


def read_plugin(
    data: bytes, folder: str, path: str, limits: Limits, *, extends: str = ""
) -> Reading[PluginManifest]:
    """Read the toolkit.yaml of a folder named `folder`; `path` is what diagnostics print.

    One that `extends` the open plugin of that name has no say in what its plugin.json tells.
    """
    decoded = decode(data, path, "plugin-unreadable")
    if decoded.value is None:
        return Reading(None, decoded.diagnostics)
    reading = read_repairing(decoded.value, path, limits, _STRUCTURED)
    if reading.value is None:
        return Reading(None, reading.diagnostics)
    problems = Problems(path)
    problems.extend(reading.diagnostics)
    top = _Block(dict(reading.value.values), (), reading.value, problems)
    manifest = PluginManifest(
        name=extends or _name(top, folder),
        **{key: top.text(key) for key in _TEXTS},
        keywords=top.names("keywords"),
        active=top.switch("active", default=False),
        groups=_groups(top),
        tools=_tools(top),
        skills=_skills(top),
    )
    top.report_unknown(_EXTENSION_FIELDS if extends else _FIELDS)
    return Reading(None if problems.fatal else manifest, problems.found)


@dataclass(frozen=True, slots=True)
class _Block:
    """One mapping of the file, read key by key.

    What does not fit is noted, and the reading goes on with a default to find the next problem;
    whether the plugin is refused for it is up to the code that was noted.
    """

    values: dict[str, YamlValue]
    at: KeyPath
    yaml: YamlMap
    problems: Problems

    def note(self, code: str, key: str, message: str, fix: str) -> None:
        """Note a problem on the line of `key`, or of the block where the key is not given."""
        lines = self.yaml.lines
        self.problems.add(code, message, fix, lines.get((*self.at, key), lines.get(self.at)))

    def misfit(self, key: str, message: str, fix: str) -> None:
        self.note("plugin-field-type", key, message, fix)

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key)
        if isinstance(value, str):
            return value.strip()
        if value is not None:
            self.misfit(key, f"'{key}' is {kind_of(value)}, not text", "Write text, in quotes.")
        return default

    def switch(self, key: str, *, default: bool) -> bool:
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

    def report_unknown(self, known: tuple[str, ...]) -> None:
        for key in self.values:
            if key in known:
                continue
            if not self.at and key in _LATER_FIELDS:
                message, fix = f"'{key}' is not read by this version", "Leave it, or remove it."
            else:
                meant = near_misses(
                    key, [name for name in known if name not in self.values], most=1
                )
                message = f"{shown(key)} is not a field that is read here"
                fix = f"Write '{meant[0]}:'." if meant else "Remove it."
            self.note("plugin-field-unknown", key, message, fix)


def _name(top: _Block, folder: str) -> str:
    name = top.text("name")
    fault = plugin_name_fault(name)
    if not name and not isinstance(top.values.get("name"), (list, dict)):
        top.note("plugin-field-missing", "name", "no name is given", "Add 'name:' and a name.")
    elif name and fault:
        message = f"the name {shown(name)} {fault}"
        top.note("plugin-name-shape", "name", message, "Choose another name.")
    elif name and name != folder:
        message = f"the name {shown(name)} is not the folder's name, {shown(folder)}"
        top.note("plugin-name-folder", "name", message, "Make them equal if you can.")
    return name


def _groups(top: _Block) -> tuple[GroupManifest, ...]:
    """Read the groups, given as a mapping by name or as a list whose items have a name."""
    value = top.values.get("groups")
    blocks: list[tuple[str, _Block]] = []
    if isinstance(value, dict):
        items = [(name, name, item) for name, item in value.items()]
    elif isinstance(value, list):
        items = [("", str(number), item) for number, item in enumerate(value)]
    elif value is None:
        return ()
    else:
        top.misfit("groups", "'groups' is text, not a mapping", "Write each group's name and ':'.")
        return ()
    for name, key, item in items:
        at = ("groups", key)
        if isinstance(item, dict) or (name and item is None):
            blocks.append((name, _Block(item or {}, at, top.yaml, top.problems)))
        else:
            message = f"a group is {kind_of(item)}, not a mapping"
            line = top.yaml.lines.get(at)
            top.problems.add("plugin-field-type", message, "Write its fields below it.", line)
    return _distinct([_group(name, block) for name, block in blocks], top)


def _group(key: str, block: _Block) -> GroupManifest:
    name = block.text("name", default=key) or key
    if key and name != key:
        block.misfit("name", f"{shown(name)} is called {shown(key)} above", "Remove 'name:'.")
    if fault := plugin_name_fault(name):
        what = f"the group's name {shown(name)} {fault}" if name else "a group has no name"
        block.misfit("name", what, "Choose another name." if name else "Add 'name:'.")
    block.report_unknown(_GROUP_FIELDS)
    return GroupManifest(
        name=name,
        description=block.text("description"),
        notes=block.text("notes"),
        active=block.switch("active", default=False),
        tools=block.names("tools"),
        skills=block.names("skills"),
        requires=block.names("requires"),
    )


def _distinct(groups: list[GroupManifest], top: _Block) -> tuple[GroupManifest, ...]:
    names = [group.name for group in groups]
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        top.misfit("groups", f"two groups are named {shown(name)}", "Make them one.")
    return tuple(groups)


def _tools(top: _Block) -> str:
    module = top.text("tools", default="tools").removesuffix(".py")
    if not all(part.isidentifier() for part in module.split(".")):
        message = f"'tools' is {shown(module)}, which is no module of this folder"
        top.misfit("tools", message, "Write a module's name, such as 'tools'.")
    return module


def _skills(top: _Block) -> str:
    folder = top.text("skills", default="skills")
    path = PurePosixPath(folder)
    leads_out = path.is_absolute() or ".." in path.parts or re.search(r"[\\:]", folder)
    if not folder or leads_out or has_hidden(folder):
        message = f"'skills' is {shown(folder)}, which is no folder inside this one"
        top.misfit("skills", message, "Write a folder's name, such as 'skills'.")
    return str(path)
