"""What the user switches on and off while we watch."""

import os
import shutil

import pytest

from satchel import Project

TOOLS = """
    from satchel import tool

    @tool
    def greet(name: str) -> str:
        "Greet somebody."
        return "Hello " + name
"""


@pytest.fixture
def choices(config_folder):
    """The user's file, in a folder that is not there yet."""
    return config_folder / "satchel.toml"


def say(choices, text: str) -> None:
    """Write the file at one stroke."""
    choices.parent.mkdir(exist_ok=True)
    fresh = choices.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, choices)


def codes(app) -> set[str]:
    return {item.code for item in app.catalog.diagnostics} - {
        "plugin-not-enabled",
        "tool-undescribed",
    }


def test_a_file_that_comes_changes_and_goes_is_followed(watched, root, choices, write_skill):
    write_skill(root, "pdf")
    write_skill(root, "doc")
    with watched(skills=[root]) as seen:
        say(choices, "disable = ['pdf']")
        seen.until_names("doc")
        seen.until_as_cold()
        change = seen.until_event("changed", "pdf")
        assert "disable = ['pdf']" in change.message
        say(choices, "disable = ['doc']")
        seen.until_names("pdf")
        seen.until_as_cold()
        choices.unlink()
        seen.until_names("doc", "pdf")
        seen.until_as_cold()
        say(choices, "disable = ['*']")
        seen.until_names()
        shutil.rmtree(choices.parent)
        seen.until_names("doc", "pdf")
        seen.until_as_cold()


def test_the_file_of_a_project_is_followed(watched, root, tmp_path, choices, write_skill):
    write_skill(root, "pdf")
    with watched(skills=[root], project=Project(tmp_path, trust="data")) as seen:
        say(tmp_path / "satchel.toml", "disable = ['pdf']")
        seen.until_names()
        seen.until_as_cold()
        say(choices, "enable = ['pdf']")
        (tmp_path / "satchel.toml").unlink()
        seen.until_names("pdf")
        seen.until_as_cold()


def test_while_the_file_is_broken_its_last_good_reading_continues(
    watched, root, choices, write_skill
):
    write_skill(root, "pdf")
    say(choices, "disable = ['pdf']")
    with watched(skills=[root]) as seen:
        say(choices, "disable = ['pdf'")
        seen.until(lambda: "choices-unreadable" in codes(seen.app))
        seen.until_names()
        write_skill(root, "doc")
        seen.until_names("doc")
        assert seen.app.catalog.skill("pdf").state == "disabled"
        say(choices, "")
        seen.until_names("doc", "pdf")
        assert codes(seen.app) == set()
        seen.until_as_cold()


@pytest.mark.parametrize("broken", ["disable = ['demo'", "disable = 'demo'"])
def test_a_start_with_a_broken_file_is_as_cold_before_and_after_its_repair(
    watched, tmp_path, choices, write_plugin, broken
):
    write_plugin(tmp_path / "plugins", "demo", "active: true\nnotes: Ask.\n", tools=TOOLS)
    say(choices, broken)
    with watched(plugins=[tmp_path / "plugins"]) as seen:
        assert [*seen.app.catalog.tools] == []
        say(choices, f"find_folders = 'x'\n{broken}")
        seen.app.refresh()
        seen.until_as_cold()
        assert [*seen.app.catalog.tools] == []
        say(choices, "")
        seen.until_event("changed", "greet")
        seen.until_as_cold()
        # From now on there is a last good version.
        say(choices, broken)
        seen.until(lambda: "choices-unreadable" in codes(seen.app))
        assert [*seen.app.catalog.tools] == ["greet"]


def test_a_plugin_goes_and_comes_with_all_it_brings(
    watched, tmp_path, choices, write_plugin, write_skill
):
    folder = write_plugin(tmp_path / "plugins", "demo", "active: true\nnotes: Ask.\n", tools=TOOLS)
    write_skill(folder / "skills", "manners")
    with watched(plugins=[tmp_path / "plugins"]) as seen:
        say(choices, "disable = ['plugin:demo']")
        seen.until_event("removed", "greet")
        seen.until_as_cold()
        assert seen.app.session().prompt() == ""
        write_plugin(
            tmp_path / "plugins", "demo", "active: true\n", tools=TOOLS.replace("greet", "hail")
        )
        say(choices, "")
        seen.until_event("added", "hail")
        seen.until_names("manners")
        seen.until_as_cold()


@pytest.mark.parametrize("when", ["off-then-on", "at-once"])
def test_a_stale_skill_that_was_disabled_comes_back_as_it_is_on_disk(
    watched, root, choices, write_skill, when
):
    write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        if when == "off-then-on":
            write_skill(root, "pdf", text="broken")
            seen.until_event("stale", "pdf")
        say(choices, "disable = ['pdf']")
        seen.until(lambda: seen.app.catalog.skill("pdf").state == "disabled")
        write_skill(root, "pdf", text="broken")
        say(choices, "")
        seen.until(lambda: seen.app.catalog.skill("pdf").state == "failed")
        seen.until_as_cold()


def test_a_stale_skill_that_was_disabled_by_its_good_name_comes_back_as_it_is_on_disk(
    watched, root, choices, skill_text, write_skill
):
    write_skill(root, "folder", text=skill_text("pdf"))
    with watched(skills=[root]) as seen:
        write_skill(root, "folder", text="broken")
        seen.until_event("stale", "pdf")
        say(choices, "disable = ['pdf']")
        seen.until(lambda: seen.app.catalog.skill("pdf").state == "disabled")
        seen.until_as_cold()
        say(choices, "")
        seen.until(lambda: seen.app.catalog.skill("pdf").state == "failed")
        seen.until_as_cold()


def test_a_stale_plugin_that_was_disabled_comes_back_as_it_is_on_disk(
    watched, tmp_path, choices, write_plugin
):
    write_plugin(tmp_path / "plugins", "demo", tools=TOOLS)
    with watched(plugins=[tmp_path / "plugins"]) as seen:
        write_plugin(tmp_path / "plugins", "demo", tools="raise RuntimeError")
        seen.until_event("stale", "demo")
        say(choices, "disable = ['demo']")
        seen.until(lambda: seen.app.catalog.plugin("demo").state == "disabled")
        seen.until_as_cold()
        say(choices, "")
        seen.until(lambda: seen.app.catalog.plugin("demo").state == "failed")
        seen.until_as_cold()


def test_what_is_off_and_edited_is_as_it_is_on_disk_when_it_is_on_again(
    watched, root, choices, write_skill
):
    write_skill(root, "pdf")
    say(choices, "disable = ['pdf']")
    with watched(skills=[root]) as seen:
        write_skill(root, "pdf", description="New.")
        seen.until_as_cold()
        say(choices, "")
        seen.until_names("pdf")
        assert seen.app.catalog.skills["pdf"].description == "New."
        seen.until_as_cold()


def test_what_did_not_change_makes_no_new_generation(watched, root, choices, write_skill):
    write_skill(root, "pdf")
    write_skill(root, "doc")
    say(choices, "disable = ['pdf']")
    with watched(skills=[root]) as seen:
        before = seen.app.catalog
        say(choices, "# the same\ndisable = ['pdf']")
        seen.app.refresh()
        assert seen.app.catalog is before
