"""The skills of servers: those that lie, and a satchel that serves them to another."""

import asyncio
import hashlib
import json
import os
import queue
import socket
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from described import satchel_of

from satchel import (
    ConflictError,
    RemoteClient,
    Satchel,
    SatchelError,
    Settings,
    ToolError,
)
from satchel.catalog.catalog_entries import Status
from satchel.groups.group_activation import Activation, view_of
from satchel.mcp.skill_resources import SkillEntryCache, find_file, read_file
from satchel.mcp_servers import resource_reader
from satchel.mcp_servers.server_addresses import HttpServer, StdioServer
from satchel.settings import Limits

pytestmark = pytest.mark.usefixtures("quick_starts")

LYING = str(Path(__file__).with_name("lying.py"))
ENOUGH = 120


def md(name="refunds", description="Give money back.", body="Read guide.md.", header=""):
    return f"---\nname: {name}\ndescription: {description}\n{header}---\n{body}\n"


class Book:
    """What the lying server says, and an honest way to begin."""

    def __init__(self, path):
        self.path = path
        self.said = {"skills": [[]], "contents": {}}

    def add(self, name="refunds", folder=None, files=None, page=0, **front):
        folder = folder or f"skill://{name}"
        header = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
        files = {"SKILL.md": md(name, header=header), "guide.md": "The guide.", **(files or {})}
        entry = {
            "uri": f"{folder}/SKILL.md",
            "frontmatter": {"name": name, "description": "Give money back.", **front},
            "resources": [],
        }
        for path, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            uri = f"{folder}/{path}"
            entry["resources"].append(
                {
                    "uri": uri,
                    "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                    "size": len(data),
                }
            )
            self.give(uri, data)
        while len(self.said["skills"]) <= page:
            self.said["skills"].append([])
        self.said["skills"][page].append(entry)
        self.write()
        return entry

    def give(self, uri, data):
        try:
            content = {"uri": uri, "text": data.decode()}
        except UnicodeDecodeError:
            content = {"uri": uri, "blob": b64encode(data).decode()}
        self.said["contents"][uri] = [content]
        self.write()

    def say(self, **fields):
        self.said |= fields
        self.write()

    def write(self):
        aside = self.path.with_suffix(".aside")
        aside.write_text(json.dumps(self.said))
        os.replace(aside, self.path)

    @property
    def server(self):
        self.write()
        return StdioServer(command=sys.executable, args=(LYING, str(self.path)))


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "lies.json")


@pytest.fixture
def app():
    with satchel_of() as created:
        yield created


@pytest.fixture
def carry(app, book):
    def carried(name="docs", **options):
        app.register_mcp_server(book.server, name=name, **options)
        return app.catalog

    return carried


def codes(app):
    return sorted(i.code for i in app.catalog.diagnostics if i.code.startswith("mcp-"))


def messages(app):
    return " ".join(i.message for i in app.catalog.diagnostics if i.code.startswith("mcp-"))


def call(session, tool, **arguments):
    return asyncio.run(session.call(tool, arguments))


def until(app, condition):
    """Return what is true at last, looking again at each change."""
    news = queue.SimpleQueue()
    undo = app.subscribe(news.put)
    try:
        while not (result := condition()):
            news.get(timeout=ENOUGH)
        return result
    finally:
        undo()


# ---- an honest server ----------------------------------------------------------------------


def test_the_skills_of_a_server_are_in_the_catalog_and_say_where_they_are(app, book, carry):
    book.add()
    entry = carry().skills["refunds"]
    assert (entry.source, entry.access.origin) == ("mcp:docs", "the MCP server docs")
    assert entry.path == "skill://docs/refunds"
    assert [file.name for file in entry.files] == ["SKILL.md", "guide.md"]
    assert app.catalog.skill("mcp:docs:refunds") is entry
    assert codes(app) == []


def test_they_are_in_the_prompt_and_are_loaded_and_read_like_any_other(app, book, carry):
    book.add()
    carry()
    session = app.session()
    assert "<name>refunds</name>" in session.prompt()
    assert "<location>" not in session.prompt()
    loaded = call(session, "load_skill", name="refunds").text
    assert "Read guide.md." in loaded
    assert "of the MCP server docs" in loaded
    assert "read_skill_file" in loaded
    for path in ("guide.md", "./guide.md", "skill://docs/refunds/guide.md"):
        assert call(session, "read_skill_file", skill="refunds", path=path, again=True).text == (
            "The guide."
        )
    assert session.load_skill("refunds").text == loaded


def test_nothing_is_read_ahead_of_need_and_nothing_twice(app, book, carry, tmp_path):
    reads = tmp_path / "reads"
    reads.touch()
    book.add()
    book.say(say_read=str(reads))
    carry()
    assert reads.read_text() == ""
    for _ in range(2):
        session = app.session()
        call(session, "load_skill", name="refunds")
        call(session, "read_skill_file", skill="refunds", path="guide.md")
    assert reads.read_text().split() == ["skill://refunds/SKILL.md", "skill://refunds/guide.md"]


def test_pictures_and_names_with_blanks_come_through(app, book, carry):
    picture = b"\x89PNG\r\n\x1a\n\0\xff"
    book.add(files={"a%20b/logo.png": picture})
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    result = call(session, "read_skill_file", skill="refunds", path="a b/logo.png")
    assert result.content[0].data == picture


def test_all_pages_are_listed(app, book, carry):
    for page, name in enumerate(("one", "two", "three")):
        book.add(name, page=page)
    assert sorted(carry().skills) == ["one", "three", "two"]


def test_a_change_is_heard_of(app, book, carry):
    book.add("one")
    carry()
    session = app.session()
    session.activate("docs")
    book.add("two")
    call(session, "announce")
    until(app, lambda: "two" in app.catalog.skills)


def test_a_server_that_is_down_loses_its_skills_and_they_come_back(app, book, carry):
    book.add()
    carry()
    session = app.session()
    session.activate("docs")
    call(session, "load_skill", name="refunds")
    gone = []
    undo = app.subscribe(lambda change: gone.append((change.event, change.name)))
    call(session, "die")
    until(app, lambda: ("removed", "refunds") in gone)
    until(app, lambda: "refunds" in app.catalog.skills)
    undo()
    assert call(session, "read_skill_file", skill="refunds", path="guide.md").text == "The guide."


def test_a_group_that_is_named_holds_the_skills_too(app, book, carry):
    book.add()
    app.create_group("work")
    carry(group="work")
    session = app.session()
    assert "refunds" not in session.prompt()
    session.activate("work")
    assert "refunds" in session.prompt()


def test_a_model_without_the_tools_for_skills_is_not_shown_what_it_cannot_read(app, book, carry):
    book.add()
    carry()
    assert "refunds" not in app.session(skill_tools=False).prompt()


def test_a_removed_server_takes_its_skills_with_it(app, book, carry):
    book.add()
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    entry = app.catalog.skills["refunds"]
    app.remove_mcp_servers("docs")
    assert "refunds" not in app.catalog.skills
    result = call(session, "read_skill_file", skill="refunds", path="guide.md")
    assert result.is_error
    assert "no longer available" in result.text
    assert app.catalog.skills == {}
    assert entry.access.origin == "the MCP server docs"


def test_a_stateless_server_gives_its_skills_too(app, book):
    book.add()
    client = RemoteClient(book.server, stateless=True)
    app.register_mcp_server(client, name="docs")
    session = app.session()
    assert "Read guide.md." in call(session, "load_skill", name="refunds").text
    book.give("skill://refunds/guide.md", b"Lies.")
    result = call(session, "read_skill_file", skill="refunds", path="guide.md")
    assert "other content than it listed" in result.text


def test_a_saved_session_knows_them_again(app, book, carry):
    book.add()
    carry()
    first = app.session()
    call(first, "load_skill", name="refunds")
    again = app.session()
    assert again.load_state_dict(first.state_dict()) == ()
    assert call(again, "read_skill_file", skill="refunds", path="guide.md").text == "The guide."


def test_long_instructions_are_read_page_by_page(book):
    book.add(files={"SKILL.md": md(body="word " * 20_000 + "end")})
    with satchel_of(result_text=64 * 1024) as app:
        app.register_mcp_server(book.server, name="docs")
        session = app.session()
        text = call(session, "load_skill", name="refunds").text
        assert "call read_skill_file" in text
        last = call(session, "read_skill_file", skill="refunds", path="SKILL.md", offset=95_000)
        assert "end" in last.text


def test_so_much_is_kept_and_no_more(app, book, carry, monkeypatch, tmp_path):
    reads = tmp_path / "reads"
    monkeypatch.setattr(resource_reader, "MAX_CACHED", 1_000)
    book.add(files={f"{name}.txt": name * 600 for name in "ab"})
    book.say(say_read=str(reads))
    carry()
    entry = app.catalog.skills["refunds"]
    for name in ("a.txt", "a.txt", "b.txt", "a.txt"):
        assert entry.reader.read(name, Limits()).data == name[0].encode() * 600
    assert [line[-5:] for line in reads.read_text().split()] == ["a.txt", "b.txt", "a.txt"]


# ---- never in the place of another ---------------------------------------------------------


def test_a_local_skill_keeps_its_name_whatever_came_first(app, book, carry, tmp_path, write_skill):
    book.add("pdf")
    assert carry().skills["pdf"].access.origin == "the MCP server docs"
    app.register_skill(write_skill(tmp_path / "skills", "pdf"))
    skills = app.catalog.skills
    assert (skills["pdf"].access.origin, skills["docs-pdf"].access.origin) == (
        "",
        "the MCP server docs",
    )
    assert skills["pdf"].state is Status.OK
    assert codes(app) == ["mcp-skill-renamed"]
    session = app.session()
    assert "Read guide.md." in call(session, "load_skill", name="docs-pdf").text
    app.remove_skill("pdf")
    assert app.catalog.skills["pdf"].access.origin == "the MCP server docs"


def test_a_broken_local_skill_keeps_its_name_too(book, tmp_path, write_skill):
    book.add("pdf")
    write_skill(tmp_path / "skills", "pdf", text="---\nname: [\n---\n")
    settings = Settings(limits=Limits(mcp_connect=60))
    with Satchel([tmp_path / "skills"], settings=settings) as own:
        own.register_mcp_server(book.server, name="docs")
        assert list(own.catalog.skills) == ["docs-pdf"]


def test_one_that_is_disabled_is_not_served(book, tmp_path, write_skill):
    book.add("pdf")
    config = tmp_path / "config"
    config.mkdir()
    (config / "satchel.toml").write_text('disable = ["mcp:docs:pdf"]\n')
    settings = Settings(limits=Limits(mcp_connect=60), config_folder=str(config))
    with Satchel(settings=settings) as own:
        own.register_mcp_server(book.server, name="docs")
        assert own.catalog.skill("pdf").state is Status.DISABLED
        with pytest.raises(SatchelError, match="disabled"):
            own.session().load_skill("pdf")
        own.register_skill(write_skill(tmp_path / "skills", "pdf"))
        assert own.catalog.skills["pdf"].access.origin == ""


def test_one_of_a_server_is_not_removed_but_the_way_is_named(app, book, carry):
    book.add("pdf")
    carry()
    with pytest.raises(ConflictError, match="MCP server") as raised:
        app.remove_skill("pdf")
    assert "mcp:docs:pdf" in raised.value.fix


def test_where_the_longer_name_is_taken_too_the_skill_is_left_out(
    app, book, carry, tmp_path, write_skill
):
    book.add("pdf")
    for name in ("pdf", "docs-pdf"):
        write_skill(tmp_path / "skills", name)
    app.register_skill(tmp_path / "skills")
    catalog = carry()
    assert {name: entry.access.origin for name, entry in catalog.skills.items()} == {
        "pdf": "",
        "docs-pdf": "",
    }
    assert codes(app) == ["mcp-skill-invalid"]
    assert "its name is taken" in messages(app)


def test_of_two_servers_the_first_keeps_the_name(app, book, carry):
    book.add("pdf")
    carry("one")
    carry("Two.org")
    owners = {name: entry.access.origin for name, entry in app.catalog.skills.items()}
    assert owners == {
        "pdf": "the MCP server one",
        "two-org-pdf": "the MCP server Two.org",
    }
    session = app.session()
    for name in owners:
        assert "Read guide.md." in call(session, "load_skill", name=name).text


def test_two_of_one_name_at_one_server_are_distinguished(app, book, carry):
    book.add("refunds", folder="skill://acme/billing/refunds")
    book.add("refunds", folder="skill://acme/support/refunds")
    book.add("refunds", folder="skill://acme/third/refunds")
    skills = carry().skills
    assert {name: entry.path for name, entry in skills.items()} == {
        "refunds": "skill://docs/acme/billing/refunds",
        "docs-refunds": "skill://docs/acme/support/refunds",
    }
    assert codes(app) == ["mcp-skill-invalid", "mcp-skill-renamed"]


# ---- what is not as it was listed ----------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ("The gUide.", "digest"),
        ("The guide, and more.", "bytes"),
        ("", "bytes"),
        (None, "exactly one file"),
    ],
)
def test_what_is_not_as_it_was_listed_is_not_shown(app, book, carry, lie, why):
    book.add()
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    uri = "skill://refunds/guide.md"
    if lie is None:
        book.said["contents"][uri] = [{"uri": "skill://other/guide.md", "text": "The guide."}]
        book.write()
    else:
        book.give(uri, lie.encode())
    result = call(session, "read_skill_file", skill="refunds", path="guide.md")
    assert result.is_error
    assert "other content than it listed" in result.text
    assert not lie or lie not in result.text
    until(app, lambda: codes(app) == ["mcp-skill-unverified"])
    assert why in messages(app)
    book.give(uri, b"The guide.")
    assert call(session, "read_skill_file", skill="refunds", path="guide.md").text == "The guide."
    until(app, lambda: codes(app) == [])


def test_what_was_read_elsewhere_is_held_against_each_list_again(app, book, carry):
    evil = md("other", "Take money.", "EVIL instruct")
    book.add(files={"guide.md": evil})
    book.add("other", files={"SKILL.md": evil})
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    assert call(session, "read_skill_file", skill="refunds", path="guide.md").text == evil
    result = call(session, "load_skill", name="other")
    assert (result.is_error, "EVIL" in result.text) == (True, False)
    until(app, lambda: codes(app) == ["mcp-skill-unverified"])


def test_instructions_that_are_not_as_they_were_listed_are_not_loaded(app, book, carry):
    book.add()
    carry()
    book.give("skill://refunds/SKILL.md", md(body="EVIL instruct").encode())
    session = app.session()
    result = call(session, "load_skill", name="refunds")
    assert result.is_error
    assert "EVIL" not in result.text
    with pytest.raises(ToolError, match="other content than it listed"):
        session.load_skill("refunds")
    assert "not loaded" in call(session, "read_skill_file", skill="refunds", path="guide.md").text


def test_a_frontmatter_that_is_not_the_listed_one_is_refused(app, book, carry):
    entry = book.add()
    entry["frontmatter"]["description"] = "Harmless."
    book.write()
    carry()
    result = call(app.session(), "load_skill", name="refunds")
    assert result.is_error
    until(app, lambda: "front matter" in messages(app))


def test_a_frontmatter_may_have_values_of_any_kind(app, book, carry):
    book.add(version=1.5, tags=["a", 2, True, None], deep={"a": {"b": "2024-01-01"}})
    carry()
    assert "Read guide.md." in call(app.session(), "load_skill", name="refunds").text


@pytest.mark.parametrize(
    "case",
    [
        ("yes", True, True),
        ("off", False, True),
        ("yes", False, False),
        ("1.10", 1.10, True),
        ("2024-01-01", "2024-01-01", True),
        ("[a, b]", ["a"], False),
        ("{a: 1}", {"a": 1, "b": 2}, False),
        ("5", {"a": 5}, False),
    ],
)
def test_parsers_may_differ_in_kinds_and_in_nothing_else(app, book, carry, case):
    ours, theirs, is_same = case
    entry = book.add(files={"SKILL.md": md(header=f"x: {ours}\n")})
    entry["frontmatter"]["x"] = theirs
    book.write()
    carry()
    assert call(app.session(), "load_skill", name="refunds").is_error is not is_same


def test_content_that_changes_after_the_list_is_listed_again(app, book, carry):
    book.add()
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    book.said["skills"] = [[]]
    book.add(files={"guide.md": "The new guide."})
    assert call(session, "read_skill_file", skill="refunds", path="guide.md").is_error
    digest = hashlib.sha256(b"The new guide.").hexdigest()
    until(app, lambda: digest in str(app.catalog.skills["refunds"].files) and codes(app) == [])
    result = call(session, "read_skill_file", skill="refunds", path="guide.md")
    assert result.text == "The new guide."


def test_a_file_that_is_not_listed_is_not_read(app, book, carry):
    book.add()
    book.give("skill://refunds/secret.md", b"secret")
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    for path in ("secret.md", "../refunds/secret.md", "skill://refunds/secret.md"):
        result = call(session, "read_skill_file", skill="refunds", path=path)
        assert result.is_error
        assert "There is no file" in result.text


# ---- what cannot be used -------------------------------------------------------------------


def _resource(entry, **changed):
    entry["resources"].append({**entry["resources"][1], **changed})


def _many(entry):
    for number in range(10_000):
        _resource(entry, uri=f"skill://refunds/{number}.txt")


SPOILT = {
    "10,002 files": _many,
    "not a valid file name": lambda e: _resource(e, uri="skill://refunds/%2e%2e/%2e%2e/etc/passwd"),
    "is not a valid file name": lambda e: _resource(e, uri="skill://refunds/a/../../x"),
    "a quoted slash": lambda e: _resource(e, uri="skill://refunds/a%2f..%2fx"),
    "not in its folder": lambda e: _resource(e, uri="file:///etc/passwd"),
    "twice": _resource,
    "bytes together": lambda e: _resource(e, uri="skill://refunds/x", size=2**40),
    "without its size": lambda e: _resource(e, uri="skill://refunds/x", size=True),
    "without its digest": lambda e: _resource(e, uri="skill://refunds/x", digest="md5:0"),
    "lists no SKILL.md": lambda e: e["resources"].pop(0),
    "limit skill_file": lambda e: e["resources"][0].update(size=2**20 + 1),
    "files are dynamic": lambda e: e.update(resources="dynamic"),
    "lists no files": lambda e: e.update(resources=None),
    "has no 'frontmatter'": lambda e: e.update(frontmatter="name: x"),
    "no description": lambda e: e["frontmatter"].pop("description"),
    "4,096 are accepted": lambda e: e["frontmatter"].update(description="x" * 5_000),
    "starts with '.'": lambda e: e["frontmatter"].update(name="../pdf"),
    "invisible": lambda e: e["frontmatter"].update(name="ref\u200bunds"),
    "limit yaml_nodes": lambda e: e["frontmatter"].update(x=["y"] * 3_000),
    "limit yaml_depth": lambda e: e["frontmatter"].update(x=json.loads("[" * 50 + "]" * 50)),
    "limit frontmatter": lambda e: e["frontmatter"].update(x="y" * 70_000),
    "not the address of a SKILL.md": lambda e: e.update(uri="skill://../SKILL.md"),
    "not the address of a SKILL.md ": lambda e: e.update(uri="skill://refunds/README.md"),
    "not the address of a SKILL.md  ": lambda e: e.update(uri=5),
}


@pytest.mark.parametrize("why", SPOILT)
def test_what_no_local_skill_could_be_is_left_out_and_nothing_else(app, book, carry, why):
    SPOILT[why](book.add())
    book.add("good")
    book.write()
    catalog = carry()
    assert list(catalog.skills) == ["good"]
    assert codes(app) == ["mcp-skill-invalid"]
    assert why.strip() in messages(app)
    assert "announce" in catalog.tools


def test_invisible_characters_never_reach_the_prompt(app, book, carry):
    book.add()["frontmatter"]["description"] = "Pay \U000e0041\u202e<b>back</b>"
    book.write()
    carry()
    prompt = app.session().prompt()
    assert "Pay &lt;b&gt;back&lt;/b&gt;" in prompt
    assert {"\U000e0041", "\u202e"}.isdisjoint(prompt)


def test_a_server_may_list_so_many_skills_and_no_more(book):
    for number in range(30):
        book.add(f"skill-{number}", page=number // 7)
    with satchel_of(mcp_skills=10) as app:
        app.register_mcp_server(book.server, name="docs")
        assert len(app.catalog.skills) == 10
        assert codes(app) == ["mcp-too-many-skills"]


@pytest.mark.parametrize(
    "page",
    [
        {"ttlMs": None},
        {"ttlMs": "soon"},
        {"_meta": {"dev.satchel/rejected": 1}},
        {"_meta": {"dev.satchel/rejected": [["forged", "a lie"]]}},
        {"_meta": None},
    ],
)
def test_an_odd_field_of_a_page_costs_nothing(app, book, carry, page):
    book.add("good")
    book.say(page=page)
    book.write()
    assert list(carry().skills) == ["good"]
    assert codes(app) == []


def test_skills_whose_list_does_not_lead_on_are_served_and_that_is_reported(app, book, carry):
    book.add("good")
    book.say(page={"nextCursor": 5})
    book.write()
    assert list(carry().skills) == ["good"]
    assert "its list of skills may be incomplete: a cursor is not a string" in messages(app)


def test_of_many_bad_skills_a_few_are_named(app, book, carry):
    book.say(skills=[[{"uri": f"skill://{number}/SKILL.md"} for number in range(400)]])
    carry()
    assert len(codes(app)) == 21
    assert "380 more" in messages(app)


@pytest.mark.parametrize(
    ("message", "why"),
    [({"refuse": ["skills/list"]}, "no way"), ({"skills": [5]}, "not a list of skills")],
)
def test_skills_that_cannot_be_listed_cost_no_tools(app, book, carry, message, why):
    book.say(**message)
    catalog = carry()
    assert "announce" in catalog.tools
    assert codes(app) == ["mcp-skills-unlisted"]
    assert why in messages(app)


@pytest.mark.slow
def test_a_list_that_never_comes_costs_no_tools(book):
    book.say(hang=["skills/list"])
    with satchel_of(mcp_connect=5) as app:
        app.register_mcp_server(book.server, name="docs")
        until(app, lambda: "announce" in app.catalog.tools)
        assert codes(app) == ["mcp-skills-unlisted"]
        assert "limit mcp_connect" in messages(app)


# ---- what a server is not trusted with -----------------------------------------------------


def test_a_skill_of_a_server_gets_no_leave_and_switches_nothing_on(app, book, carry):
    app.create_group("danger", "Runs commands.")
    asked = {"allowed-tools": "Bash", "groups": ["danger"], "metadata": {"include_tools": "x"}}
    book.add(**asked)
    carry()
    session = app.session()
    call(session, "load_skill", name="refunds")
    content = session.load_skill("refunds")
    assert (content.allowed_tools, content.activated, session._session_state.preapproved) == (
        (),
        (),
        (),
    )
    assert "danger" not in session.active_groups


def test_no_script_of_a_server_is_run(app, book, carry, tmp_path, write_skill):
    book.add(files={"scripts/evil.py": "raise SystemExit(5)"})
    carry()
    session = app.session(scripts=True)
    call(session, "load_skill", name="refunds")
    assert "run_skill_script" not in str(session.schemas())
    folder = write_skill(tmp_path / "skills", "local")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "good.py").write_text("print(1)")
    app.register_skill(folder)
    result = call(session, "run_skill_script", skill="refunds", script="scripts/evil.py")
    assert result.is_error
    assert "cannot be run: it comes from the MCP server docs" in result.text
    text = call(session, "read_skill_file", skill="refunds", path="scripts/evil.py").text
    assert text == "raise SystemExit(5)"


# ---- time ----------------------------------------------------------------------------------


def test_a_read_has_the_time_limit_of_the_server(app, book, carry):
    book.add()
    book.say(hang=["resources/read"])
    carry(timeout=0.2)
    result = call(app.session(), "load_skill", name="refunds")
    assert result.is_error
    assert "within 0.2 s" in result.text


async def test_a_read_that_is_interrupted_is_cancelled_at_the_server(app, book, carry, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    book.add()
    book.say(hang=["resources/read"], say_read=str(pipe), say_cancelled=str(pipe))
    await asyncio.to_thread(carry)
    # Read and written, so that it does not end with one of its writers.
    with open(os.open(pipe, os.O_RDWR)) as reported:
        session = app.session()
        reading = asyncio.create_task(session.call("load_skill", {"name": "refunds"}, call_id="a"))
        assert await asyncio.to_thread(reported.readline) == "skill://refunds/SKILL.md\n"
        assert session.interrupt("a") == 1
        assert (await reading).is_interrupted
        assert await asyncio.to_thread(reported.readline) == "cancelled\n"


def test_reading_from_a_server_that_was_let_go_is_an_error_of_its_own(app, book, carry):
    book.add()
    entry = carry().skills["refunds"]
    app.close()
    with pytest.raises(ToolError):
        entry.reader.read("SKILL.md", Limits())


# ---- a satchel that serves, and one that carries -------------------------------------------


@pytest.fixture
def home(tmp_path, write_skill):
    folder = write_skill(tmp_path / "served", "pdf", text=md("pdf", body="Split pages."))
    (folder / "references").mkdir()
    (folder / "references" / "guide one.md").write_text("Guide\r\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    return folder


def serving(folder, *options):
    return (sys.executable, "-m", "satchel", "serve", "--skills", str(folder), *options)


@pytest.fixture(params=["stdio", "http"])
def other(request, home):
    """Serve the skills from a process of their own."""
    if request.param == "stdio":
        command, *args = serving(home.parent)
        yield StdioServer(command=command, args=tuple(args))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        serving(home.parent, "--http", f"127.0.0.1:{port}"), stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if str(port) in line:
            break
    yield HttpServer(f"http://127.0.0.1:{port}/mcp")
    process.terminate()
    process.communicate(timeout=ENOUGH)


def test_one_satchel_carries_the_skills_of_another(app, home, other):
    app.register_mcp_server(other, name="docs")
    assert app.catalog.skills["pdf"].access.origin == "the MCP server docs", app.catalog.diagnostics
    session = app.session()
    assert "Split pages." in call(session, "load_skill", name="pdf").text
    read = call(session, "read_skill_file", skill="pdf", path="references/guide one.md")
    assert read.text == "Guide\n"
    assert call(session, "read_skill_file", skill="pdf", path="logo.png").content[0].data == (
        (home / "logo.png").read_bytes()
    )
    # An edit on disk there is heard of here.
    (home / "SKILL.md").write_text(md("pdf", "Other words.", "Other pages."))
    until(app, lambda: app.catalog.skills["pdf"].description == "Other words.")
    assert "Other pages." in call(session, "load_skill", name="pdf").text


SERVING_ON = """
import sys
import anyio
from mcp.server.stdio import stdio_server
from satchel import Satchel, Settings, StdioServer
from satchel.mcp.mcp_server import SatchelServer
from satchel.settings import Limits

async def main():
    app = Satchel([sys.argv[2]], settings=Settings(limits=Limits(mcp_connect=60)))
    app.register_mcp_server(StdioServer(command=sys.executable, args=sys.argv[3:]), name="inner")
    server = SatchelServer(app, local=False).server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
    app.close()

anyio.run(main)
"""


@pytest.mark.parametrize("is_taken", [False, True])
def test_what_is_carried_is_served_on(app, book, tmp_path, write_skill, is_taken):
    book.add(version=2, files={"deep/er.md": "Deep."})
    local = tmp_path / "local"
    local.mkdir()
    if is_taken:
        write_skill(local, "refunds")
    (tmp_path / "on.py").write_text(SERVING_ON)
    args = (str(tmp_path / "on.py"), "-", str(local), *book.server.args)
    app.register_mcp_server(StdioServer(command=sys.executable, args=args), name="outer")
    results = {entry.path: name for name, entry in app.catalog.skills.items()}
    address = "skill://outer/inner-refunds/refunds" if is_taken else "skill://outer/refunds"
    name = results[address]
    session = app.session()
    text = call(session, "load_skill", name=name).text
    assert "Read guide.md." in text
    assert str(tmp_path) not in text
    assert call(session, "read_skill_file", skill=name, path="deep/er.md").text == "Deep."
    book.give("skill://refunds/guide.md", b"Lies.")
    result = call(session, "read_skill_file", skill=name, path="guide.md")
    assert result.is_error
    assert "Lies" not in result.text


def test_what_is_carried_is_listed_as_its_server_lists_it(app, book, carry):
    entry = book.add(version=2)
    carry()
    view = view_of(app.catalog, Activation())
    assert SkillEntryCache(Limits()).listed(view.skills) == [entry]
    book.give("skill://refunds/SKILL.md", b"lies")
    skill, path = find_file("skill://refunds/SKILL.md", view)
    with pytest.raises(ToolError):
        asyncio.run(read_file("skill://refunds/SKILL.md", skill, path, Limits()))
