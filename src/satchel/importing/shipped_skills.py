"""Find the skills that distributions ship beside their code, in `.agents/skills`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from satchel.importing.module_paths import edited_bases
from satchel.lazy_dataclass import dataclass

SHIPPED_SKILLS = (".agents", "skills")


@dataclass(frozen=True, slots=True)
class ShippedSkills:
    """A skill folder; paths in the RECORD of its distribution begin with `prefix`."""

    path: str
    prefix: str


def shipped_skills(folder: str, names: Iterable[str]) -> tuple[ShippedSkills, ...]:
    """Return the skill folders installed in a folder, whose entries are `names`."""
    return tuple(_shipped(folder, names))


def _shipped(folder: str, names: Iterable[str]) -> Iterator[ShippedSkills]:
    for name in names:
        # Modules and metadata folders have a dot in their name, packages do not.
        if "." not in name:
            path = os.sep.join((folder, name, *SHIPPED_SKILLS))
            if os.path.isdir(path):
                yield ShippedSkills(path, f"{name}/.agents/skills/")
        elif name == ".agents" and os.path.isdir(os.path.join(folder, *SHIPPED_SKILLS)):
            yield ShippedSkills(os.path.join(folder, *SHIPPED_SKILLS), ".agents/skills/")
        elif name.endswith(".pth") or name.startswith(("__editable__", "_editable_impl_")):
            for package in _edited_packages(folder, name):
                path = os.path.join(package, *SHIPPED_SKILLS)
                if os.path.isdir(path):
                    yield ShippedSkills(path, name)


def _edited_packages(folder: str, name: str) -> Iterator[str]:
    """Yield the packages that one file of an editable install makes importable."""
    for base in edited_bases(folder, [name]):
        if base.name:
            yield base.path
            continue
        # Other folders (tests, examples, the project's own skills) are not shipped.
        with suppress(OSError):
            for below in sorted(os.listdir(base.path)):
                package = os.path.join(base.path, below)
                if os.path.isfile(os.path.join(package, "__init__.py")):
                    yield package


def owners(
    shipped: Iterable[ShippedSkills],
    infos: Sequence[str],
    recorded: Callable[[str], tuple[str, ...]],
) -> Mapping[str, tuple[str, ...]]:
    """Return the skill folders of each distribution that lists them in its RECORD.

    Records are read only until every folder has its owner.
    """
    unowned = list(shipped)
    folders: dict[str, tuple[str, ...]] = {}
    starts = [item.prefix.lstrip("_").lower() for item in unowned]
    for info in sorted(infos, key=lambda info: not _is_likely(info, starts)):
        if not unowned:
            break
        files = recorded(info)
        own = [item for item in unowned if any(file.startswith(item.prefix) for file in files)]
        if own:
            folders[info] = tuple(dict.fromkeys(item.path for item in own))
            unowned = [item for item in unowned if item not in own]
    return folders


def _is_likely(info: str, starts: Iterable[str]) -> bool:
    """Return whether a distribution has the name of a package, of which `starts` are the paths."""
    name = os.path.basename(info).partition("-")[0].lower()
    return any(start.startswith(name) for start in starts)
