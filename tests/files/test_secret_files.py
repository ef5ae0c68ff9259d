import asyncio
import os

import pytest

from satchel import Satchel
from satchel.errors import ToolError
from satchel.files.secret_files import is_secret_file
from satchel.settings import Limits
from satchel.sources.skill_files import locate_skill_file, read_skill_file

SECRET = "sk-do-not-tell"


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".ENV",
        ".env.local",
        ".Env.Production",
        "a/.env",
        ".env/key",
        ".envrc",
        ".env.",
        "a\\.env",
        "c:.env",
        ".env:stream",
        *(".env~", ".env.swp", ".envs", ".environment", "prod.env", "a/X.ENV", "c/prod.env/key"),
        *("prod.env~", "prod.env.bak", "prod.env.bak~", "prod.env.swp", "prod.ENV.OLD"),
    ],
)
def test_an_env_file_is_secret_in_any_case_and_place(name):
    assert is_secret_file(name)


@pytest.mark.parametrize(
    "name", ["env", "a.env.md", "environment.md", "env.py", "SKILL.md", "a.envs"]
)
def test_other_files_are_not(name):
    assert not is_secret_file(name)


@pytest.fixture
def skill(tmp_path, write_skill):
    folder = write_skill(tmp_path / "skills", "pdf")
    (folder / "guide.md").write_text("Guide")
    for name in (".env", ".ENV.local", "config/.env", ".env.d/key"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(SECRET)
    (folder / "notes.md").symlink_to(".env")
    (folder / "again.md").symlink_to("notes.md")
    (folder / "folder").symlink_to(".env.d")
    os.link(folder / "guide.md", folder / "hard.md")
    return folder


def test_env_files_and_links_to_them_are_not_among_the_files_of_a_skill(skill):
    entry = Satchel(skills=[skill.parent]).catalog.skills["pdf"]
    assert [file.name for file in entry.files] == ["SKILL.md", "guide.md", "hard.md"]
    codes = [item.code for item in entry.diagnostics]
    assert codes == ["skill-file-secret"] * 7


@pytest.mark.parametrize(
    "name", [".env", ".ENV.local", "notes.md", "again.md", "folder/key", "config/.env", "./.env"]
)
def test_env_files_cannot_be_read_under_any_name(skill, name):
    root = str(skill.parent)
    for read in (locate_skill_file, lambda *args: read_skill_file(*args, Limits())):
        with pytest.raises(ToolError) as problem:
            read(root, str(skill), name)
        assert SECRET not in str(problem.value)


def test_neither_prompt_nor_tools_show_them(skill):
    async def conversation():
        session = Satchel(skills=[skill.parent]).session()
        texts = [session.prompt(), (await session.call("load_skill", {"name": "pdf"})).text]
        for path in (".env", ".Env", "notes.md", f"{skill}/.env"):
            arguments = {"skill": "pdf", "path": path}
            texts.append((await session.call("read_skill_file", arguments)).text)
        return "\n".join(texts)

    text = asyncio.run(conversation())
    assert SECRET not in text
    assert "<file>guide.md</file>" in text
    assert "<file>.env" not in text


def test_a_skill_file_that_is_a_link_to_an_env_file_is_no_skill(tmp_path):
    folder = tmp_path / "skills/pdf"
    folder.mkdir(parents=True)
    (folder / ".env").write_text(f"---\nname: pdf\ndescription: {SECRET}\n---\nx")
    (folder / "SKILL.md").symlink_to(".env")
    assert SECRET not in Satchel(skills=[folder.parent]).session().prompt()
