"""A new skill cannot take the name of a served one by sorting earlier, hot or at a cold start."""

import json
import shutil
from pathlib import Path

import pytest

from satchel import Project, Satchel, Settings, Skill
from satchel.configuration.selection import selection_path
from satchel.errors import ConflictError, SatchelError


@pytest.fixture
def root(tmp_path):
    return tmp_path / "skills"


@pytest.fixture
def add(root, write_skill):
    """Return a function that writes a skill whose description is its folder."""
    return lambda folder, name="pdf", base=root: write_skill(
        (base / folder).parent, Path(folder).name, text=_text(name, folder)
    )


def _text(name, folder):
    return f"---\nname: {name}\ndescription: From {folder}. Use it for tests.\n---\nDo {folder}.\n"


def served(app, name="pdf"):
    return app.catalog.skills[name].path.rpartition("skills/")[2]


def states(app):
    return {entry.key: str(entry.state) for entry in app.catalog.all_skills}


def codes(app):
    return [item.code for item in app.catalog.diagnostics if item.code.startswith("skill-")]


def choose(**keys):
    path = Path(selection_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key} = {json.dumps(names)}\n" for key, names in keys.items()))


def test_a_new_folder_does_not_take_the_name_of_a_served_skill(add, root):
    add("team/pdf")
    app = Satchel(root)
    add("a/pdf")
    app.refresh()
    for running in (app, Satchel(root)):
        assert served(running) == "team/pdf"
        assert states(running) == {"a/pdf": "held", "team/pdf": "ok"}
        assert "From team/pdf" in running.session().prompt()
        (problem,) = (it for it in running.catalog.diagnostics if it.code == "skill-name-held")
        assert (problem.where.path, str(root / "team/pdf") in problem.message) == (
            str(root / "a/pdf"), True,
        )  # fmt: skip
        assert f"satchel enable {root}:a/pdf" in problem.fix


def test_a_held_skill_is_not_read_by_any_of_its_names(add, root):
    add("team/pdf")
    Satchel(root)
    add("pdf")
    add("a/pdf")
    app = Satchel(root)
    # The owner and a held one have the address `skills:pdf`.
    for name in ("pdf", f"{root}:pdf", f"{root}:team/pdf"):
        assert app.catalog.skill(name).key == "team/pdf"
        assert "Do team/pdf." in app.session().load_skill(name).text
    with pytest.raises(ConflictError) as raised:
        app.session().load_skill(f"{root}:a/pdf")
    assert "is held" in str(raised.value)
    assert "satchel enable" in str(raised.value.fix)


def test_the_user_can_choose_the_new_one(add, root):
    add("team/pdf")
    Satchel(root)
    add("a/pdf")
    app = Satchel(root)
    choose(enable=[f"{root}:a/pdf"])
    app.refresh()
    for running in (app, Satchel(root)):
        assert served(running) == "a/pdf"
        assert states(running) == {"a/pdf": "ok", "team/pdf": "shadowed"}
    choose(enable=[])
    app.refresh()
    assert served(app) == served(Satchel(root)) == "team/pdf"


def test_an_address_that_both_have_chooses_neither(add, root):
    add("team/pdf")
    choose(enable=[f"{root}:pdf", "pdf", "*"])
    Satchel(root)
    add("pdf")
    app = Satchel(root)
    assert states(app) == {"pdf": "held", "team/pdf": "ok"}
    (problem,) = (it for it in app.catalog.diagnostics if it.code == "skill-name-held")
    assert problem.fix == "rename one of the two"


@pytest.mark.parametrize("is_hot", [True, False])
def test_an_owner_that_is_gone_or_disabled_leaves_its_name(add, root, is_hot):
    add("team/pdf")
    add("team/docx", "docx")
    Satchel(root)
    add("a/pdf")
    add("a/docx", "docx")
    app = Satchel(root)
    assert (served(app), served(app, "docx")) == ("team/pdf", "team/docx")
    shutil.rmtree(root / "team/pdf")
    choose(disable=[f"{root}:team/docx"])
    if is_hot:
        app.refresh()
    else:
        app = Satchel(root)
    assert (served(app), served(app, "docx")) == ("a/pdf", "a/docx")
    assert "skill-name-held" not in codes(app)


def test_an_owner_that_is_moved_or_renamed_stays_served(add, root):
    add("team/pdf")
    app = Satchel(root)
    (root / "team").rename(root / "new")
    app.refresh()
    assert served(app) == served(Satchel(root)) == "new/pdf"
    add("a/pdf")
    app.refresh()
    assert served(app) == served(Satchel(root)) == "new/pdf"


def test_a_broken_owner_keeps_its_name_from_a_skill_that_sorts_earlier(add, root):
    add("team/pdf")
    add("z/pdf")
    app = Satchel(root)
    add("a/pdf")
    (root / "team/pdf/SKILL.md").write_text("---\nname: [\n")
    for running in (app, Satchel(root)):
        running.refresh()
        # As documented, a broken skill never shadows a good one: that which comes next is served.
        assert served(running) == "z/pdf"
        assert states(running)["a/pdf"] == "held"
    shutil.rmtree(root / "z")
    app.refresh()
    assert states(app) == {"a/pdf": "held", "team/pdf": "stale"}
    assert states(Satchel(root)) == {"a/pdf": "held", "team/pdf": "failed"}
    add("team/pdf")
    app.refresh()
    assert states(app) == states(Satchel(root)) == {"a/pdf": "held", "team/pdf": "ok"}


@pytest.mark.parametrize("broken", ["---\nname: [x\n", "---\nname: pdf\n---\nDo.\n", ""])
def test_a_broken_owner_has_the_name_that_it_served_whatever_its_folder_is_called(
    add, root, broken
):
    add("team/other")
    Satchel(root)
    add("a/pdf")
    (root / "team/other/SKILL.md").write_text(broken)
    app = Satchel(root)
    assert states(app) == {"a/pdf": "held", "team/other": "failed"}
    assert [skill.name for skill in app.catalog.all_skills] == ["pdf", "pdf"]
    add("team/other")
    app.refresh()
    assert served(app) == "team/other"
    add("team/other", name="new")  # it gave the name up
    app.refresh()
    (root / "team/other/SKILL.md").write_text(broken)
    assert states(Satchel(root)) == {"a/pdf": "ok", "team/other": "failed"}
    shutil.rmtree(root / "team/other")
    app.refresh()
    for running in (app, Satchel(root)):
        assert states(running) == {"a/pdf": "ok"}


def test_a_copy_that_sorts_earlier_is_not_served_in_place_of_its_owner(add, root):
    folder = add("team/pdf")
    (folder / "run.py").write_text("good")
    app = Satchel(root)
    shutil.copytree(root / "team/pdf", root / "a/pdf")
    (root / "a/pdf/run.py").write_text("evil")  # of the same size, so it passes for a copy
    app.refresh()
    for running in (app, Satchel(root)):
        assert served(running) == "team/pdf"
        assert codes(running) == ["skill-duplicate"]
    (root / "a/pdf/run.py").write_text("worse")
    app.refresh()
    assert states(app) == states(Satchel(root)) == {"a/pdf": "held", "team/pdf": "ok"}


def test_without_a_record_the_order_decides_and_stays(add, root):
    add("team/pdf")
    add("a/pdf")
    for _ in range(2):
        app = Satchel(root)
        assert states(app) == {"a/pdf": "ok", "team/pdf": "shadowed"}
        assert codes(app) == ["skill-shadowed"]


def test_the_older_owner_counts_when_it_returns(add, root):
    add("team/pdf")
    app = Satchel(root)
    shutil.rmtree(root / "team")
    add("a/pdf")
    app.refresh()
    app.refresh()
    assert served(app) == "a/pdf"
    add("team/pdf")
    app.refresh()
    assert states(app) == states(Satchel(root)) == {"a/pdf": "held", "team/pdf": "ok"}


# ---- what the documentation calls an override --------------------------------------------------


def test_a_folder_that_is_named_first_overrides(add, tmp_path):
    vendor, mine = tmp_path / "vendor/skills", tmp_path / "mine/skills"
    add("pdf", base=vendor)
    Satchel(vendor)
    add("pdf", base=mine).joinpath("SKILL.md").write_text(_text("pdf", "mine"))
    app = Satchel(skills=[mine, vendor])
    assert app.catalog.skills["pdf"].path == str(mine / "pdf")
    assert codes(app) == ["skill-shadowed"]


def test_a_nearer_precedence_overrides(add, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    add("z/pdf", base=tmp_path / "home/skills")
    from satchel import conventional_roots

    assert served(Satchel(roots=conventional_roots())) == "z/pdf"
    add("a/pdf", base=project / "skills")
    for _ in range(2):
        app = Satchel(project=Project(project, trust="data"), roots=conventional_roots())
        assert app.catalog.skills["pdf"].path == str(project / "skills/a/pdf")
    add("0/pdf", base=project / "skills")
    app = Satchel(project=Project(project, trust="data"), roots=conventional_roots())
    assert app.catalog.skills["pdf"].path == str(project / "skills/a/pdf")


def test_the_application_overrides_and_owns_no_name(add, root):
    add("team/pdf")
    app = Satchel(root)
    app.register_skill(Skill(name="pdf", description="Of the host.", body="Host."))
    assert app.catalog.skills["pdf"].source == "host"
    assert not app._reconciler.config.owners.of("skill", "pdf")[1:]


def test_a_folder_of_the_users_home_that_comes_earlier_takes_no_name(add, tmp_path, monkeypatch):
    from satchel import conventional_roots

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    add("pdf", base=tmp_path / "home/.satchel/skills")
    app = Satchel(roots=conventional_roots())
    add("pdf", base=tmp_path / "home/.agents/skills")
    (tmp_path / "home/.agents/skills/pdf/SKILL.md").write_text(_text("pdf", "elsewhere"))
    app.refresh()
    for running in (app, Satchel(roots=conventional_roots())):
        assert running.catalog.skills["pdf"].source == "~/.satchel/skills"
        (problem,) = (it for it in running.catalog.diagnostics if it.code == "skill-name-held")
        assert "satchel enable '~/.agents/skills:pdf'" in problem.fix


def test_a_new_plugin_does_not_take_the_name_of_a_skill_of_another(add, tmp_path, write_plugin):
    plugins = tmp_path / "plugins"
    for name in ("maps", "a-maps"):
        write_plugin(plugins, name)
        add("pdf", base=plugins / name / "skills")
        (plugins / name / "skills/pdf/SKILL.md").write_text(_text("pdf", name))
        app = Satchel(plugins=[plugins])
        assert app.catalog.skills["pdf"].source == "maps"
    assert codes(app) == ["skill-name-held"]
    choose(enable=["a-maps:pdf"])
    assert Satchel(plugins=[plugins]).catalog.skills["pdf"].source == "a-maps"


def test_a_skill_that_a_model_may_use_takes_the_name_of_a_command(add, tmp_path):
    plugin = tmp_path / "plugins/maps"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin/plugin.json").write_text('{"name": "maps"}')
    (plugin / "commands").mkdir()
    (plugin / "commands/pdf.md").write_text("Make a PDF.")
    app = Satchel(plugins=[tmp_path / "plugins"])
    assert not app.catalog.skills["pdf"].is_for_model
    add("pdf", base=plugin / "skills")
    app.refresh()
    assert app.catalog.skills["pdf"].is_for_model
    assert codes(app) == ["skill-shadowed"]


# ---- locks, and the record ---------------------------------------------------------------------


def test_a_held_skill_is_in_no_lock_and_with_a_lock_that_decides(add, root, tmp_path):
    add("team/pdf")
    app = Satchel(root)
    add("a/pdf")
    app.refresh()
    lock = tmp_path / "satchel.lock"
    lock.write_text(app.lock_contents(lock).text)
    assert "a/pdf" not in lock.read_text()
    with pytest.raises(SatchelError, match="a/pdf"):
        Satchel(root, locked=lock)
    assert served(Satchel(root, locked=lock, frozen=True)) == "team/pdf"
    choose(enable=[f"{root}:a/pdf"])
    lock.write_text(Satchel(root).lock_contents(lock).text)
    choose(enable=[])
    # Elsewhere there is no such record, and the same lock serves the same skills.
    assert served(Satchel(root, locked=lock)) == "a/pdf"
    assert served(Satchel(root)) == "team/pdf"


def test_the_record_is_read_at_a_start_only_if_a_name_is_contested(add, root, monkeypatch):
    for number in range(3):
        add(f"team/s{number}", f"s{number}")
    Satchel(root)
    monkeypatch.setattr("satchel.trust.name_owners._parsed", lambda _: pytest.fail("it was read"))
    app = Satchel(root)
    assert len(app.catalog.skills) == 3
    monkeypatch.undo()


def test_a_skill_that_was_added_during_an_import_is_recorded_after_it(
    add, root, tmp_path, write_plugin
):
    go = tmp_path / "go"
    code = f"import time\nfrom pathlib import Path\nwhile not Path({str(go)!r}).exists():\n"
    write_plugin(tmp_path / "plugins", "slow", tools=f"{code}    time.sleep(0.01)\n")
    add("docx", "docx")
    settings = Settings(plugin_wait=0, mcp_servers=False)
    app = Satchel(skills=[root], plugins=[tmp_path / "plugins"], settings=settings)
    add("team/pdf")
    app._reconciler.refresh_in_background(None)
    owners = app._reconciler.config.owners
    assert app.is_importing
    assert not owners.of("skill", "pdf")
    go.touch()
    app.refresh()
    assert owners.of("skill", "pdf") == (str(root / "team/pdf"),)


def test_a_folder_without_rights_to_write_protects_names_while_it_runs(add, root, tmp_path, caplog):
    (tmp_path / "state").write_text("no folder")
    add("team/pdf")
    app = Satchel(root, settings=Settings(state_folder=str(tmp_path / "state")))
    add("a/pdf")
    app.refresh()
    assert served(app) == "team/pdf"
    assert "owners of names cannot be recorded" in caplog.text
