"""Findings and supplies as the sources would hand them over, made without touching a disk."""

from typing import Any

import pytest

from satchel.catalog import Catalog, RankedSkill, Supply, ToolSupply, build, build_plugins
from satchel.diagnostics import Where, report
from satchel.manifests import SkillManifest
from satchel.sources import Holds, Place, Scope, SkillFinding
from satchel.sources.files import Stamp, UnitFile
from satchel.sources.folders import Folder


class Makers:
    """Short ways to make what a catalog is built of."""

    def skill(
        self,
        name: str,
        *,
        source: str = "skills",
        scope: Scope = Scope.EXPLICIT,
        text: str = "text",
        broken: bool = False,
        key: str = "",
        order: int = 0,
        unsettled: bool = False,
        files: tuple[str, ...] = (),
        groups: tuple[str, ...] = (),
    ) -> RankedSkill:
        """One finding; `key` is its folder, `groups` are those of the place where it was found."""
        key = key or name
        place = Place(f"/{source}", Holds.SKILLS, scope, source, groups=groups)
        stamp = Stamp(1, 1, 1, 1, 1, settled=True)
        read = tuple(
            UnitFile(file, len(text), text, stamp) for file in sorted(("SKILL.md", *files))
        )
        manifest = SkillManifest(name, text, None, None, (), {}, {"name": name}, "body")
        problem = report("skill-no-frontmatter", Where(f"/{source}/{key}/SKILL.md"), "is broken")
        finding = SkillFinding(
            place,
            key,
            Folder(read, ()),
            None if broken else manifest,
            (problem,) if broken else (),
        )
        return RankedSkill(finding, (order, key), unsettled)

    def tool(self, name: str, *groups: str, version: str = "1") -> ToolSupply:
        return ToolSupply(name, f"About {name}.", f"/code/{name}.py", version, groups)

    def plugin(self, name: str, *tools: Any, order: int = 0, **parts: Any) -> Supply:
        """One plugin; a tool given by its name alone is a simple one."""
        source = parts.pop("source", "plugins")
        failed = parts.get("failed", False)
        problem = report("plugin-syntax", Where(f"/{source}/{name}/tools.py", 3), "is broken")
        defaults = {
            "name": name,
            "source": source,
            "scope": Scope.EXPLICIT,
            "path": f"/{source}/{name}",
            "unit": f"/{source}/{name}",
            "rank": (order, name),
            "digest": "1",
            "tools": tuple(self.tool(tool) if isinstance(tool, str) else tool for tool in tools),
            "diagnostics": (problem,) if failed else (),
        }
        return Supply(**defaults | parts)

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
