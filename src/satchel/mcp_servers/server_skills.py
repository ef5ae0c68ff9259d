"""The skills and prompts of MCP servers as skill findings; they rank after local skills.

A prompt is a skill that the user calls and no model sees.
"""

import json
import re
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import field, replace
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ToolError
from satchel.files.file_reader import Stamp, UnitFile, digest_of
from satchel.formats.skill_arguments import divided
from satchel.formats.skill_manifest import SkillManifest, read_listed_skill
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.list_reader import invalid_item
from satchel.mcp_servers.listed_skills import ListedSkill
from satchel.mcp_servers.resource_reader import RemoteReader, RemoteSkillReader
from satchel.mcp_servers.server_contributions import ServerOffer
from satchel.mcp_servers.server_offers import BeginRequest, OfferedPrompt, prompt_result
from satchel.names import skill_name_fault
from satchel.settings import Limits
from satchel.sources.folder_reader import FolderContent
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot
from satchel.sources.skill_files import ServedFile, SkillAccess, SkillReader
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding
from satchel.text import one_line, shorten

_FRONT = b"---\nname: prompt\n---\n"


def collect_server_skills(
    offered: Iterable[ServerOffer], taken: Iterable[str], limits: Limits
) -> tuple[tuple[SkillFinding, ...], tuple[Diagnostic, ...]]:
    """Return the skills and prompts that servers offer, with names that are not in `taken`.

    The diagnostics are about those that are left out. A server that is down keeps the names of its
    skills, so that other skills are not renamed.
    """
    taken, offered = set(taken), tuple(offered)
    findings: list[SkillFinding] = []
    diagnostics: list[Diagnostic] = []
    for item in offered:
        for skill in item.snapshot.skills:
            name = _free_name(item.config.name, skill.manifest.name, taken)
            if name:
                taken.add(name)
            if not item.snapshot.is_up:
                continue
            if name:
                findings.append(_finding(item, skill, name))
            else:
                why = (
                    f"its name is taken, also with the prefix {item.config.name!r}, or is too "
                    "long with it"
                )
                diagnostics.append(
                    invalid_item("skill", Where(skill.address), skill.manifest.name, why)
                )
    for item in offered:  # after all skills, so that no skill is renamed for a prompt
        names = []
        for prompt in item.snapshot.prompts:
            names.append(_free_name(item.config.name, _as_skill_name(prompt.name), taken))
            taken.add(names[-1])
        if item.snapshot.is_up:
            findings += _find_prompts(item, names, limits)
    return tuple(findings), tuple(diagnostics)


def _free_name(server: str, name: str, taken: set[str]) -> str:
    """Return the name, or the name prefixed with the server's, or `""` if both are taken."""
    if name not in taken and not skill_name_fault(name):
        return name
    prefixed = f"{_as_skill_name(server)}-{name}"
    return "" if prefixed in taken or skill_name_fault(prefixed) else prefixed


def _finding(item: ServerOffer, skill: ListedSkill, name: str) -> SkillFinding:
    config = item.config
    drifted = tuple(
        diagnostic for file, diagnostic in item.snapshot.drifted_files if file in skill.files
    )
    problems = [*skill.diagnostics]
    if name != skill.manifest.name:
        message = (
            f"skill {skill.manifest.name!r} of MCP server {config.name!r} is called {name!r} "
            "here: its own name is taken"
        )
        problems.append(make_diagnostic("mcp-skill-renamed", Where(skill.address), message))
    files = tuple(
        UnitFile(
            name=file.name, size=file.size, digest=file.digest, stamp=Stamp(file.size), settled=True
        )
        for file in skill.files
    )
    access = SkillAccess(
        is_fetched=True,
        origin=f"the MCP server {config.name}",
        own_name=skill.manifest.name,
        front_matter=skill.frontmatter,
        has_digests=True,
    )
    reader = RemoteSkillReader(
        server=config.name,
        listed=skill,
        access=access,
        begin=item.handle.read,
        timeout=config.timeout,
    )
    manifest = replace(skill.manifest, name=name)
    return _remote_finding(
        item, skill.address, files, manifest, reader, diagnostics=(*problems, *drifted)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReader(RemoteReader):
    """Gets the text of one prompt from its server, with the user's arguments in it."""

    prompt: OfferedPrompt
    begin: BeginRequest = field(compare=False, repr=False)
    arguments: str = ""

    def filled(self, arguments: str) -> "PromptReader":
        """Return a reader that sends these arguments."""
        return replace(self, arguments=arguments)

    def _begin(self, name: str) -> Future[dict[str, Any]]:
        if name != SKILL_FILE:
            raise ToolError("a prompt of a server has no files")
        arguments = arguments_in(self.arguments, self.prompt)
        return self.begin("prompts/get", {"name": self.prompt.name, "arguments": arguments}, None)

    def _served(self, response: dict[str, Any]) -> ServedFile:
        data = _FRONT + prompt_result(response).text.encode()
        return ServedFile(SKILL_FILE, data, digest_of(data))


def arguments_in(text: str, prompt: OfferedPrompt) -> dict[str, str]:
    """Return the arguments of a prompt that a user wrote.

    `name=value` gives one by its name; the others follow in the order of the prompt, and the last
    one gets the rest. Raises `ToolError` if a required one is missing.
    """
    names = [argument.name for argument in prompt.arguments]
    values: dict[str, str] = {}
    if len(names) == 1 and text.strip() and not text.startswith(f"{names[0]}="):
        return {names[0]: text.strip()}
    others = []
    for part in divided(text):
        name, is_named, value = part.partition("=")
        if is_named and name in names:
            values[name] = value
        else:
            others.append(part)
    open_names = [name for name in names if name not in values]
    for at, name in enumerate(open_names[: len(others)]):
        is_last = at == len(open_names) - 1
        values[name] = " ".join(others[at:]) if is_last else others[at]
    missing = [item.name for item in prompt.arguments if item.required and item.name not in values]
    if missing:
        raise ToolError(
            f"the prompt {prompt.name!r} needs {', '.join(missing)}; "
            f"write {' '.join(f'{name}=...' for name in missing)}"
        )
    return values


def _find_prompts(item: ServerOffer, names: Iterable[str], limits: Limits) -> list[SkillFinding]:
    """Return the prompts of a server as skills; `names` are their names here, `""` for none."""
    findings = []
    for prompt, name in zip(item.snapshot.prompts, names, strict=True):
        if not name:
            continue
        path = f"prompt://{item.config.name}/{quote(prompt.name, safe='')}"
        shown = [f"[{one.name}]" if not one.required else one.name for one in prompt.arguments]
        description = one_line(prompt.description) or f"The prompt {prompt.name!r} of a server."
        front = {
            "name": name,
            "description": shorten(description, 1_000),
            "disable-model-invocation": "true",
            **({"argument-hint": one_line(" ".join(shown))} if shown else {}),
        }
        manifest = read_listed_skill(front, name, path, limits).value
        if manifest is None:
            continue
        text = json.dumps([front, path]).encode()
        digest = blake2b(text, digest_size=16).hexdigest()
        file = UnitFile(name=SKILL_FILE, size=0, digest=digest, stamp=Stamp(0), settled=True)
        access = SkillAccess(
            is_fetched=True, fills_arguments=True, origin=f"the MCP server {item.config.name}"
        )
        reader = PromptReader(
            server=item.config.name,
            prompt=prompt,
            begin=item.handle.request,
            access=access,
            timeout=item.config.timeout,
        )
        findings.append(_remote_finding(item, path, (file,), manifest, reader))
    return findings


def _remote_finding(
    item: ServerOffer,
    path: str,
    files: tuple[UnitFile, ...],
    manifest: SkillManifest,
    reader: SkillReader,
    *,
    diagnostics: tuple[Diagnostic, ...] = (),
) -> SkillFinding:
    """Return a skill that a server offers."""
    root = SearchRoot(
        path=path,
        holds=RootKind.SKILLS,
        scope=Precedence.REMOTE,
        source=item.source,
        groups=item.config.groups,
    )
    return SkillFinding(
        root=root,
        key="",
        folder=FolderContent(files=files),
        manifest=manifest,
        diagnostics=diagnostics,
        remote=reader,
    )


def _as_skill_name(name: str) -> str:
    """Return a name of a prompt or a server as that of a skill; `""` if nothing is left of it."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:64].strip("-")
