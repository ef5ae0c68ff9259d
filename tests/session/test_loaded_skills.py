"""Which skills a conversation loaded, and what that makes of it."""

import gc
from weakref import ref

import pytest

from satchel import Satchel
from satchel.files.contained_files import Bounds
from satchel.session.loaded_skills import LoadedSkill, LoadedSkills
from satchel.settings import Limits


def a_skill(name="pdf", files=("SKILL.md",), allowed=()):
    return LoadedSkill(
        name=name,
        digest="1",
        root="/skills",
        folder=f"/skills/{name}",
        files=files,
        scripts=tuple(name for name in files if name.endswith(".py")),
        allowed_tools=allowed,
    )


def test_a_skill_that_is_loaded_again_takes_the_place_of_itself():
    loaded = LoadedSkills()
    assert list(loaded) == []
    loaded.add(a_skill("pdf"))
    loaded.add(a_skill("note"))
    newer = a_skill("pdf", allowed=("Read",))
    loaded.add(newer)
    assert [skill.name for skill in loaded] == ["pdf", "note"]
    assert loaded.get("pdf") is newer
    assert loaded.get("nope") is None
    loaded.replace_all({})
    assert list(loaded) == []


@pytest.mark.parametrize(
    ("files", "has_files", "has_scripts"),
    [
        (("SKILL.md",), False, False),
        (("SKILL.md", "guide.md"), True, False),
        (("SKILL.md", "scripts/run.py"), True, True),
    ],
)
def test_it_knows_what_there_is_to_read_and_to_run(files, has_files, has_scripts):
    loaded = LoadedSkills()
    loaded.add(a_skill("plain"))
    loaded.add(a_skill(files=files))
    assert (loaded.has_files, loaded.has_scripts) == (has_files, has_scripts)
    loaded.replace_all({})
    assert (loaded.has_files, loaded.has_scripts) == (False, False)


def test_the_instructions_are_no_resource():
    assert a_skill(files=("SKILL.md", "b.md", "a/SKILL.md")).resources == ["b.md", "a/SKILL.md"]


def test_it_keeps_words_and_no_entry_of_a_catalog(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    app = Satchel(skills=[tmp_path])
    entry = app.catalog.skills["pdf"]
    skill = LoadedSkill.of("pdf", entry, entry.manifest, Limits())
    assert skill.root == Bounds(str(tmp_path))
    assert skill.folder == str(tmp_path / "pdf")
    assert skill.files == ("SKILL.md",)
    del entry
    gone = ref(app.catalog)
    del app
    gc.collect()
    assert gone() is None
    assert skill.name == "pdf"


def test_data_and_links_out_of_the_folder_of_scripts_are_not_to_run(tmp_path, write_skill):
    folder = write_skill(tmp_path, "way")
    (folder / "scripts/deep").mkdir(parents=True)
    (tmp_path / "other.py").write_text("print('other')")
    for name in ("own.py", "deep/own.sh", "data.csv"):
        (folder / "scripts" / name).write_text("")
    (folder / "scripts/out.py").symlink_to("../../other.py")
    (folder / "scripts/in.py").symlink_to("own.py")
    entry = Satchel(skills=[tmp_path]).catalog.skills["way"]
    skill = LoadedSkill.of("way", entry, entry.manifest, Limits())
    assert skill.scripts == ("scripts/deep/own.sh", "scripts/in.py", "scripts/own.py")
    assert "scripts/out.py" in skill.files
