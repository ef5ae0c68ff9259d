"""Skills that distributions ship beside their code, in `.agents/skills`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from satchel.sources.module_paths import edited_bases

SHIPPED_SKILLS = (".agents", "skills")


@dataclass(frozen=True, slots=True)
class ShippedSkills:
    """A folder of skills; `mark` is how a path in the RECORD of its owner begins."""

    path: str
    mark: str


def shipped_skills(folder: str, names: Iterable[str]) -> tuple[ShippedSkills, ...]:
    """Look for skills that were installed into a folder; `names` are what stands in it."""
    return tuple(_shipped(folder, names))


def _shipped(folder: str, names: Iterable[str]) -> Iterator[ShippedSkills]:
    for name in names:
        # A module or the metadata of a distribution has a dot in its name, a package has none.
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
    """Yield the packages that an editable install makes importable by one file."""
    for base in edited_bases(folder, [name]):
        if base.name:
            yield base.path
            continue
        # What else lies there (tests, examples, the project's own skills) is not shipped.
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
    """Return the folders of skills of each distribution that lists them in its RECORD.

    Records are read only until each folder has its owner.
    """
    waiting = list(shipped)
    found: dict[str, tuple[str, ...]] = {}
    for info in sorted(infos, key=lambda info: not _is_likely(info, waiting)):
        if not waiting:
            break
        files = recorded(info)
        own = [item for item in waiting if any(file.startswith(item.mark) for file in files)]
        if own:
            found[info] = tuple(dict.fromkeys(item.path for item in own))
            waiting = [item for item in waiting if item not in own]
    return found


def _is_likely(info: str, shipped: Iterable[ShippedSkills]) -> bool:
    """Tell whether a distribution is named like one of the packages."""
    name = os.path.basename(info).partition("-")[0].lower()
    return any(item.mark.lstrip("_").lower().startswith(name) for item in shipped)
