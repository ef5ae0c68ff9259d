"""Write skills and plugins for tests into a folder."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import frontmatter

from satchel.formats.skill_handler import SkillHandler

Files = Mapping[str, str | bytes]
"""The contents of files, by their paths inside the folder."""


def write_skill(
    folder: str | os.PathLike[str],
    name: str,
    *,
    description: str = "Does a thing.",
    body: str = "Do it.\n",
    files: Files | None = None,
    **fields: Any,
) -> Path:
    """Write the skill `folder/name`, and return its path.

    `fields` are more fields of the front matter, with `_` for `-`: `allowed_tools="Read"`.
    """
    post = frontmatter.Post(dedent(body), name=name, description=description)
    post.metadata |= {key.replace("_", "-"): value for key, value in fields.items()}
    text = frontmatter.dumps(post, handler=SkillHandler())
    return _write(Path(folder, name), {"SKILL.md": text, **(files or {})})


def write_plugin(
    folder: str | os.PathLike[str],
    name: str,
    tools: str = "",
    *,
    skills: Iterable[str] = (),
    files: Files | None = None,
    **manifest: Any,
) -> Path:
    """Write the plugin `folder/name`, and return its path.

    `tools` is the source of its tools.py. `skills` are names of skills to write into it.
    `manifest` has the other fields of its toolkit.yaml; without `groups`, its group is active.
    """
    fields = {"name": name, **({} if "groups" in manifest else {"active": True}), **manifest}
    path = _write(
        Path(folder, name),
        {
            "toolkit.yaml": SkillHandler().export(fields),
            **({"tools.py": dedent(tools)} if tools else {}),
            **(files or {}),
        },
    )
    for skill in skills:
        write_skill(path / "skills", skill)
    return path


def _write(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
