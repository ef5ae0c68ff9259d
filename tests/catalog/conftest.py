"""Findings and supplies as the sources would hand them over, made without touching a disk."""

from typing import Any

import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_entries import PluginContribution, Status, ToolContribution
from satchel.catalog.unit_entries import RankedSkill, build_plugins
from satchel.diagnostics import Where, make_diagnostic
from satchel.files.file_reader import Stamp, UnitFile
from satchel.formats.skill_manifest import SkillManifest
from satchel.sources.folder_reader import FolderContent
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot
from satchel.sources.skill_findings import SkillFinding


class Makers:
    """Short ways to make what a catalog is built of."""

    def skill(
        self,
        name: str,
        *,
        source: str = "skills",
        scope: Precedence = Precedence.EXPLICIT,
        text: str = "text",
        broken: bool = False,
        key: str = "",
        order: int = 0,
        unsettled: bool = False,
        files: tuple[str, ...] = (),
        groups: tuple[str, ...] = (),
    ) -> RankedSkill:
        """One finding; `key` is its folder, `groups` are those of the root where it was found."""
        key = key or name
        root = SearchRoot(
            path=f"/{source}", holds=RootKind.SKILLS, scope=scope, source=source, groups=groups
        )
        stamp = Stamp(size=1, modified=1, changed=1, inode=1, device=1)
        read = tuple(
            UnitFile(name=file, size=len(text), digest=text, stamp=stamp, settled=True)
            for file in sorted(("SKILL.md", *files))
        )
        manifest = SkillManifest(
            name=name,
            description=text,
            license=None,
            compatibility=None,
            allowed_tools=(),
            metadata={},
            fields={"name": name},
            body="body",
        )
        problem = make_diagnostic(
            "skill-no-frontmatter", Where(f"/{source}/{key}/SKILL.md"), "is broken"
        )
        finding = SkillFinding(
            root=root,
            key=key,
            folder=FolderContent(files=read),
            manifest=None if broken else manifest,
            diagnostics=(problem,) if broken else (),
        )
        return RankedSkill(finding, (order, key), unsettled)

    def tool(self, name: str, *groups: str, version: str = "1") -> ToolContribution:
        return ToolContribution(
            name=name,
            description=f"About {name}.",
            path=f"/code/{name}.py",
            version=version,
            groups=groups,
        )

    def plugin(self, name: str, *tools: Any, order: int = 0, **parts: Any) -> PluginContribution:
        """One plugin; a tool given by its name alone is a simple one."""
        source = parts.pop("source", "plugins")
        failed = parts.get("state") is Status.FAILED
        problem = make_diagnostic(
            "plugin-syntax", Where(f"/{source}/{name}/tools.py", 3), "is broken"
        )
        defaults = {
            "name": name,
            "source": source,
            "scope": Precedence.EXPLICIT,
            "path": f"/{source}/{name}",
            "unit": f"/{source}/{name}",
            "rank": (order, name),
            "digest": "1",
            "tools": tuple(self.tool(tool) if isinstance(tool, str) else tool for tool in tools),
            "diagnostics": (problem,) if failed else (),
        }
        return PluginContribution(**defaults | parts)

    def catalog(
        self,
        skills: Any = (),
        plugins: Any = (),
        previous: Catalog | None = None,
        diagnostics: Any = (),
    ) -> Catalog:
        """The generation that follows `previous`."""
        before = previous or Catalog()
        return build(skills, build_plugins(plugins, before), before, diagnostics)


@pytest.fixture(scope="session")
def make() -> Makers:
    return Makers()
