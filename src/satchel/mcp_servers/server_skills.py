"""The skills of remote servers, as what was found: beside those of folders, and after them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.mcp_servers.listed_skills import ListedSkill, invalid
from satchel.mcp_servers.resource_reader import RemoteSkillReader
from satchel.mcp_servers.server_contributions import ServerOffer
from satchel.names import skill_name_fault
from satchel.sources import Precedence, RootKind, SearchRoot, SkillFinding, UnitFile
from satchel.sources.file_reader import Stamp
from satchel.sources.folder_reader import FolderContent


@dataclass(frozen=True, slots=True)
class ServerSkills:
    """The skills of all servers that are up, and what is wrong with others."""

    findings: tuple[SkillFinding, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def collect_server_skills(offered: Iterable[ServerOffer], taken: Iterable[str]) -> ServerSkills:
    """Return the skills that servers offer, none of which has a name of `taken`.

    Those are the names of all other skills. A server that is down keeps the names of its own,
    so that nobody else's change with it.
    """
    known = set(taken)
    findings: list[SkillFinding] = []
    problems: list[Diagnostic] = []
    for item in offered:
        for skill in item.offer.listing.skills:
            name = _free(item.carried.name, skill.manifest.name, known)
            if name:
                known.add(name)
            if not item.offer.is_up:
                continue
            if name:
                findings.append(_finding(item, skill, name))
            else:
                problems.append(_nameless(item, skill))
    return ServerSkills(tuple(findings), tuple(problems))


def _free(server: str, name: str, taken: set[str]) -> str:
    """Return a name that nobody has, `""` if there is none."""
    if name not in taken:
        return name
    longer = f"{re.sub('[^a-z0-9]+', '-', server.lower()).strip('-')}-{name}"
    return "" if longer in taken or skill_name_fault(longer) else longer


def _finding(item: ServerOffer, skill: ListedSkill, name: str) -> SkillFinding:
    carried = item.carried
    assert item.read is not None
    odd = tuple(problem for file, problem in item.offer.odd_files if file in skill.files)
    renamed = (_renamed(item, skill, name),) if name != skill.manifest.name else ()
    place = SearchRoot(
        path=skill.address,
        holds=RootKind.SKILLS,
        scope=Precedence.REMOTE,
        source=item.source,
        groups=carried.groups,
    )
    files = tuple(
        UnitFile(
            name=file.name, size=file.size, digest=file.digest, stamp=Stamp(file.size), settled=True
        )
        for file in skill.files
    )
    return SkillFinding(
        place=place,
        key="",
        folder=FolderContent(files, ()),
        manifest=replace(skill.manifest, name=name),
        diagnostics=(*skill.diagnostics, *renamed, *odd),
        remote=RemoteSkillReader(
            server=carried.name, listed=skill, begin=item.read, timeout=carried.timeout
        ),
    )


def _renamed(item: ServerOffer, skill: ListedSkill, name: str) -> Diagnostic:
    return make_diagnostic(
        "mcp-skill-renamed",
        Where(skill.address),
        f"skill {skill.manifest.name!r} of MCP server {item.carried.name!r} is called {name!r} "
        "here: its own name is taken",
    )


def _nameless(item: ServerOffer, skill: ListedSkill) -> Diagnostic:
    name = skill.manifest.name
    why = f"its name is taken, and no name can be made of that and {item.carried.name!r}"
    return invalid(skill.address, name, why)
