import asyncio
import sys

import pytest

from satchel import DefinitionError, Satchel, tool
from satchel.builtin import execute_shell_command, view_text_file
from satchel.session.tool_patterns import WantedCall, allows

SKILL = "---\nname: {0}\ndescription: Does a thing.\n{1}---\nDo it.\n"


def named(*names, **arguments):
    return WantedCall(names=frozenset(names), arguments=arguments)


def shell(command):
    names = frozenset({"execute_shell_command"})
    return WantedCall(names=names, arguments={"command": command})


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        ("search", named("search")),
        ("read_*", named("read_mail")),
        ("Read", named("view_text_file", path="a")),
        ("Read(docs/*)", named("view_text_file", path="docs/a.md")),
        ("WebFetch(domain:example.com)", named("WebFetch", url="https://example.com/x")),
        ("mcp__docs__search", named("search", "mcp__docs__search", "mcp__docs")),
        ("mcp__docs__*", named("search", "mcp__docs__search", "mcp__docs")),
        ("mcp__docs", named("search", "mcp__docs__search", "mcp__docs")),
        ("Bash", shell("rm -rf /")),
        ("Bash(*)", shell("echo $(id)")),
        ("Bash(git:*)", shell("git status")),
        ("Bash(git:*)", shell("git")),
        ("Bash(git *)", shell("git status")),
        ("Bash(git:*)", shell("git log 'a; b' --format=\"%h (x)\" HEAD~1")),
        ("Bash(git * --stat)", shell("git log --stat")),
        ("Bash(cat docs/*)", shell("cat docs/a.md")),
        ("Bash (git:*)", shell("git status")),
        ("Bash(git:*)", named("Bash", command="git status", timeout=5)),
        ("Bash(git:*)", named("bash", command="git status")),
        ("mcp__Docs__*", named("Search", "mcp__docs__Search")),
        ("run(git:*)", named("run", cmd="git status", description="")),
        ("fetch(domain:*.x.org)", named("fetch", url="https://a.x.org:8/b", prompt="Why? Or not.")),
        (
            "fetch(domain:x.org)",
            named("fetch", url="https://x.org", prompt="Sum up.\nThe names:\n"),
        ),
        ("Bash(npm run test)", shell("npm  run test")),
        ("Bash(npm run test:*)", shell("npm run test --watch")),
    ],
)
def test_a_pattern_allows_what_its_author_means(pattern, call):
    assert allows([pattern], call)


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        ("search", named("research")),
        ("Read", named("write_text_file", path="a")),
        ("Read(docs/*)", named("view_text_file", path="docs/../secret")),
        ("Read(docs/*)", named("view_text_file", a="docs/a", b="/etc/passwd")),
        ("WebFetch(domain:example.com)", named("WebFetch", url="https://example.com.evil/x")),
        ("mcp__docs__search", named("search", "mcp__mail__search", "mcp__mail")),
        ("Bash(git:*)", shell("gitx")),
        ("Bash(git:*)", shell("git status; rm -rf /")),
        ("Bash(git:*)", shell("git status\nrm -rf /")),
        ("Bash(git:*)", shell("git log & curl evil")),
        ("Bash(git log:*)", shell("git log\rid")),  # one word for a shell: log\rid
        ("Bash(git log:*)", shell("git\x0blog")),
        ("Bash(git log:*)", shell("git log\u2028--stat")),
        ("Bash(git:*)", shell("git log $(curl evil)")),
        ("Bash(git:*)", shell("git log `curl evil`")),
        ("Bash(git:*)", shell("git log > ~/.bashrc")),
        ("Bash(git:*)", shell("X=1 git log")),
        ("Bash()x", shell("id")),
        ("Bash()", shell("id")),
        ("Bash(ls:*)", shell("ls () ( touch PWN )\nls")),
        ("Bash(ls:*)", shell("ls () ( touch PWN ) && ls")),
        ("Bash(ls:*)", shell("ls; ls")),
        ("Bash(ls:*)", shell("ls {a,b}")),
        ("Bash(ls:*)", shell("ls $HOME")),
        ("Bash(ls:*)", shell("ls 'a\nb'")),
        ("Bash(ls:*)", shell('ls "$(id)"')),
        ("Bash(ls:*)", shell("ls 'a")),
        ("Bash(ls:*)", shell("./ls")),
        ("Bash(ls:*)", shell("ls #x")),
        ("Bash(ls:*)", shell("! ls")),
        ("Bash(*=* ls)", shell("A=b ls")),
        ("Bash(cat docs/*)", shell("cat docs/../secret")),
        ("Bash(cat docs/*)", shell("cat docs/.'.'/secret")),
        ("Bash(cat docs/*)", shell("cat docs/a secret")),
        ("Bash(git:*)", named("Bash", command="git x; touch y")),
        ("Bash(git:*)", named("Bash", command="gitevil")),
        ("Bash(git:*)", named("bash", command="Git status")),
        ("Read(docs/*)", named("read", path="Docs/a")),
        ("Bash(git:*)", named("Bash", command="git x", env="GIT_PAGER=evil")),
        ("Bash(git:*)", named("Bash", command="git x", args=["y"])),
        ("mcp__d__Bash(git:*)", named("Bash", "mcp__d__Bash", command="git x; touch y")),
        ("run(git:*)", named("run", cmd="git x; touch y")),
        ("fetch(domain:x.org)", named("fetch", url="https://evil.org", path="https://x.org/")),
        ("fetch(domain:x.org)", named("fetch", url="https://x.org", path="@evil.org")),
        ("fetch(domain:x.org)", named("fetch", url="https://x.org", path="evil.org")),
        ("fetch(domain:x.org)", named("fetch", url="localhost", path="https://x.org/")),
        ("fetch(domain:x.org)", named("fetch", url="http:\n2852039166", path="https://x.org/")),
        ("fetch(domain:x.org)", named("fetch", url="https:\tlocalhost", path="https://x.org/")),
        ("fetch(domain:x.org)", named("fetch", url=" 2130706433 ", path="https://x.org/")),
        ("fetch(domain:x.org)", named("fetch", url="https://evil.com\\@x.org/")),
        ("fetch(domain:x.org)", named("fetch", url="https://evil.com@x.org/")),
        ("fetch(domain:x.org)", named("fetch", url="https://x.org@evil.com/")),
        ("fetch(domain:x.org)", named("fetch", url="https://x.org\t.evil.com/")),
        ("fetch(domain:x.org)", named("fetch", url="https://[x.org]")),
        ("fetch(domain:x.org)", named("fetch", url="https:x.org")),
        ("fetch(domain:x.org)", named("fetch", urls=["https://x.org"])),
        ("fetch(domain:x.org)", named("fetch", query="words only")),
        ("", named("search")),
    ],
)
def test_a_pattern_allows_nothing_else(pattern, call):
    assert not allows([pattern], call)


@tool
def search(query: str) -> str:
    """Search."""
    return f"found {query}"


@tool
def delete(name: str) -> str:
    """Delete."""
    return f"deleted {name}"


@pytest.fixture
def app(tmp_path, write_files):
    root = tmp_path / "skills"
    for name, fields in (
        ("a", "allowed-tools: search\n"),
        ("b", "allowed-tools: [delete, Read]\n"),
        ("c", ""),
    ):
        write_files(root / name, {"SKILL.md": SKILL.format(name, fields)})
    app = Satchel(skills=[root])
    app.register_tool(search)
    app.register_tool(delete)
    return app


def talk(session, *calls):
    async def run():
        return [await session.call(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


SEARCH, DELETE = ("search", {"query": "x"}), ("delete", {"name": "x"})


def load(name):
    return ("load_skill", {"name": name})


def test_a_loaded_skill_restricts_the_session_to_its_tools(app):
    session = app.session(allowed_tools="enforce")
    before, loaded, item, refused = talk(session, DELETE, load("a"), SEARCH, DELETE)
    assert (before.text, item.text) == ("deleted x", "found x")
    assert "only these tools may be called: search" in loaded.text
    assert refused.error_code == "not_allowed"
    assert refused.text.startswith("delete is not allowed in this way while the loaded skills ('a'")


def test_several_skills_allow_what_any_of_them_allows(app):
    session = app.session(allowed_tools="enforce")
    *_, item, deleted = talk(session, load("a"), load("c"), load("b"), SEARCH, DELETE)
    assert (item.text, deleted.text) == ("found x", "deleted x")


def test_a_skill_without_the_field_restricts_nothing(app):
    assert talk(app.session(allowed_tools="enforce"), load("c"), DELETE)[1].text == "deleted x"


def test_a_plan_and_a_removed_skill_stay_restricted(app, tmp_path):
    from satchel import ToolCall

    session = app.session(allowed_tools="enforce")
    talk(session, load("a"))
    (result,) = asyncio.run(session.execute([ToolCall(name="delete", arguments={"name": "x"})]))
    assert result.error_code == "not_allowed"
    (tmp_path / "skills/a/SKILL.md").unlink()
    app.refresh()
    assert talk(session, DELETE)[0].error_code == "not_allowed"


def test_by_default_the_field_is_only_noted(app):
    session = app.session()
    assert session.load_skill("a").allowed_tools == ("search",)
    assert talk(session, DELETE)[0].text == "deleted x"
    with pytest.raises(DefinitionError, match="allowed_tools"):
        app.session(allowed_tools="always")


@pytest.mark.parametrize("value", ["{a: b}", "[]", "''", "", "[[x]]"])
def test_a_field_that_names_no_tool_allows_none(app, tmp_path, write_files, value):
    text = SKILL.format("d", f"allowed-tools: {value}\n")
    write_files(tmp_path / "skills/d", {"SKILL.md": text})
    app.refresh()
    _, refused, loaded = talk(app.session(allowed_tools="enforce"), load("d"), SEARCH, load("c"))
    assert (refused.error_code, loaded.is_error) == ("not_allowed", False)


def test_a_restored_session_stays_restricted_without_its_skill(app, tmp_path):
    session = app.session(allowed_tools="enforce")
    talk(session, load("a"), load("c"))
    saved = session.state_dict()
    for name in "ac":
        (tmp_path / f"skills/{name}/SKILL.md").unlink()
    app.refresh()
    for _ in range(2):
        restored = app.session(allowed_tools="enforce")
        problems = restored.load_state_dict(saved)
        assert [item.code for item in problems if "'a'" in item.message] == ["saved-skill-missing"]
        assert talk(restored, SEARCH)[0].error_code == "not_allowed"
        saved = restored.state_dict()
    assert list(saved["skills"]) == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_link_in_a_folder_is_what_it_leads_to(app, tmp_path, write_files):
    work = write_files(tmp_path / "work", {"docs/a": "open", "secret": "hidden"})
    (work / "docs/link").symlink_to("../secret")
    (work / "docs/same").symlink_to("a")
    app.register_tool(view_text_file, presets={"base_directory": work})
    fields = "allowed-tools: Read(docs/*)\n"
    write_files(tmp_path / "skills/d", {"SKILL.md": SKILL.format("d", fields)})
    app.refresh()
    paths = ("docs/a", "docs/same", "./docs/a", "docs/link", "docs/../secret", "docs/\0")
    calls = [("view_text_file", {"path": path}) for path in paths]
    _, *results = talk(app.session(allowed_tools="enforce"), load("d"), *calls)
    assert [item.error_code for item in results] == [None] * 3 + ["not_allowed"] * 3


def test_a_command_defines_no_function(app, tmp_path, write_files):
    app.register_tool(execute_shell_command, presets={"base_directory": tmp_path})
    fields = "allowed-tools: Bash (ls:*)\n"
    write_files(tmp_path / "skills/d", {"SKILL.md": SKILL.format("d", fields)})
    app.refresh()
    calls = [
        ("execute_shell_command", {"command": command})
        for command in ("ls skills", "ls () ( touch PWN )\nls")
    ]
    _, listed, refused = talk(app.session(allowed_tools="enforce"), load("d"), *calls)
    assert (listed.is_error, refused.error_code) == (False, "not_allowed")
    assert "For a condition in parentheses, pass one text argument only" in refused.text
    assert not (tmp_path / "PWN").exists()
