"""The code of a project as units with digests: what changes them, and what does not."""

import json
import sys

import pytest

from satchel.configuration.selection_reader import parse_selection, read_selection
from satchel.files.file_reader import Stamp, digest_of
from satchel.settings import Limits
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import Precedence, RootKind, search_root
from satchel.sources.skill_scan import scan_skills
from satchel.trust import runnable_files
from satchel.trust.code_units import (
    LISTING,
    change_of_plugin,
    change_of_settings,
    change_of_skill,
    plugin_unit,
    project_of_plugin,
    project_of_settings,
    requested_variables,
    settings_unit,
    skill_unit,
)
from satchel.trust.runnable_files import CodeReader


def plugin(folder, **options):
    scan = scan_plugins(search_root(folder / "plugins", RootKind.PLUGINS), Limits())
    (finding,) = scan.findings.values()
    return plugin_unit(finding, str(folder), **options)


def settings(folder, text, **options):
    path = str(folder / "satchel.toml")
    file = parse_selection(path, Precedence.PROJECT, text.encode())
    return settings_unit(file, **options)


def files_of_settings(folder, text, **options):
    path = str(folder / "satchel.toml")
    file = parse_selection(path, Precedence.PROJECT, text.encode())
    return project_of_settings(file, str(folder), **options)


@pytest.fixture
def folder(tmp_path, write_plugin, write_skill):
    write_plugin(tmp_path / "plugins", "demo", "description: d\n", tools="x = 1\n")
    write_skill(tmp_path / "plugins/demo/skills", "pdf")
    return tmp_path


def test_code_and_manifest_change_the_digest_and_texts_of_skills_do_not(folder, write_skill):
    before = plugin(folder)
    assert (before.key, set(before.files)) == ("plugins/demo", {"tools.py", "toolkit.yaml"})
    write_skill(folder / "plugins/demo/skills", "pdf", description="Another one.")
    assert plugin(folder).digest == before.digest
    for file in ("tools.py", "toolkit.yaml", "more.py"):
        path = folder / "plugins/demo" / file
        path.parent.mkdir(exist_ok=True)
        old = path.read_text() if path.exists() else None
        path.write_text((old or "") + "\n# changed\n")
        assert plugin(folder).digest != before.digest, file
        if old is None:
            path.unlink()
        else:
            path.write_text(old)
        assert plugin(folder).digest == before.digest


def test_the_text_is_kept_if_it_is_asked_for(folder):
    assert plugin(folder).files["tools.py"].text == ""
    assert plugin(folder, reader=CodeReader(with_text=True)).files["tools.py"].text == "x = 1\n"
    assert plugin(folder, reader=CodeReader(with_text=True)).digest == plugin(folder).digest


def test_a_plugin_of_texts_is_no_code(tmp_path, write_plugin, write_skill):
    write_plugin(tmp_path / "plugins", "texts", "notes: Be kind.\n")
    write_skill(tmp_path / "plugins/texts/skills", "pdf")
    assert plugin(tmp_path) is None


def test_all_files_of_a_plugin_that_starts_a_program_count(tmp_path):
    bundle = tmp_path / "plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    (bundle / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "node"}}}))
    before = plugin(tmp_path)
    (bundle / "skills/pdf").mkdir(parents=True)
    (bundle / "skills/pdf/SKILL.md").write_text("text")
    assert plugin(tmp_path).digest == before.digest
    (bundle / "server.js").write_text("x")
    assert plugin(tmp_path).digest != before.digest


def test_a_program_that_is_old_enough_to_be_remembered_is_compared_too(tmp_path, monkeypatch):
    monkeypatch.setattr(Stamp, "is_settled", lambda _stamp: True)
    text = "[mcp.own]\ncommand = 'node'\n"
    (tmp_path / "server.js").write_text("first")
    before = files_of_settings(tmp_path, text)
    assert files_of_settings(tmp_path, text) == before
    (tmp_path / "server.js").write_text("another")
    assert (
        files_of_settings(tmp_path, text).files["server.js"].digest
        != before.files["server.js"].digest
    )
    assert before.files["server.js"].digest == digest_of(b"first")
    assert (
        files_of_settings(tmp_path, text, reader=CodeReader(with_text=True)).files["server.js"].text
        == "another"
    )


def test_a_program_that_just_changed_is_read_each_time(tmp_path, monkeypatch):
    stamp = Stamp.at(str(tmp_path))
    monkeypatch.setattr(Stamp, "at", lambda _path: stamp)
    monkeypatch.setattr(Stamp, "is_settled", lambda _stamp: False)
    digests = set()
    for content in ("1", "2"):
        (tmp_path / "server.js").write_text(content)
        unit = files_of_settings(tmp_path, "[mcp.own]\ncommand = 'node'\n")
        digests.add(unit.files["server.js"].digest)
    assert len(digests) == 2


def test_the_entry_in_a_marketplace_is_shown_if_texts_are(tmp_path, write_files):
    entry = {"name": "a", "source": "./a", "mcpServers": {"s": {"command": "node"}}}
    market = {"name": "m", "owner": {"name": "o"}, "plugins": [entry]}
    write_files(
        tmp_path / "plugins",
        {".claude-plugin/marketplace.json": json.dumps(market), "a/server.js": "x"},
    )
    assert plugin(tmp_path).files[LISTING].text == ""
    shown = plugin(tmp_path, reader=CodeReader(with_text=True)).files[LISTING].text
    assert json.loads(shown)["source"] == "./a"


@pytest.mark.parametrize(
    "text",
    ["", "enable = ['skill:pdf']\n", "[skills]\nfirst = ['a']\n", "[sources]\nskills = ['a']\n"],
)
def test_settings_for_skills_are_no_code(tmp_path, text):
    assert settings(tmp_path, text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("enable = ['a']\n", "disable = ['tool:a']\n", "[config.a]\nurl = 'x'\n"),
        *("[mcp.a]\ncommand = 'x'\n", "[mcp.a]\ncommand = 'y'\n", "[mcp.a]\nurl = 'https://x'\n"),
    ],
)
def test_other_settings_are_code_by_what_they_say(tmp_path, text):
    unit = settings(tmp_path, text)
    assert settings(tmp_path, f"# A comment.\n{text}").digest == unit.digest
    other = settings(tmp_path, "[mcp.a]\ncommand = 'z'\n")
    assert unit.digest != other.digest


def test_every_value_of_a_definition_counts(tmp_path, write_files):
    before = settings(tmp_path, "[config.a]\nday = 2026-01-01\n")
    assert settings(tmp_path, "[config.a]\nday = 2026-01-02\n").digest != before.digest
    digests = set()
    for value in ("1", "2"):
        server = {"command": "node", "env": {"KEY": value}}
        write_files(
            tmp_path / "plugins/bundle",
            {
                ".claude-plugin/plugin.json": '{"name": "bundle"}',
                ".mcp.json": json.dumps({"mcpServers": {"a": server}}),
            },
        )
        digests.add(plugin(tmp_path).files["MCP servers/"].digest)
    assert len(digests) == 2


def test_the_scripts_of_a_skill_are_code(tmp_path, write_skill):
    write_skill(tmp_path / "skills", "pdf")
    root = search_root(tmp_path / "skills", RootKind.SKILLS)
    (finding,) = scan_skills(root, Limits()).findings.values()
    assert skill_unit(finding, str(tmp_path)) is None
    script = tmp_path / "skills/pdf/scripts/run.py"
    script.parent.mkdir()
    script.write_text("x")
    (finding,) = scan_skills(root, Limits()).findings.values()
    unit = skill_unit(finding, str(tmp_path))
    assert (unit.key, list(unit.files)) == ("//skills/pdf", ["scripts/run.py"])


def test_a_projects_own_files_count_in_no_skill_that_is_the_project(tmp_path, write_files):
    own = dict.fromkeys(("satchel.lock", "satchel.toml", ".mcp.json"), "")
    inner = {f"more/{name}": text for name, text in own.items()}
    write_files(tmp_path, {"SKILL.md": "", "scripts/run.py": "", **own, **inner})

    def files(scope=Precedence.PROJECT, base=tmp_path):
        root = search_root(tmp_path, RootKind.SKILLS, scope)
        (finding,) = scan_skills(root, Limits()).findings.values()
        return {name: it.digest for name, it in skill_unit(finding, str(base)).files.items()}

    trusted = files()
    assert set(trusted) == {"scripts/run.py", *inner}
    # In the folder of a larger project, or in a plugin that is installed, they are like others.
    for other in (files(base=tmp_path.parent), files(Precedence.PLUGIN)):
        assert set(other) == {*trusted, *own}
    (tmp_path / "satchel.lock").write_text("x")
    assert change_of_skill(str(tmp_path), str(tmp_path), trusted) == ""
    (tmp_path / "more/satchel.lock").write_text("x")
    assert change_of_skill(str(tmp_path), str(tmp_path), trusted) == "more/satchel.lock"


def test_a_script_that_is_too_large_to_show_keeps_its_digest(tmp_path, write_skill, monkeypatch):
    write_skill(tmp_path / "skills", "pdf")
    script = tmp_path / "skills/pdf/scripts/run.py"
    script.parent.mkdir()
    script.write_text("x" * 9)
    root = search_root(tmp_path / "skills", RootKind.SKILLS)
    (finding,) = scan_skills(root, Limits()).findings.values()
    monkeypatch.setattr(runnable_files, "_LARGEST_TEXT", 4)
    unit = skill_unit(finding, str(tmp_path), reader=CodeReader(with_text=True))
    assert unit == skill_unit(finding, str(tmp_path))


def test_the_variables_of_a_declaration_are_found_wherever_they_are():
    table = {
        "command": "${A}",
        "args": ["--x=${B:-none}", "$C"],
        "env": {"K": "${D}"},
        "headers": {"H": "Bearer ${E}"},
        "cwd": "${CLAUDE_PLUGIN_ROOT}/x",
    }
    assert requested_variables([table]) == ("A", "B", "D", "E")


@pytest.mark.parametrize(
    ("args", "changed", "counts"),
    [
        (["tools/server.py"], "tools/server.py", True),
        (["tools/server.py"], "tools/helper.py", True),
        (["tools/server.py"], "skills/pdf/more.md", False),
        (["tools/server.py"], "other.py", True),
        (["run", "--directory=app"], "app/deep/code.js", True),
        (["run", "app"], "app/README.md", True),
        (["-m", "tools.helper"], "tools/helper.py", True),
        (["-m", "app"], "app/deep/code.js", True),
        ([".", "..", "\0"], "other.py", True),
        (["-c", "x"], "node_modules/a.js", True),
        (["-c", "x"], "tools/__pycache__/a.py", True),
        (["-c", "x"], ".git/index", False),
        ([".git/index"], ".git/index", True),
        (["skills/pdf/more.md"], "skills/pdf/more.md", True),
        (["-c", "x"], "json/__init__.py", True),
    ],
)
def test_all_files_of_a_project_that_starts_a_program_count(tmp_path, args, changed, counts):
    names = ("tools/server.py", "tools/helper.py", "other.py", "skills/pdf/SKILL.md")
    for name in (*names, "app/deep/code.js", "app/README.md", changed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    text = f"[mcp.box]\ncommand = 'python'\nargs = {json.dumps(args)}\n"
    before = files_of_settings(tmp_path, text)
    (tmp_path / changed).write_text("2")
    assert (files_of_settings(tmp_path, text).digest != before.digest) == counts


def test_a_server_of_settings_that_uses_no_file_starts_whatever_another_one_may_use(tmp_path):
    text = "[mcp.time]\ncommand = 'uvx'\nargs = ['acme']\n[mcp.own]\ncommand = 'make'\n"
    path = str(tmp_path / "satchel.toml")
    file = parse_selection(path, Precedence.PROJECT, text.encode())
    trusted = project_of_settings(file, str(tmp_path))
    (tmp_path / "new.py").touch()
    first, second = (
        change_of_settings(name, file, str(tmp_path), trusted) for name in ("time", "own")
    )
    assert (first, second) == (
        "",
        "new.py, which its command may use, is new since you trusted the project",
    )


def test_a_server_that_was_compared_is_compared_also_when_its_files_are_gone(tmp_path):
    (tmp_path / "package.json").touch()
    path = str(tmp_path / "satchel.toml")
    text = "[mcp.own]\ncommand = 'npx'\nargs = ['-y', 'runner']\n"
    file = parse_selection(path, Precedence.PROJECT, text.encode())
    trusted = project_of_settings(file, str(tmp_path))
    assert change_of_settings("own", file, str(tmp_path), trusted) == ""
    (tmp_path / "package.json").unlink()
    change = change_of_settings("own", file, str(tmp_path), trusted)
    assert change == "package.json, which its command may use, changed after it was trusted"


def test_a_module_that_is_new_beside_a_server_counts(tmp_path):
    text = "[mcp.box]\ncommand = 'python'\nargs = ['-m', 'http.server']\n"
    before = files_of_settings(tmp_path, text)
    (tmp_path / "http.py").touch()
    assert files_of_settings(tmp_path, text).digest != before.digest


@pytest.mark.parametrize("limit", ["number", "size"])
def test_what_cannot_be_compared_completely_is_a_problem(tmp_path, monkeypatch, limit):
    number, size = (1, 9) if limit == "number" else (9, 3)
    monkeypatch.setattr(runnable_files, "_MOST_FILES", number)
    monkeypatch.setattr(runnable_files, "_MOST_BYTES", size)
    for name in "ab":
        (tmp_path / name).write_text("12")
    unit = files_of_settings(tmp_path, "[mcp.box]\ncommand = 'x'\n")
    assert (
        "more than 1 files" if limit == "number" else "all together have more"
    ) in unit.problem.text


def test_a_file_that_is_named_as_the_settings_are_counts_apart(tmp_path):
    text = "[mcp.box]\ncommand = 'sh'\nargs = ['satchel.toml']\n"
    (tmp_path / "satchel.toml").write_text("1")
    before = files_of_settings(tmp_path, text)
    (tmp_path / "satchel.toml").write_text("2")
    assert files_of_settings(tmp_path, text).digest != before.digest


def test_a_file_named_as_the_servers_of_a_plugin_counts_apart(tmp_path):
    bundle = tmp_path / "plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    args = ["${CLAUDE_PLUGIN_ROOT}/MCP servers"]
    servers = {"mcpServers": {"a": {"command": "node", "args": args}}}
    (bundle / ".mcp.json").write_text(json.dumps(servers))
    (bundle / "MCP servers").write_text("1")
    before = plugin(tmp_path)
    (bundle / "MCP servers").write_text("2")
    assert plugin(tmp_path).digest != before.digest
    assert not before.problem


def bundle_of(folder, *servers):
    bundle = folder / "plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    tables = {f"s{index}": table for index, table in enumerate(servers)}
    (bundle / ".mcp.json").write_text(json.dumps({"mcpServers": tables}))
    scan = scan_plugins(search_root(folder / "plugins", RootKind.PLUGINS), Limits())
    return next(iter(scan.findings.values()))


def change_of(finding, server, base, trusted, project):
    return change_of_plugin(
        server, finding.path, finding.servers, base=str(base), trusted=trusted, project=project
    )


def around(folder, *servers):
    finding = bundle_of(folder, *servers)
    return project_of_plugin(finding.path, "plugins/bundle", finding.servers, str(folder))


OWN = {"command": "node", "args": ["${CLAUDE_PLUGIN_ROOT}/index.js"]}
ANY = {"command": "sh", "args": ["run.sh", "../../evil.sh"]}


def test_a_server_of_a_plugin_that_is_not_understood_counts_all_files_of_the_project(tmp_path):
    (tmp_path / "plugins/bundle").mkdir(parents=True)
    (tmp_path / "plugins/bundle/index.js").touch()
    assert around(tmp_path, OWN) is None
    unit = around(tmp_path, OWN, ANY)
    assert unit.key == "///plugins/bundle"
    assert "plugins/bundle/.mcp.json" in unit.files
    (tmp_path / "src").mkdir()
    (tmp_path / "src/evil.sh").write_text("1")
    assert (
        around(tmp_path, OWN, ANY).change(unit)
        == "src/evil.sh is new since you trusted the project"
    )


def test_a_server_of_a_plugin_that_was_compared_with_the_project_always_is(tmp_path, monkeypatch):
    monkeypatch.setenv("LIBS", str(tmp_path))
    server = {"command": "uvx", "args": ["acme"], "env": {"KEY": "${LIBS}"}}
    finding = bundle_of(tmp_path, server)
    trusted, project = plugin_unit(finding, str(tmp_path)), around(tmp_path, server)
    monkeypatch.delenv("LIBS")
    assert around(tmp_path, server) is None
    assert change_of(finding, "s0", tmp_path, trusted, project) == ""
    (tmp_path / "new.py").touch()
    change = change_of(finding, "s0", tmp_path, trusted, project)
    assert change == "new.py, which its command may use, is new since you trusted the project"


def test_a_plugin_that_is_the_project_has_no_other_files(tmp_path):
    finding = bundle_of(tmp_path, ANY)
    assert project_of_plugin(finding.path, "k", finding.servers, finding.path) is None
    assert plugin_unit(finding, finding.path).problem.text == "a server of it names '..'"
    assert plugin_unit(finding, str(tmp_path)).problem is None


@pytest.mark.parametrize("name", ["satchel.toml", ".mcp.json", "satchel.lock", "skills/a/more.md"])
def test_what_satchel_reads_itself_counts_if_a_command_may_hide_its_name(
    tmp_path, write_skill, name
):
    write_skill(tmp_path / "skills", "a")
    (tmp_path / name).write_text("1")
    hidden = {"command": "sh", "args": ["-c", "cat x*"]}
    named = {"command": "sh", "args": [f"../../{name}"]}
    assert name not in around(tmp_path, ANY).files
    assert name in around(tmp_path, hidden).files
    assert name in around(tmp_path, named).files


def test_a_project_that_cannot_be_compared_holds_only_such_servers(tmp_path, monkeypatch):
    monkeypatch.setattr(runnable_files, "_MOST_FILES", 6)
    for name in "abcdefg":
        (tmp_path / name).touch()
    unit = around(tmp_path, ANY)
    assert "more than 6 files" in unit.problem.text
    finding = bundle_of(tmp_path, ANY)
    assert plugin_unit(finding, str(tmp_path)).problem is None
    trusted = plugin_unit(finding, str(tmp_path))
    change = change_of(finding, "s0", tmp_path, trusted, unit)
    assert change == unit.problem


def test_a_server_may_start_if_all_that_it_may_use_is_as_it_was_trusted(tmp_path):
    finding = bundle_of(tmp_path, ANY)
    (tmp_path / "evil.sh").write_text("1")
    trusted, project = plugin_unit(finding, str(tmp_path)), around(tmp_path, ANY)

    def change(before, server="s0"):
        return change_of(finding, server, tmp_path, trusted, before)

    assert change(project) == ""
    assert (
        change(None) == "evil.sh, which its command may use, is new since you trusted the project"
    )
    (tmp_path / "evil.sh").write_text("2")
    assert change(project) == "evil.sh, which its command may use, changed after it was trusted"
    (tmp_path / "evil.sh").write_text("1")
    (tmp_path / "plugins/bundle/run.sh").touch()
    assert change(project) == "run.sh is new since you trusted the project"


def test_a_server_that_stays_in_its_folder_starts_whatever_another_one_may_use(tmp_path):
    (tmp_path / "plugins/bundle").mkdir(parents=True)
    (tmp_path / "plugins/bundle/index.js").touch()
    finding = bundle_of(tmp_path, OWN, ANY)
    trusted, project = plugin_unit(finding, str(tmp_path)), around(tmp_path, OWN, ANY)
    (tmp_path / "new.sh").touch()
    first, second = (change_of(finding, name, tmp_path, trusted, project) for name in ("s0", "s1"))
    assert (first, second) == (
        "",
        "new.sh, which its command may use, is new since you trusted the project",
    )


@pytest.mark.parametrize(
    ("target", "name"),
    [("__pycache__", "x.cpython-311.pyc"), (".git", "FETCH_HEAD"), (".git/refs", "a")],
)
def test_a_link_to_a_folder_that_is_skipped_counts_all_files_there(tmp_path, target, name):
    (tmp_path / target).mkdir(parents=True)
    text = "[mcp.a]\ncommand = 'python'\nargs = ['lib/x']\n"
    (tmp_path / "x.py").touch()
    (tmp_path / target / name).write_text("1")
    assert f"{target}/{name}" not in files_of_settings(tmp_path, text).files
    (tmp_path / "lib").symlink_to(target)
    before = files_of_settings(tmp_path, text)
    (tmp_path / target / name).write_text("2")
    assert (
        files_of_settings(tmp_path, text).change(before)
        == f"{target}/{name} changed after it was trusted"
    )


@pytest.mark.parametrize(
    "target",
    [
        *("/proc/self/cwd/x", "//proc/self/cwd/x", "/./proc/self/cwd/x", "/dev/../proc/self/cwd/x"),
        *("../" * 30 + "proc/self/cwd/x", "other", "loop", "../outside/back/x"),
    ],
)
def test_a_link_that_may_lead_elsewhere_for_the_server_is_a_problem(tmp_path, target):
    project = tmp_path / "clone"
    (project / ".git").mkdir(parents=True)
    (project / ".git/x").touch()
    (project / "other").symlink_to("/dev/fd/../cwd/x")
    (project / "loop").symlink_to("loop")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/back").symlink_to("../clone/.git")
    for name in {"other", "loop"} - {target}:
        (project / name).unlink()
    (project / "run.sh").symlink_to(target)
    unit = files_of_settings(project, "[mcp.a]\ncommand = 'sh'\nargs = ['run.sh']\n")
    assert "is a link" in unit.problem.text


def test_a_link_to_a_program_outside_and_one_inside_are_compared(tmp_path):
    project = tmp_path / "clone"
    project.mkdir()
    (project / "server.py").touch()
    (tmp_path / "python3").symlink_to(sys.executable)
    targets = (sys.executable, "../python3", "server.py", f"{project}/server.py", "none")
    for number, target in enumerate(targets):
        (project / f"link{number}").symlink_to(target)
    unit = files_of_settings(project, "[mcp.a]\ncommand = 'sh'\nargs = ['link0']\n")
    assert unit.problem is None
    assert {f"link{number}" for number in range(5)} <= unit.files.keys()


@pytest.mark.parametrize("name", ["é.md", 'a"b.md', "note.md"])
@pytest.mark.parametrize("form", ["skills/a/{}", "skills/a/{}x"])
def test_a_text_of_a_skill_counts_if_a_declaration_names_it(tmp_path, write_skill, name, form):
    write_skill(tmp_path / "skills", "a")
    (tmp_path / "skills/a" / name).touch()
    argument = form.format(f"{name[0]}${{X_:-}}{name[1:]}")
    text = f"[mcp.a]\ncommand = 'sh'\nargs = [{json.dumps(argument)}]\n"
    assert f"skills/a/{name}" in files_of_settings(tmp_path, text).files


def test_what_the_value_of_a_variable_names_counts(tmp_path, write_skill, monkeypatch):
    write_skill(tmp_path / "skills", "a")
    text = "[mcp.a]\ncommand = 'sh'\nargs = ['${NOTE}']\n"
    monkeypatch.setenv("NOTE", "other.md")
    assert "skills/a/SKILL.md" not in files_of_settings(tmp_path, text).files
    monkeypatch.setenv("NOTE", "skills/a/SKILL.md")
    assert "skills/a/SKILL.md" in files_of_settings(tmp_path, text).files


def test_a_link_of_a_plugin_counts_with_what_is_there_in_the_project(tmp_path):
    bundle = tmp_path / "plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    (bundle / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "node"}}}))
    (bundle / "skills/pdf").mkdir(parents=True)
    (bundle / "skills/pdf/SKILL.md").write_text("1")
    (bundle / "x.js").symlink_to("skills/pdf/SKILL.md")
    before = plugin(tmp_path)
    (bundle / "skills/pdf/SKILL.md").write_text("2")
    assert plugin(tmp_path).digest != before.digest
    (tmp_path / "lib").mkdir()
    (bundle / "lib").symlink_to("../../lib")
    before = plugin(tmp_path)
    (tmp_path / "lib/a.js").touch()
    assert plugin(tmp_path).change(before) == "../../lib/a.js is new since you trusted the project"


def test_the_servers_of_a_mcp_json_follow_the_rule_of_a_satchel_toml(folder):
    servers = {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}
    (folder / ".mcp.json").write_text(json.dumps(servers))

    def read():
        user = str(folder / "user.toml")
        files = read_selection(user, str(folder / "satchel.toml")).files
        (file,) = (file for file in files if file.servers)
        return project_of_settings(file, str(folder))

    assert read() is None


@pytest.mark.parametrize(
    ("table", "counts"),
    [
        ("command = 'uvx'\nargs = ['mcp-server-time']", False),
        ("command = 'uvx'\nargs = ['--from', '.', 'serve']", True),
    ],
)
def test_the_files_of_a_project_do_not_count_for_a_server_that_is_fetched(folder, table, counts):
    text = f"[mcp.box]\n{table}\n"
    assert (files_of_settings(folder, text) is not None) is counts


@pytest.mark.parametrize(
    ("server", "fix"),
    [("pnpm'\nargs = ['dlx', 'serve']", "declare "), ("npx'\nargs = ['serve', '.']", "give the")],
)
def test_a_program_of_a_folder_above_the_project_holds_the_server_that_may_run_it(
    folder, server, fix
):
    text = f"[mcp.box]\ncommand = '{server}\n[mcp.own]\ncommand = 'sh'\nargs = ['run.sh']\n"
    project = folder / "sub"
    project.mkdir()
    (folder / "package.json").write_text("{}")
    (project / "package.json").write_text("{}")
    file = parse_selection(str(project / "satchel.toml"), Precedence.PROJECT, text.encode())
    trusted = files_of_settings(project, text)
    problem = change_of_settings("box", file, str(project), trusted)
    assert f"may run programs that {folder / 'package.json'} chooses" in problem.text
    assert problem.fix.startswith(fix)
    assert change_of_settings("own", file, str(project), trusted) == ""


@pytest.mark.parametrize(
    ("args", "counts"),
    [(["-c", "sh ./satchel.l?ck"], True), (["satchel.lock"], True), (["run.sh"], False)],
)
def test_the_lock_file_counts_if_a_command_may_hide_its_name(folder, args, counts):
    text = f"[mcp.box]\ncommand = 'sh'\nargs = {args}\n"
    before = files_of_settings(folder, text)
    (folder / "satchel.lock").write_text("touch PWN")
    assert (files_of_settings(folder, text).digest != before.digest) is counts
