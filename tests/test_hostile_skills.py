"""Hostile skill folders: each is refused or made safe, and the skill beside it loads."""

import os
import time

import pytest

from satchel import Project, Satchel, SkillPrompt
from satchel.prompt.skill_prompt import DEFAULT_BUDGET
from satchel.text import has_hidden

CASES = [
    *[
        "Y01",
        "Y03",
        "Y05",
        "Y07",
        "Y09",
        "Y11",
        "Y13",
        "Y15",
        "Y17",
        "Y19",
        "Y21",
        "Y23",
        "Y25",
        "Y27",
        "Y29",
        "Y31",
        "Y33",
        "Y35",
        "Y37",
        "Y39",
    ],
    *["Y41", "Y43", "Y45", "Y47", "Y49", "Y51", "Y53", "Y55", "Y57"],
    *[
        "P01",
        "P03",
        "P05",
        "P07",
        "P09",
        "P11",
        "P13",
        "P15",
        "P17",
        "P19",
        "P21",
        "P23",
        "P25",
        "P27",
        "P29",
    ],
    *["F02", "F04", "F06", "F08", "F10", "F12", "F14", "F16", "F18", "F20", "F22", "F24"],
]


def test_no_case_is_left_out(maker):
    assert sorted(case[0].split("-")[0] for case in maker.CASES) == sorted(CASES)


@pytest.mark.parametrize("number", CASES)
def test_a_hostile_folder_affects_nothing_else(maker, tmp_path, monkeypatch, number):
    monkeypatch.chdir(tmp_path)
    identity, _, want, why, build = next(c for c in maker.CASES if c[0].startswith(number))
    root = tmp_path / identity
    maker.md(root / "bystander", maker.fm(name="bystander", desc="Healthy."))
    build(str(root))

    started = time.process_time()
    app = Satchel(skills=[root])
    session = app.session()
    assert len(session.prompt()) <= DEFAULT_BUDGET
    session.skill_style = SkillPrompt(budget=None)
    prompt = session.prompt()
    assert time.process_time() - started < 10, why

    catalog = app.catalog
    assert catalog.skills["bystander"].state == "ok"
    victims = [entry for entry in catalog.skills.values() if entry.name != "bystander"]
    if want == "reject":
        assert victims == [], why
        assert catalog.diagnostics, "a refusal says why"
    if want == "load":
        assert [entry.name for entry in victims] == ["victim"], why
        assert isinstance(victims[0].description, str)
    assert not has_hidden(prompt)
    assert prompt.count("<skill>") == len(catalog.skills) == prompt.count("</skill>")
    assert prompt.count("</available_skills>") == 1
    assert "<system>" not in prompt
    # F06 is a link directly in a folder that the user named: it is the user's own.
    assert ("OUTSIDE" in prompt) == (number == "F06")
    assert not (tmp_path / "PWNED").exists()
    for item in catalog.diagnostics:
        str(item).encode("utf-8", "surrogateescape")


def test_a_link_that_leaves_a_project_is_not_followed(maker, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path / "project/.agents/skills"
    root.mkdir(parents=True)
    maker.md(tmp_path / "outside", maker.fm())
    (root / "victim").symlink_to(tmp_path / "outside")
    catalog = Satchel(project=Project(tmp_path / "project", trust="code")).catalog
    assert not catalog.skills
    assert "source-link-outside" in [item.code for item in catalog.diagnostics]


@pytest.mark.parametrize("name", ["skills", "plugins"])
def test_a_folder_of_a_project_that_leads_out_is_not_searched(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    outside = tmp_path / "outside" / "a"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_text("---\nname: a\ndescription: Outside.\n---\n")
    (outside / "toolkit.yaml").write_text("name: a\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / name).symlink_to("../outside")
    catalog = Satchel(project=Project(tmp_path / "project", trust="code")).catalog
    assert not catalog.skills
    assert "a" not in catalog.plugins
    assert "source-link-outside" in [item.code for item in catalog.diagnostics]


def test_special_files_are_not_listed(maker, tmp_path):
    next(c for c in maker.CASES if c[0].startswith("F14"))[4](str(tmp_path))
    entry = Satchel(skills=[tmp_path]).catalog.skills["victim"]
    assert [file.name for file in entry.files] == ["SKILL.md"]
    assert {"source-special-file", "source-link-outside"} <= {d.code for d in entry.diagnostics}


def test_healthy_skills_load_beside_all_hostile_folders(maker, tmp_path):
    for identity, _, _, _, build in maker.CASES:
        if not identity.startswith(("P29", "F12", "Y57")):
            root = tmp_path / identity
            maker.md(root / "bystander", maker.fm(name="bystander", desc="Healthy."))
            build(str(root))
    catalog = Satchel(skills=[tmp_path]).catalog
    assert "bystander" in catalog.skills
    assert os.path.isdir(tmp_path)
