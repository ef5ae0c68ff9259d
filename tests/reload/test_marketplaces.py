"""Edits of a marketplace while it is watched."""

import json

import pytest


@pytest.fixture
def listing(tmp_path):
    folder = tmp_path / "market" / ".claude-plugin"
    folder.mkdir(parents=True)

    def write(*names, **fields):
        entries = [{"name": name, "source": f"./{name}", **fields} for name in names]
        (folder / "marketplace.json").write_text(json.dumps({"name": "m", "plugins": entries}))
        return folder.parent

    return write


def test_an_entry_comes_changes_and_goes(watched, listing, write_skill):
    folder = listing("a")
    for name in ("a", "b"):
        write_skill(folder / name / "skills", f"use-{name}")
    with watched(plugins=[folder]) as seen:
        seen.until_names("use-a")
        listing("a", "b")
        seen.until_names("use-a", "use-b")
        seen.until_as_cold()
        listing("a", "b", version="2")
        seen.until(lambda: seen.app.catalog.plugins["b"].version == "2")
        seen.until_as_cold()
        listing("b")
        seen.until_names("use-b")
        seen.until_as_cold()


def test_a_folder_of_an_entry_that_appears_later_is_loaded(watched, listing, write_skill):
    folder = listing("a")
    with watched(plugins=[folder]) as seen:
        write_skill(folder / "a" / "skills", "use-a")
        seen.until_names("use-a")
        seen.until_as_cold()


def test_an_entry_narrows_its_skills(watched, listing, write_skill):
    folder = listing("a", strict=False)
    for name in ("one", "two"):
        write_skill(folder / "a" / "skills", name)
    with watched(plugins=[folder]) as seen:
        seen.until_names("one", "two")
        listing("a", strict=False, skills=["./skills/two"])
        seen.until_names("two")
        seen.until_as_cold()


def test_a_broken_list_keeps_the_last_good_plugins(watched, listing, write_skill):
    folder = listing("a")
    write_skill(folder / "a" / "skills", "use-a")
    with watched(plugins=[folder]) as seen:
        seen.until_names("use-a")
        (folder / ".claude-plugin" / "marketplace.json").write_text("{")
        seen.until(lambda: str(seen.app.catalog.plugins["a"].state) == "stale")
        assert list(seen.app.catalog.skills) == ["use-a"]
        listing("a")
        seen.until(lambda: str(seen.app.catalog.plugins["a"].state) == "ok")
        seen.until_as_cold()


def test_a_marketplace_that_is_deleted_takes_its_plugins_along(watched, listing, write_skill):
    folder = listing("a")
    write_skill(folder / "a" / "skills", "use-a")
    with watched(plugins=[folder.parent]) as seen:
        seen.until_names("use-a")
        (folder / ".claude-plugin" / "marketplace.json").unlink()
        seen.until_names()
        seen.until_as_cold()


@pytest.mark.parametrize("has_skill", [False, True])
def test_commands_come_change_and_go(watched, tmp_path, write_skill, has_skill):
    folder = tmp_path / "plugins" / "demo"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "demo"}')
    names = ["skilled"] if has_skill else []
    for name in names:
        write_skill(folder / "skills", name)
    with watched(plugins=[folder.parent]) as seen:
        (folder / "commands").mkdir()
        (folder / "commands" / "a.md").write_text("One.")
        seen.until_names(*names, "a")
        seen.until_as_cold()
        (folder / "commands" / "a.md").write_text("Two.")
        seen.until(lambda: "Two." in seen.app.session().load_skill("a").text)
        (folder / "commands" / "b.md").write_text("B.")
        seen.until_names(*names, "a", "b")
        seen.until_as_cold()
        (folder / "commands" / "a.md").unlink()
        seen.until_names(*names, "b")
        seen.until_as_cold()


def test_the_context_of_a_gemini_extension_comes_changes_and_goes(watched, tmp_path):
    folder = tmp_path / "plugins" / "demo"
    folder.mkdir(parents=True)
    (folder / "gemini-extension.json").write_text('{"name": "demo"}')
    with watched(plugins=[folder.parent]) as seen:
        for text in ("One.", "Two."):
            (folder / "GEMINI.md").write_text(text)
            seen.until(lambda text=text: text in seen.app.session().prompt())
            seen.until_as_cold()
        (folder / "GEMINI.md").unlink()
        seen.until(lambda: seen.app.session().prompt() == "")
        seen.until_as_cold()
