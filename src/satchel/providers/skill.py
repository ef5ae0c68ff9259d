"""A skill without a folder: it is read as its SKILL.md would be."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import date
from typing import Any

from satchel.catalog.catalog_entries import HOST
from satchel.diagnostics import Where
from satchel.errors import DefinitionError, ToolError
from satchel.files.file_reader import Stamp, UnitFile, digest_of, is_utf8
from satchel.formats.skill_manifest import read_skill
from satchel.lazy_dataclass import dataclass
from satchel.names import skill_name_fault
from satchel.settings import Limits
from satchel.sources.folder_reader import FolderContent
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot
from satchel.sources.skill_files import BlockingSkillReader, ServedFile, SkillAccess, is_file_name
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding
from satchel.text import one_line, shorten
from satchel.tools.empty_mapping import NOTHING

_PLAIN_KEY = re.compile("[A-Za-z][A-Za-z0-9-]*")
# YAML reads these characters otherwise than JSON does.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill given in code: what its SKILL.md would say, and its other files.

    `files` are text or bytes by path, such as `references/guide.md`. A `dict` is copied. Any other
    mapping is read on demand, so it may read from a database; it must return the same content until
    the provider contributes again. `front_matter` has further fields of the format, such as
    `license`.
    """

    name: str
    description: str
    body: str
    files: Mapping[str, str | bytes] = field(default=NOTHING, repr=False)
    front_matter: Mapping[str, Any] = NOTHING
    groups: tuple[str, ...] = ()
    """The groups in which it is listed; always, without one."""

    def __post_init__(self) -> None:
        if isinstance(self.files, dict):
            object.__setattr__(self, "files", dict(self.files))
        if isinstance(self.groups, str):
            object.__setattr__(self, "groups", (self.groups,))

    @property
    def text(self) -> str:
        """Return its SKILL.md."""
        return _text(_head(self), self.body)


def _head(skill: Skill) -> str:
    fields = {"name": skill.name, "description": skill.description, **skill.front_matter}
    lines = (f"{_as_key(key)}: {_as_yaml(value)}" for key, value in fields.items())
    return "\n".join(["---", *lines, "---"])


def _text(head: str, body: str) -> str:
    return "\n".join([head, "", body.strip("\n"), ""])


def _as_key(key: Any) -> str:
    # A plain key is read many times faster.
    return key if isinstance(key, str) and _PLAIN_KEY.fullmatch(key) else _as_yaml(key)


def _as_yaml(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_date_text)
    return _NOT_IN_YAML.sub(lambda letter: f"\\u{ord(letter[0]):04x}", text)


def _date_text(value: Any) -> str:
    if isinstance(value, date):  # so is a time of a day
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no value of YAML")


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFiles(BlockingSkillReader):
    """Reads the files of a skill that was given in code."""

    access: SkillAccess
    head: str
    """The front matter."""
    body: str
    files: Mapping[str, str | bytes] = field(compare=False, repr=False)

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Return a file. Raises `ToolError`, also for any error of the mapping."""
        shown = repr(shorten(one_line(name), 200))
        if name == SKILL_FILE:
            data = _text(self.head, self.body).encode()
        else:
            try:
                data = _bytes_of(self.files[name], f"file {shown}")
            except KeyError:
                raise ToolError(f"the skill has no file {shown}; use a listed name") from None
            except Exception as problem:
                raise ToolError(
                    f"the file {shown} cannot be read now; continue without it"
                ) from problem
        if len(data) > limits.resource:
            raise ToolError(
                f"{shown} has more than {limits.resource:,} bytes (limit resource); "
                "continue without it"
            )
        return ServedFile(name, data, digest_of(data))


def find_skill(
    skill: Skill, source: str, scope: Precedence, limits: Limits, before: SkillFinding | None = None
) -> SkillFinding:
    """Return a skill as if it had been found in a folder; `before` if it did not change.

    Raises `DefinitionError` for values that no SKILL.md could have.
    """
    _require_texts(skill)
    try:
        head = _head(skill)
        if before is not None and _is_unchanged(before, skill, head, scope):
            return before
        text = _text(head, skill.body).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        message = f"skill {skill.name!r} cannot be written as SKILL.md: {problem}"
        raise DefinitionError(message) from problem
    try:
        files = tuple(sorted(_files(skill, text, limits), key=lambda file: file.name))
    except DefinitionError:
        raise
    except Exception as problem:  # whatever a mapping of the provider raises
        message = f"files of skill {skill.name!r} cannot be listed: {type(problem).__name__}"
        raise DefinitionError(message) from problem
    root = SearchRoot(
        path=skill_path(source, skill.name),
        holds=RootKind.SKILLS,
        scope=scope,
        source=source,
        groups=tuple(skill.groups),
    )
    folder = FolderContent(files=files)
    access = SkillAccess(origin="the application" if source == HOST else f"the provider {source}")
    finding = SkillFinding(
        root=root,
        key="",
        folder=folder,
        manifest=None,
        diagnostics=(),
        remote=GivenFiles(access=access, head=head, body=skill.body, files=skill.files),
    )
    if before and before.manifest and (before.root, before.folder) == (root, folder):
        # Equal digests: the former reader returns the same files, unless it reads on demand.
        return replace(before, remote=finding.remote) if _is_read_on_demand(skill) else before
    reading = read_skill(text, skill.name, root.path, limits)
    # The text was generated, so its line numbers say nothing.
    diagnostics = tuple(replace(item, where=Where(root.path)) for item in reading.diagnostics)
    return replace(finding, manifest=reading.value, diagnostics=diagnostics)


def _is_unchanged(before: SkillFinding, skill: Skill, head: str, scope: Precedence) -> bool:
    """Return whether a skill is as it was, without a digest of its text and its files."""
    was, root = before.remote, before.root
    return (
        isinstance(was, GivenFiles)
        and before.manifest is not None
        and (was.head, was.body) == (head, skill.body)
        and not _is_read_on_demand(skill)
        and was.files == skill.files
        and (root.groups, root.scope) == (tuple(skill.groups), scope)
    )


def _is_read_on_demand(skill: Skill) -> bool:
    return skill.files is not NOTHING and not isinstance(skill.files, dict)


def skill_path(source: str, name: str) -> str:
    """Return the address that stands for the folder of a skill without one."""
    return f"{source}://{name}"


def _require_texts(skill: Skill) -> None:
    if not isinstance(skill, Skill):
        raise DefinitionError(
            f"{type(skill).__name__} is not a skill", fix="return a satchel.Skill"
        )
    for name in ("name", "description", "body"):
        value = getattr(skill, name)
        if not isinstance(value, str) or not is_utf8(value):
            whose = "a skill" if name == "name" else f"skill {shorten(repr(skill.name), 100)}"
            raise DefinitionError(f"the {name} of {whose} is not a text", fix="pass a string")
    if fault := skill_name_fault(skill.name):
        shown = shorten(one_line(skill.name), 100)
        raise DefinitionError(f"the name {shown!r} of a skill {fault}")
    for field_name, content in (("files", skill.files), ("front_matter", skill.front_matter)):
        if not isinstance(content, Mapping):
            raise DefinitionError(f"{field_name} of skill {skill.name!r} is not a mapping")
    for key in ("name", "description"):
        if key in skill.front_matter:
            raise DefinitionError(
                f"front_matter of skill {skill.name!r} has the field {key!r}",
                fix=f"pass {key}= to Skill instead",
            )


def _files(skill: Skill, text: bytes, limits: Limits) -> Iterable[UnitFile]:
    yield _unit_file(SKILL_FILE, text)
    for position, name in enumerate(skill.files):
        if position >= limits.files_per_skill:
            most = f"{limits.files_per_skill:,} files (limit files_per_skill)"
            raise DefinitionError(f"skill {skill.name!r} has more than {most}")
        if not isinstance(name, str) or not is_file_name(name) or name == SKILL_FILE:
            raise DefinitionError(
                f"{shorten(repr(name), 200)} is not the path of a file in skill {skill.name!r}",
                fix="use a path inside the skill, such as references/guide.md",
            )
        if isinstance(skill.files, dict):
            label = f"file {name!r} of skill {skill.name!r}"
            yield _unit_file(name, _bytes_of(skill.files[name], label))
        else:  # Read on demand.
            yield UnitFile(name=name, size=0, digest="", stamp=Stamp(), settled=True)


def _unit_file(name: str, data: bytes) -> UnitFile:
    size = len(data)
    return UnitFile(name=name, size=size, digest=digest_of(data), stamp=Stamp(size), settled=True)


def _bytes_of(content: str | bytes, label: str) -> bytes:
    if not isinstance(content, str | bytes):
        raise DefinitionError(f"{label} is a {type(content).__name__}, not text or bytes")
    return content.encode() if isinstance(content, str) else content
