"""Commands of plugins for other clients, as skills that the user calls."""

import asyncio
import json

import pytest

from satchel import Satchel, Settings
from satchel.reports.serializer import shown
from satchel.reports.short_texts import status_label


@pytest.fixture
def bundle(tmp_path, write_files):
    """Write a Claude bundle with these files."""

    def write(files, name="demo", **fields):
        manifest = {".claude-plugin/plugin.json": json.dumps({"name": name} | fields)}
        return write_files(tmp_path / "plugins" / name, manifest | files)

    return write


@pytest.fixture
def app(tmp_path):
    return lambda: Satchel(plugins=[tmp_path / "plugins"], settings=Settings(mcp_servers=False))


def found(app, code):
    return [item for item in app.catalog.diagnostics if item.code == code]


def test_a_command_is_called_by_the_user_and_unseen_by_the_model(app, bundle):
    bundle({"commands/fix.md": "---\ndescription: Fix it.\n---\nFix $1 of $ARGUMENTS."})
    session = app().session()
    assert session.prompt() == ""
    assert "Fix a b of 'a b' c." in session.load_skill("fix", "'a b' c").text
    assert "Fix  of ." in session.load_skill("fix").text


def test_the_command_line_names_its_file_and_says_that_the_user_calls_it(app, bundle):
    bundle({"commands/git/push.md": "Push."})
    entry = app().catalog.skills["git-push"]
    assert [file["name"] for file in shown("skill", entry)["files"]] == ["push.md"]
    assert status_label(entry) == "ok, only the user calls it"


def test_what_only_claude_runs_is_named(app, bundle):
    bundle({"commands/a.md": "Now: !`git status`", "commands/b.md": "Not!`x` and `y`."})
    (problem,) = found(app(), "command-not-run")
    assert "'!`git status`' in its text" in problem.message
    assert problem.where.path.endswith("a.md")


def test_the_model_cannot_load_a_command(app, bundle):
    bundle({"commands/fix.md": "Fix it."})
    result = asyncio.run(app().session().call("load_skill", {"name": "fix"}))
    assert result.is_error


def test_a_skill_for_models_keeps_its_text_without_arguments(app, bundle, skill_text):
    bundle({"skills/cut/SKILL.md": skill_text("cut", body="awk '{print $1}'\n")})
    session = app().session()
    assert "awk '{print $1}'" in session.load_skill("cut").text
    assert "awk '{print x}'" in session.load_skill("cut", "x").text


def test_front_matter_that_is_not_yaml_still_describes_a_command(app, bundle):
    bundle({"commands/a.md": "---\nargument-hint: [file] [more]\ndescription: Do: it\n---\nText"})
    entry = app().catalog.skills["a"]
    assert (entry.description, entry.manifest.fields["argument-hint"]) == (
        "Do: it",
        "[file] [more]",
    )


def test_a_command_without_description_is_described_by_its_first_line(app, bundle):
    bundle({"commands/git/push.md": "\n# Push it\n\nNow."})
    entry = app().catalog.skills["git-push"]
    assert (entry.description, entry.is_for_model) == ("Push it", False)


def test_the_manifest_names_more_commands_and_none_outside(app, bundle, tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "out.md").write_text("Secret.")
    folder = bundle(
        {"more/a.md": "A.", "one/b.md": "B.", "one/c.md": "C."},
        commands=["./more", "./one/b.md", "../out.md"],
    )
    (folder / "more" / "link.md").symlink_to(tmp_path / "plugins" / "out.md")
    loaded = app()
    assert sorted(loaded.catalog.skills) == ["a", "b"]
    assert len(found(loaded, "source-link-outside")) == 2


def test_a_command_never_hides_a_skill_of_the_model(app, bundle, skill_text):
    bundle({"commands/plan.md": "Mine."}, name="a")
    bundle({"skills/plan/SKILL.md": skill_text("plan")}, name="b")
    loaded = app()
    assert loaded.catalog.skills["plan"].source == "b"
    assert "Mine." in loaded.session().load_skill("a:plan").text


def test_a_command_without_text_is_left_out(app, bundle):
    bundle({"commands/a.md": " \n", "commands/b.md": "B."})
    loaded = app()
    assert [entry.name for entry in loaded.catalog.skills.values()] == ["b"]
    assert len(found(loaded, "command-invalid")) == 1


def test_a_plugin_of_which_nothing_is_used_says_so(app, bundle):
    bundle({"agents/a.md": "", "hooks/hooks.json": "{}"})
    (item,) = app().catalog.plugins["demo"].diagnostics
    assert (item.code, item.severity) == ("plugin-unused", "warning")
    assert "only agents, hooks" in item.message


def test_other_parts_beside_a_command_are_named(app, bundle):
    bundle({"agents/a.md": "", "commands/a.md": "A."})
    (item,) = app().catalog.plugins["demo"].diagnostics
    assert (item.code, item.message.endswith("not its agents")) == ("plugin-parts-ignored", True)


def test_a_command_that_the_manifest_names_is_there_once(app, bundle):
    bundle(
        {"commands/fix.md": "Fix.", "more/add.md": "Add."}, commands=["./commands/fix.md", "./more"]
    )
    entries = [(entry.name, entry.state) for entry in app().catalog.all_skills]
    assert entries == [("add", "ok"), ("fix", "ok")]


@pytest.mark.parametrize("text", ["```bash\nnpm test\n```\n", "~~~\n\n# npm test\n~~~\n"])
def test_a_fence_describes_no_command(app, bundle, text):
    bundle({"commands/a.md": text})
    assert app().catalog.skills["a"].description == "npm test"
