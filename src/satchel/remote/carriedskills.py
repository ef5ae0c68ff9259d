"""The skills of remote servers, as what was found: beside those of folders, and after them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, report
from satchel.names import skill_name_fault
from satchel.remote.reading import RemoteFiles
from satchel.remote.skills import ListedSkill, invalid
from satchel.remote.supplying import Offered
from satchel.sources import Holds, Place, Scope, SkillFinding, UnitFile
from satchel.sources.files import Stamp
from satchel.sources.folders import Folder


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """The skills of all servers that are up, and what is wrong with others."""

    findings: tuple[SkillFinding, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def found_skills(offered: Iterable[Offered], taken: Iterable[str]) -> FoundSkills:
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
    return FoundSkills(tuple(findings), tuple(problems))


def _free(server: str, name: str, taken: set[str]) -> str:
    """Return a name that nobody has, `""` if there is none."""
    if name not in taken:
        return name
    longer = f"{re.sub('[^a-z0-9]+', '-', server.lower()).strip('-')}-{name}"
    return "" if longer in taken or skill_name_fault(longer) else longer


def _finding(item: Offered, skill: ListedSkill, name: str) -> SkillFinding:
    carried = item.carried
    assert item.read is not None
    odd = tuple(problem for file, problem in item.offer.odd_files if file in skill.files)
    renamed = (_renamed(item, skill, name),) if name != skill.manifest.name else ()
    place = Place(
        skill.address,
        Holds.SKILLS,
        Scope.REMOTE,
        item.source,
        groups=carried.groups,
    )
    files = tuple(
        UnitFile(file.name, file.size, file.digest, Stamp(file.size, 0, 0, 0, 0, settled=True))
        for file in skill.files
    )
    return SkillFinding(
        place,
        "",
        Folder(files, ()),
        replace(skill.manifest, name=name),
        (*skill.diagnostics, *renamed, *odd),
        RemoteFiles(carried.name, skill, item.read, carried.timeout),
    )


def _renamed(item: Offered, skill: ListedSkill, name: str) -> Diagnostic:
    return report(
        "mcp-skill-renamed",
        Where(skill.address),
        f"skill {skill.manifest.name!r} of MCP server {item.carried.name!r} is called {name!r} "
        "here: its own name is taken",
    )


def _nameless(item: Offered, skill: ListedSkill) -> Diagnostic:
    name = skill.manifest.name
    why = f"its name is taken, and no name can be made of that and {item.carried.name!r}"
    return invalid(skill.address, name, why)
