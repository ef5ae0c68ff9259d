"""Convert the skills that MCP servers list to skill findings; they rank after local skills."""

import re
from collections.abc import Iterable
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import Stamp, UnitFile
from satchel.mcp_servers.listed_skills import ListedSkill, invalid_skill
from satchel.mcp_servers.resource_reader import RemoteSkillReader
from satchel.mcp_servers.server_contributions import ServerOffer
from satchel.mcp_servers.server_prompts import find_prompts, prompt_name, remote_finding
from satchel.names import skill_name_fault
from satchel.settings import Limits
from satchel.sources.skill_files import SkillAccess
from satchel.sources.skill_findings import SkillFinding


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
                diagnostics.append(invalid_skill(skill.address, skill.manifest.name, why))
    for item in offered:  # after all skills, so that no skill is renamed for a prompt
        names = []
        for prompt in item.snapshot.offers.prompts:
            names.append(_free_name(item.config.name, prompt_name(prompt.name), taken))
            taken.add(names[-1])
        if item.snapshot.is_up:
            findings += find_prompts(item, names, limits)
    return tuple(findings), tuple(diagnostics)


def _free_name(server: str, name: str, taken: set[str]) -> str:
    """Return the name, or the name prefixed with the server's, or `""` if both are taken."""
    if name not in taken and not skill_name_fault(name):
        return name
    prefixed = f"{re.sub('[^a-z0-9]+', '-', server.lower()).strip('-')}-{name}"
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
    return remote_finding(
        item, skill.address, files, manifest, reader, diagnostics=(*problems, *drifted)
    )
