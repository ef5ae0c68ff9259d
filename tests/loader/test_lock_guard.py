"""With a lock file, only the bytes that were locked are served."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from satchel import DefinitionError, Limits, Project, Satchel, SatchelError, Settings, ToolCall
from satchel.catalog.catalog_entries import PluginContribution, Status, ToolContribution
from satchel.files.file_reader import UnreadableFileError
from satchel.formats.lock_file import Lock
from satchel.loader.lock_entries import lock_places, offer_entry, server_entry, tool_entry
from satchel.loader.lock_guard import LockGuard, load_guard
from satchel.loader.pass_provider import Candidate
from satchel.mcp_servers.pin_store import ServerOrigin
from satchel.mcp_servers.server_addresses import StdioServer
from satchel.mcp_servers.server_offers import OfferedPrompt, OfferedResource
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.providers.skill import Skill, find_skill
from satchel.sources.search_roots import Precedence
from satchel.sources.skill_files import SkillAccess


@pytest.fixture
def here(tmp_path, write_skill, write_plugin) -> Path:
    skill = write_skill(tmp_path / "skills", "greet")
    (skill / "notes.md").write_text("Notes.")
    (skill / "scripts").mkdir()
    (skill / "scripts/run.py").write_text("import helper")
    (skill / "scripts/helper.py").write_text("print('ran')")
    write_plugin(
        tmp_path / "plugins", "demo",
        tools="from satchel import tool\n\n@tool\ndef echo(text: str) -> str:\n    'Say.'\n"
        "    return text\n",
    )  # fmt: skip
    return tmp_path


@pytest.fixture
def opened(here, request):
    """Open the folders, locked."""

    def opened(**options) -> Satchel:
        app = Satchel(here / "skills", here / "plugins", settings=Settings(cache=False), **options)
        request.addfinalizer(app.close)
        return app

    return opened


@pytest.fixture
def file(here, opened) -> Path:
    path = here / "satchel.lock"
    path.write_text(opened().lock_contents(path).text)
    return path


def codes(app: Satchel) -> list[str]:
    return sorted(item.code for item in app.catalog.diagnostics if item.code.startswith("lock-"))


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n# changed\n")


def test_what_is_locked_is_served(opened, file):
    for options in ({}, {"frozen": True}):
        app = opened(locked=file, **options)
        assert (set(app.catalog.skills), codes(app)) == ({"greet"}, [])
        assert app.session(enable=["echo"]).step().call_sync("echo", {"text": "a"}).text == "a"


def test_a_skill_of_a_server_cannot_be_locked_and_is_not_used(file):
    skill = Skill(name="remote", description="Does a thing.", body="Do it.")
    finding = find_skill(skill, "box", Precedence.EXPLICIT, Limits())
    fetched = SimpleNamespace(access=SkillAccess(is_fetched=True))
    guard = load_guard(file, is_frozen=False)
    judged = guard.skill(replace(finding, remote=fetched))
    assert judged.manifest is None
    assert [item.code for item in judged.diagnostics] == ["lock-new"]


def test_only_locked_prompts_and_resources_of_a_server_are_offered(tmp_path):
    places = lock_places(tmp_path / "satchel.lock")
    origin = ServerOrigin("file", "box", json.dumps(["box", [], None, None]))
    box = StdioServer(command="box")
    server = ServerConfig(name="box", server=box, origin=origin, path="/mcp.json")
    entry = server_entry(server, places)
    items = [
        *(OfferedPrompt(name=name) for name in ("locked", "new")),
        *(OfferedResource(name="n", uri=uri) for uri in ("note://locked", "note://new")),
    ]
    lock = Lock([entry, offer_entry(entry, items[0]), offer_entry(entry, items[2])])
    contribution = PluginContribution(
        name="mcp:box", source="mcp", scope=Precedence.EXPLICIT, path="", unit="", rank=(),
        digest="", offers=tuple(SimpleNamespace(offered=item) for item in items),
    )  # fmt: skip
    candidate = Candidate(contribution=contribution, origin=origin)
    guard = LockGuard(lock, "satchel.lock", places, is_frozen=False)
    judged = guard.plugin(candidate, [server], {})
    assert [offer.offered for offer in judged.offers] == [items[0], items[2]]
    assert [item.code for item in judged.diagnostics] == ["lock-new", "lock-new"]


def test_the_tools_of_a_server_are_compared_with_its_own_entry(tmp_path):
    places = lock_places(tmp_path / "satchel.lock")
    servers = [
        ServerConfig(
            name=name, server=StdioServer(command=name), path="/mcp.json",
            origin=ServerOrigin("file", name, json.dumps([name, [], None, None])),
        )
        for name in ("first", "second")
    ]  # fmt: skip
    definitions = [ToolDefinition(name=name) for name in ("locked", "new")]
    entries = [server_entry(server, places) for server in servers]
    lock = Lock([*entries, tool_entry(entries[1], definitions[0])])
    guard = LockGuard(lock, "satchel.lock", places, is_frozen=False)
    tools = tuple(
        ToolContribution(
            name=item.name, description="D.", path="", version="1",
            tool=SimpleNamespace(definition=item),
        )
        for item in definitions
    )  # fmt: skip
    contribution = PluginContribution(
        name="mcp:second", source="mcp:second", scope=Precedence.EXPLICIT, path="", unit="",
        rank=(), digest="", tools=tools,
    )  # fmt: skip
    candidate = Candidate(contribution=contribution, origin=servers[1].origin)
    judged = guard.plugin(candidate, servers, {})
    assert [tool.name for tool in judged.tools] == ["locked"]
    assert [tool.name for tool in judged.unusable] == ["new"]


def test_a_command_is_locked_too(opened, here, write_files):
    manifest = {".claude-plugin/plugin.json": '{"name": "git"}'}
    write_files(here / "plugins/git", manifest | {"commands/push.md": "Push."})
    path = here / "satchel.lock"
    path.write_text(opened().lock_contents(path).text)
    assert "Push." in opened(locked=path).session().load_skill("push").text
    append(here / "plugins/git/commands/push.md")
    assert "push" not in opened(locked=path, frozen=True).catalog.skills


def test_a_broken_skill_and_one_that_is_given_in_code_are_not_compared(file):
    guard = load_guard(file, is_frozen=True)
    skill = Skill(name="given", description="Does a thing.", body="Do it.")
    finding = find_skill(skill, "box", Precedence.EXPLICIT, Limits())
    broken = replace(finding, manifest=None, remote=None)
    assert guard.skill(finding) is finding
    assert guard.skill(broken) is broken


def test_what_cannot_be_read_has_no_digest_and_is_not_used(opened, here, monkeypatch):
    def fail(*_: object) -> str:
        raise UnreadableFileError("permission denied")

    monkeypatch.setattr("satchel.loader.lock_entries.digest_of_finding", fail)
    path = here / "satchel.lock"
    path.write_text(opened().lock_contents(path).text)
    app = opened(locked=path, frozen=True)
    assert not app.catalog.skills
    assert "echo" not in app.catalog.tools


@pytest.mark.parametrize("how", ["unreadable", "other files"])
def test_a_skill_that_changes_after_it_was_compared_is_not_used(opened, file, monkeypatch, how):
    def read(_finding: object) -> dict[str, str]:
        if how == "unreadable":
            raise UnreadableFileError("it changes")
        return {"SKILL.md": "other"}  # of no file that is there

    monkeypatch.setattr("satchel.trust.locked_skill_reader.served_files", read)
    app = opened(locked=file, frozen=True)
    assert not app.catalog.skills
    assert "lock-changed" in codes(app)


def test_a_skill_with_scripts_that_cannot_be_compared_is_not_used(opened, here):
    (here / "skills/greet/scripts").mkdir(exist_ok=True)
    (here / "skills/greet/scripts/run.py").touch()
    path = here / "satchel.lock"
    path.write_text(opened().lock_contents(path).text)
    assert "greet" in opened(locked=path).catalog.skills
    os.mkfifo(here / "skills/greet/pipe")
    with pytest.raises(SatchelError, match="greet"):
        opened(locked=path)
    assert "greet" not in opened(locked=path, frozen=True).catalog.skills


def test_frozen_without_a_file_and_a_missing_file_are_errors(opened, here):
    with pytest.raises(DefinitionError, match="needs a lock file"):
        opened(frozen=True)
    with pytest.raises(SatchelError, match="cannot be read"):
        opened(locked=here / "none.lock")


@pytest.mark.parametrize(
    "name", ["skills/greet/SKILL.md", "skills/greet/scripts/helper.py", "plugins/demo/tools.py"]
)
def test_a_change_is_an_error_and_with_frozen_it_is_not_served(opened, file, here, name):
    append(here / name)
    with pytest.raises(SatchelError, match="changed"):
        opened(locked=file)
    app = opened(locked=file, frozen=True)
    assert codes(app)[0] == "lock-changed"
    is_skill = name.startswith("skills")
    assert ("greet" in app.catalog.skills, "echo" in app.catalog.tools) == (not is_skill, is_skill)


def test_a_data_file_of_a_plugin_counts_too(opened, file, here):
    (here / "plugins/demo/table.json").write_text("{}")
    assert "echo" not in opened(locked=file, frozen=True).catalog.tools


def test_something_missing_is_an_error_also_with_frozen(opened, file, here):
    shutil.rmtree(here / "skills/greet")
    for options in ({}, {"frozen": True}):
        with pytest.raises(SatchelError, match="removed skill greet"):
            opened(locked=file, **options)


def test_of_many_differences_ten_are_named_and_the_others_counted(opened, file, here, write_skill):
    for number in range(12):
        write_skill(here / "skills", f"new-{number:02}")
    with pytest.raises(SatchelError, match=r"added skill new-09.*; 2 more \(") as caught:
        opened(locked=file)
    assert "new-10" not in str(caught.value)


def test_while_a_plugin_is_held_something_else_that_is_missing_is_an_error(opened, file, here):
    append(here / "plugins/demo/tools.py")
    shutil.rmtree(here / "skills/greet")
    with pytest.raises(SatchelError, match="removed skill greet"):
        opened(locked=file, frozen=True)


def test_no_version_of_a_plugin_gets_values_that_are_not_locked(opened, here):
    project = Project(here, trust="code")
    choices = here / "satchel.toml"
    choices.write_text("[config.demo]\nkey = 'locked'\n")
    path = here / "satchel.lock"
    path.write_text(opened(project=project).lock_contents(path).text)
    app = opened(project=project, locked=path)
    assert "echo" in app.catalog.tools
    choices.write_text("[config.demo]\nkey = 'other'\n")
    app.refresh()
    assert app.catalog.plugin("demo").state is Status.REVOKED
    assert "echo" not in app.catalog.tools


def test_after_the_start_a_change_keeps_the_last_good_version(opened, file, here):
    app = opened(locked=file)
    append(here / "skills/greet/SKILL.md")
    append(here / "plugins/demo/tools.py")
    app.refresh()
    assert app.catalog.skills["greet"].state is Status.STALE
    assert app.catalog.tools["echo"].state is Status.STALE
    assert codes(app) == ["lock-changed"] * len(codes(app))


@pytest.mark.parametrize("name", ["notes.md", "SKILL.md"])
def test_a_file_that_changes_after_it_was_compared_is_not_served(opened, file, here, name):
    session = opened(locked=file, frozen=True).session()
    session.step().call_sync("load_skill", {"name": "greet"})
    append(here / "skills/greet" / name)
    call = ToolCall(name="read_skill_file", arguments={"skill": "greet", "path": name})
    (result,) = session.step().execute_sync([call])
    assert result.is_error
    assert f"'{name}' changed since the skill was locked" in result.text


@pytest.mark.parametrize("name", ["scripts/run.py", "scripts/helper.py", "scripts/new.py"])
def test_no_script_runs_in_a_folder_that_changed(opened, file, here, name):
    session = opened(locked=file, frozen=True).session(scripts=True)
    session.step().call_sync("load_skill", {"name": "greet"})
    call = ToolCall(
        name="run_skill_script", arguments={"skill": "greet", "script": "scripts/run.py"}
    )
    (result,) = session.step().execute_sync([call])
    assert "ran" in result.text
    path = here / "skills/greet" / name
    path.write_text("print('evil')")
    (result,) = session.step().execute_sync([call])
    assert result.is_error
    assert f"'{name}' changed" in result.text


def test_scripts_of_a_skill_run_while_the_lock_file_in_it_is_written_again(here, request):
    file = here / "skills/greet/satchel.lock"
    file.write_text(Satchel(file.parent).lock_contents(file).text)
    app = Satchel(file.parent, locked=file, frozen=True)
    request.addfinalizer(app.close)
    session = app.session(scripts=True)
    session.step().call_sync("load_skill", {"name": "greet"})
    run = {"skill": "greet", "script": "scripts/run.py"}
    append(file)
    assert "ran" in session.step().call_sync("run_skill_script", run).text
    (file.parent / "scripts/satchel.lock").touch()
    refused = session.step().call_sync("run_skill_script", run)
    assert (refused.is_error, "scripts/satchel.lock" in refused.text) == (True, True)


def test_frozen_watches_nothing(opened, file, here, monkeypatch):
    watched = []
    monkeypatch.setattr("satchel.files.watcher._Watch", lambda *_: watched.append(1))
    app = opened(locked=file, frozen=True)
    generation = app.catalog.generation
    with app.watching():
        append(here / "skills/greet/SKILL.md")
    assert (watched, app.catalog.generation) == ([], generation)


def test_a_link_that_is_swapped_counts_by_its_content(opened, file, here):
    skill = here / "skills/greet"
    (skill / "notes.md").rename(skill / "real.md")
    (skill / "notes.md").symlink_to("real.md")
    assert "greet" not in opened(locked=file, frozen=True).catalog.skills


def test_times_modes_and_the_place_of_the_folder_do_not_count(opened, file, here, tmp_path):
    moved = tmp_path / "elsewhere"
    for name in ("skills", "plugins", "satchel.lock"):
        source = here / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        moved.mkdir(exist_ok=True)
        copy(source, moved / name)
    (moved / "skills/greet/notes.md").chmod(0o600)
    (moved / "plugins/demo/__pycache__").mkdir(exist_ok=True)
    (moved / "plugins/demo/__pycache__/x.pyc").write_bytes(b"x")
    app = Satchel(moved / "skills", moved / "plugins", locked=moved / "satchel.lock")
    assert codes(app) == []
    app.close()


def test_anybody_can_compute_the_digest_with_sha256sum(file, here):
    line = (
        "find . -type f -not -path '*/__pycache__/*' -printf '%P\\0' | LC_ALL=C sort -z"
        " | xargs -0 sha256sum -z | sha256sum"
    )
    for folder in ("skills/greet", "plugins/demo"):
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=here / folder, check=True, capture_output=True, text=True
        )
        assert done.stdout.split()[0] in file.read_text()


@pytest.fixture
def package(tmp_path, install, monkeypatch, request):
    """Install a package, and lock it; return its folder and a function that opens it."""
    site = tmp_path / "site"
    install(
        site, points="[satchel.plugins]\nacme = acmew.tools\n",
        files=("acmew/__init__.py", "acmew/tools.py", "acmew/__pycache__/tools.pyc"),
    )  # fmt: skip
    (site / "acmew").mkdir()
    (site / "acmew/__init__.py").touch()
    (site / "acmew/tools.py").write_text("VALUE = 'good'\n")
    monkeypatch.syspath_prepend(str(site))
    file = tmp_path / "satchel.lock"

    def open_package(**options) -> Satchel:
        app = Satchel(entry_points="acme", settings=Settings(cache=False), **options)
        request.addfinalizer(app.close)
        return app

    def open_frozen(*, run_code: bool = False) -> Satchel:
        return open_package(locked=file, frozen=True, run_code=run_code)

    file.write_text(open_package(run_code=False).lock_contents(file).text)
    return site / "acmew", open_frozen


def test_a_forged_compiled_file_of_a_locked_package_is_not_used(package):
    folder, open_package = package
    source = folder / "tools.py"
    status, content = source.stat(), source.read_text()
    source.write_text(content.replace("good", "evil"))
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    py_compile.compile(str(source))
    source.write_text(content)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    app = open_package(run_code=True)
    assert codes(app) == []
    assert sys.modules["acmew.tools"].VALUE == "good"


@pytest.mark.parametrize(
    "name",
    ["extra.py", "extra.pyc", "extra.so", "sub/extra.py", "tools/__init__.py", "../acmew.so"],
)
def test_a_module_that_was_added_to_an_installed_package_counts(package, name):
    folder, open_package = package
    assert codes(open_package()) == []
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    assert codes(open_package()) == ["lock-changed"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_that_was_added_to_an_installed_package_counts(package, tmp_path, is_folder):
    folder, open_package = package
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/code.py").touch()
    target = "elsewhere" if is_folder else "elsewhere/code.py"
    (folder / ("extra" if is_folder else "extra.py")).symlink_to(tmp_path / target)
    assert codes(open_package()) == ["lock-changed"]


def test_data_compiled_files_and_links_that_lead_up_do_not_count_in_a_package(package):
    folder, open_package = package
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/tools.cpython-311.pyc").touch()
    (folder / "log.txt").touch()
    (folder / "up").symlink_to(".")
    assert codes(open_package()) == []


def test_a_changed_plugin_that_lost_its_notes_does_not_end_the_start(opened, here, write_plugin):
    write_plugin(here / "plugins", "demo", "notes: Be kind.\n")
    path = here / "satchel.lock"
    path.write_text(opened().lock_contents(path).text)
    write_plugin(here / "plugins", "demo", "active: true\n")
    assert codes(opened(locked=path, frozen=True)) == ["lock-changed"]


@pytest.mark.parametrize("folders", [("new", "old"), ("old", "new")])
def test_two_plugins_of_one_name_are_locked_apart(tmp_path, write_plugin, folders):
    for name in folders:
        write_plugin(tmp_path / name, "demo", f"notes: I am {name}.\nactive: true\n")
    file = tmp_path / "satchel.lock"
    options = {"plugins": [tmp_path / name for name in folders], "settings": Settings(cache=False)}
    with Satchel(**options) as app:
        prompt = app.session().prompt()
        file.write_text(app.lock_contents(file).text)
    for is_frozen in (False, True):
        with Satchel(**options, locked=file, frozen=is_frozen) as app:
            assert (app.session().prompt(), codes(app)) == (prompt, [])


def test_two_folders_with_the_same_place_cannot_be_locked(tmp_path, write_skill, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folders = [tmp_path / name / "a/skills" for name in ("one", "two")]
    for folder in folders:
        (write_skill(folder, "pdf") / "place.txt").write_text(str(folder))
    with Satchel(folders) as app, pytest.raises(SatchelError, match=r"are called skill pdf \(path"):
        app.lock_contents(tmp_path / "here/satchel.lock")
    (folders[1] / "pdf/place.txt").write_text(str(folders[0]))
    with Satchel(folders) as app:
        assert len(app.lock_contents(tmp_path / "here/satchel.lock").entries) == 1


def test_a_plugin_that_differs_is_named_without_its_parts(opened, here, write_skill):
    write_skill(here / "plugins/demo/skills", "pdf")
    path = here / "satchel.lock"
    path.write_text(opened().lock_contents(path).text)
    append(here / "plugins/demo/tools.py")
    with pytest.raises(SatchelError, match="changed plugin demo") as caught:
        opened(locked=path)
    assert "pdf" not in str(caught.value)
    app = opened(locked=path, frozen=True)
    assert "pdf" not in app.catalog.skills
    assert codes(app) == ["lock-changed"]
