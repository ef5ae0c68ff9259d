import os

import pytest

from satchel.settings import Limits
from satchel.sources import plugin_scan
from satchel.sources.plugin_formats import PluginFormat
from satchel.sources.plugin_scan import scan_plugins

TOOL = '''
from satchel import tool

@tool
def hello(name: str) -> str:
    """Say hello."""
'''


@pytest.fixture
def look(tmp_path, plugin_place, limits):
    def look(before=None, dirty=None, *, limits=limits, folder=tmp_path / "plugins"):
        return scan_plugins(plugin_place(folder), limits, before, dirty)

    return look


@pytest.fixture
def plugins(tmp_path):
    (tmp_path / "plugins").mkdir()
    return tmp_path / "plugins"


def problems(scan):
    return [item.code for result in scan.findings.values() for item in result.diagnostics]


def test_the_folders_with_a_manifest_are_plugins(plugins, look, write_plugin):
    write_plugin(plugins, "b", tools=TOOL)
    write_plugin(plugins, "a")
    (plugins / "other").mkdir()
    (plugins / "file").write_text("")
    scan = look()
    assert (list(scan.findings), scan.diagnostics) == (["a", "b"], ())
    findings = scan.findings["b"]
    assert (findings.path, findings.folder_name, findings.is_valid) == (
        str(plugins / "b"),
        "b",
        True,
    )
    assert [tool.name for tool in findings.declared] == ["hello"]
    assert list(findings.sources) == ["tools.py"]


def test_a_place_can_be_the_plugin_itself(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", tools=TOOL)
    write_plugin(folder, "inner")
    (finding,) = look(folder=folder).findings.values()
    assert (finding.key, finding.path, finding.manifest.name) == ("", str(folder), "a")


def test_only_the_plugins_that_changed_are_read_again(plugins, look, write_plugin):
    for name in "abc":
        write_plugin(plugins, name, tools=TOOL)
    before = look()
    for name in "bc":
        (plugins / name / "tools.py").write_text(TOOL.replace("hello", "hi"))
    after = look(before, dirty=[str(plugins / "b" / "tools.py")])
    assert after.findings["a"] is before.findings["a"]
    assert [tool.name for tool in after.findings["b"].declared] == ["hi"]
    assert after.findings["c"] is before.findings["c"]
    assert [tool.name for tool in look(after).findings["c"].declared] == ["hi"]
    write_plugin(plugins, "d", tools=TOOL)
    assert list(look(after, dirty=[str(plugins / "d")]).findings) == ["a", "b", "c", "d"]


def test_code_is_read_and_never_run(plugins, look, write_plugin):
    write_plugin(plugins, "a", tools="raise SystemExit(3)")
    assert look().findings["a"].is_valid


def test_hidden_folders_and_those_of_tools_are_not_looked_into(plugins, look, write_plugin):
    for name in (".hidden", "node_modules", "__pycache__", "..data"):
        write_plugin(plugins, name)
    assert look().findings == {}


@pytest.mark.parametrize(
    ("file", "fix"), [("toolkit.yml", "rename it toolkit.yaml"), ("tools.py", "add toolkit.yaml")]
)
def test_a_folder_that_was_meant_to_be_a_plugin_is_reported(plugins, look, file, fix):
    (plugins / "a").mkdir()
    (plugins / "a" / file).write_text("")
    scan = look()
    (problem,) = scan.diagnostics
    assert (scan.findings, problem.code, problem.fix) == ({}, "plugin-manifest-missing", fix)
    assert problem.where.path == str(plugins / "a" / file)


def test_a_missing_place_is_reported(look, tmp_path, codes):
    assert codes(look().diagnostics) == ["source-missing"]
    (tmp_path / "plugins").write_text("")
    (problem,) = look().diagnostics
    assert problem.message == "is not a folder"


def test_a_place_that_may_be_missing_is_not_reported(tmp_path, limits):
    from satchel.sources.search_roots import Precedence, RootKind, SearchRoot

    optional = SearchRoot(
        path=str(tmp_path / "x"),
        holds=RootKind.PLUGINS,
        scope=Precedence.USER,
        source="~/x",
        optional=True,
    )
    assert scan_plugins(optional, limits).diagnostics == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name: demo\ngroups:\n  x: y: z\n", "yaml-invalid"),
        ("- a\n", "yaml-not-a-mapping"),
        ("description: x\n", "plugin-field-missing"),
        ("name: a\ntools: nowhere\n", "plugin-field-type"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_an_unsound_plugin(
    plugins, look, write_plugin, text, code
):
    (write_plugin(plugins, "a") / "toolkit.yaml").write_text(text)
    scan = look()
    assert (problems(scan), scan.findings["a"].is_valid) == ([code], False)


@pytest.mark.parametrize("kind", ["fifo", "folder", "outside", "dangling"])
def test_a_manifest_that_is_no_file_is_an_unsound_plugin(plugins, look, kind):
    path = plugins / "a" / "toolkit.yaml"
    path.parent.mkdir()
    {
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "outside": lambda: path.symlink_to("/proc/self/environ"),
        "dangling": lambda: path.symlink_to("nowhere"),
    }[kind]()
    scan = look()
    assert (problems(scan), scan.findings["a"].manifest) == (["plugin-unreadable"], None)


def test_a_manifest_that_turns_from_one_wrong_thing_into_another_is_reported_again(plugins, look):
    path = plugins / "a" / "toolkit.yaml"
    path.parent.mkdir()
    os.mkfifo(path)
    before = look()
    path.unlink()
    path.symlink_to("nowhere")
    assert look(before).findings["a"].diagnostics == look().findings["a"].diagnostics
    assert look(before).findings["a"].diagnostics != before.findings["a"].diagnostics


def test_an_exception_of_a_reader_costs_only_its_plugin(plugins, look, write_plugin, monkeypatch):
    def fail(_finding, _limits):
        raise TypeError("unhashable")

    readers = {**plugin_scan._MANIFEST_READERS, PluginFormat.CLAUDE: fail}
    monkeypatch.setattr(plugin_scan, "_MANIFEST_READERS", readers)
    write_plugin(plugins, "a", tools=TOOL)
    (plugins / "b" / ".claude-plugin").mkdir(parents=True)
    (plugins / "b" / ".claude-plugin" / "plugin.json").write_text('{"name": "b"}')
    good, bad = look().findings.values()
    assert good.is_valid
    assert not bad.is_valid
    (item,) = bad.diagnostics
    assert (item.code, item.where.path) == ("plugin-unreadable", str(plugins / "b"))
    assert item.message == "cannot be read: unexpected TypeError: unhashable"


def test_code_that_does_not_compile_is_an_unsound_plugin(plugins, look, write_plugin):
    write_plugin(plugins, "a", tools="def f(:\n")
    (problem,) = look().findings["a"].diagnostics
    assert (problem.code, problem.where.line) == ("plugin-syntax", 1)


@pytest.mark.parametrize("file", ["main.py", "main/__init__.py"])
def test_the_manifest_says_which_module_holds_the_tools(plugins, look, write_plugin, file):
    folder = write_plugin(plugins, "a", "tools: main\n")
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(TOOL)
    assert [tool.name for tool in look().findings["a"].declared] == ["hello"]


def test_a_plugin_may_have_no_tools_at_all(plugins, look, write_plugin):
    write_plugin(plugins, "a")
    findings = look().findings["a"]
    assert (findings.is_valid, findings.declared, findings.diagnostics) == (True, (), ())


def test_code_that_is_larger_than_the_limit_is_not_loaded_in_part(plugins, look, write_plugin):
    write_plugin(plugins, "a", tools="X = 1\n" * 100)
    findings = look(limits=Limits(plugin_source=300)).findings["a"]
    assert not findings.is_valid
    assert "plugin_source" in findings.diagnostics[0].message


# ---- what belongs to a plugin -------------------------------------------------------------


def test_only_the_manifest_and_the_code_are_read(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", tools=TOOL)
    (folder / "data.bin").write_bytes(b"\0" * 100)
    assert [file.name for file in look().findings["a"].folder.files] == ["toolkit.yaml", "tools.py"]


def test_the_skills_of_a_plugin_are_no_part_of_its_code(plugins, look, write_plugin, write_skill):
    folder = write_plugin(plugins, "a", tools=TOOL)
    skill = write_skill(folder / "skills", "pdf")
    (skill / "script.py").write_text("X = 1")
    first = look()
    assert list(first.findings["a"].sources) == ["tools.py"]
    (skill / "script.py").write_text("X = 2")
    assert look(first).findings["a"].digest == first.findings["a"].digest


def test_a_plugin_may_keep_its_skills_elsewhere(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", "skills: ./know/how\n")
    for name in ("skills", "know/how", "know/more"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.py").write_text("")
    first = look()
    assert list(first.findings["a"].sources) == ["know/more/x.py", "skills/x.py"]
    (folder / "toolkit.yaml").write_text("name: a\n")
    assert look(first).findings["a"].sources == look().findings["a"].sources


# ---- links --------------------------------------------------------------------------------


def test_a_link_to_a_plugin_inside_the_place_is_followed(plugins, look, write_plugin):
    target = write_plugin(plugins / ".real", "a", tools=TOOL)
    (plugins / "a").symlink_to(target)
    scan = look()
    assert list(scan.findings) == ["a"]
    assert scan.links == {(str(plugins / "a"), str(target.resolve()))}


def test_a_link_that_leaves_the_place_is_not_followed(plugins, look, write_plugin, tmp_path, codes):
    (plugins / "a").symlink_to(write_plugin(tmp_path / "elsewhere", "a"))
    scan = look()
    assert (scan.findings, codes(scan.diagnostics)) == ({}, ["source-link-outside"])


@pytest.fixture
def linked(plugins, write_plugin, tmp_path, limits):
    """Look into a place whose links may lead out, at a plugin that is linked into it."""
    from satchel.sources.search_roots import Precedence, RootKind, SearchRoot

    folder = write_plugin(tmp_path / "elsewhere", "a", tools=TOOL)
    (plugins / "a").symlink_to(folder)
    own = SearchRoot(
        path=str(plugins),
        holds=RootKind.PLUGINS,
        scope=Precedence.USER,
        source="~/x",
        follows_links_out=True,
    )
    return folder, lambda: scan_plugins(own, limits)


def test_a_link_may_leave_a_place_that_says_so(plugins, linked):
    folder, look = linked
    scan = look()
    assert (list(scan.findings), scan.diagnostics) == (["a"], ())
    assert scan.findings["a"].is_valid
    assert scan.links == {(str(plugins / "a"), str(folder))}


def test_links_inside_such_a_plugin_may_not_leave_it(linked, tmp_path, codes):
    folder, look = linked
    (folder / "near.py").symlink_to("tools.py")
    (folder / "far.py").symlink_to(tmp_path / "far.py")
    (tmp_path / "far.py").write_text("")
    findings = look().findings["a"]
    assert list(findings.sources) == ["near.py", "tools.py"]
    assert codes(findings.folder.diagnostics) == ["source-link-outside"]


@pytest.mark.parametrize(("source", "fix"), [(None, "create"), ("X = 1", "define it")])
def test_a_setup_that_is_named_must_be_there(plugins, look, write_plugin, source, fix):
    modules = {} if source is None else {"prepare": source}
    write_plugin(plugins, "a", "setup: prepare\n", **modules)
    findings = look().findings["a"]
    assert (problems(look()), findings.is_valid) == (["plugin-field-type"], False)
    assert findings.diagnostics[0].fix.startswith(fix)
    write_plugin(plugins, "a", "setup: prepare\n", prepare="def setup(ctx): ...")
    assert look().findings["a"].is_valid


def test_links_inside_a_plugin_are_remembered(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", tools=TOOL)
    (plugins / "shared.py").write_text("")
    (folder / "helper.py").symlink_to("../shared.py")
    assert [link for link, _ in look().links] == [str(folder / "helper.py")]


def test_a_link_that_leads_nowhere_is_reported(plugins, look, codes):
    (plugins / "a").symlink_to("nowhere")
    (plugins / "loop").symlink_to("loop")
    diagnostics = look().diagnostics
    assert codes(diagnostics) == ["source-link-broken"] * 2
    assert ["which does not exist" in item.message for item in diagnostics] == [True, False]


def test_a_folder_whose_name_is_not_utf8_is_reported(plugins, look, codes):
    os.mkdir(os.fsencode(plugins) + b"/bad\xff")
    assert codes(look().diagnostics) == ["source-name-not-utf8"]


# ---- looking again ------------------------------------------------------------------------


def test_a_plugin_that_did_not_change_is_not_judged_again(plugins, look, write_plugin, later):
    write_plugin(plugins, "a", tools=TOOL)
    later(3)
    first = look()
    assert look(first).findings["a"].manifest is first.findings["a"].manifest


def test_an_edit_and_a_deletion_are_seen(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", tools=TOOL)
    first = look()
    (folder / "tools.py").write_text(TOOL.replace("hello", "ahoy"))
    second = look(first, {str(folder / "tools.py")})
    assert [tool.name for tool in second.findings["a"].declared] == ["ahoy"]
    (folder / "toolkit.yaml").unlink()
    third = look(second, {str(folder)})
    assert [item.code for item in third.findings["a"].diagnostics] == ["plugin-file-lost"]
    (folder / "tools.py").unlink()
    assert look(third, {str(folder)}).findings == {}


@pytest.mark.parametrize(("path", "looked"), [("plugins/x", True), (".", True), ("other", False)])
def test_a_place_is_looked_at_only_when_a_path_concerns_it(plugins, look, tmp_path, path, looked):
    before = look()
    after = look(before, {str(tmp_path / path)})
    assert (after is not before) is looked


def test_a_place_with_links_is_always_looked_at(plugins, look, write_plugin):
    (plugins / "a").symlink_to(write_plugin(plugins / ".real", "a"))
    before = look()
    assert look(before, set()) is not before


# ---- notes in a file, and tools that are chosen ---------------------------------------------


def notes(scan):
    return scan.findings["a"].manifest.notes


def test_notes_may_be_a_file_inside_the_folder(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", "notes: ./docs/guide.md\ngroups: {g: {notes: other.txt}}\n")
    (folder / "docs").mkdir()
    (folder / "docs/guide.md").write_text("\ufeffBe kind.\r\nAlways.\n")
    (folder / "other.txt").write_text("Or not.")
    scan = look()
    assert problems(scan) == []
    assert notes(scan) == "Be kind.\nAlways."
    assert scan.findings["a"].manifest.groups[0].notes == "Or not."
    (folder / "docs/guide.md").write_text("Be kinder.")
    again = look(scan)
    assert notes(again) == "Be kinder."
    assert again.findings["a"].digest != scan.findings["a"].digest
    assert look(again).findings["a"].digest == look().findings["a"].digest


@pytest.mark.parametrize("text", ["See the README.md", "|\n  a\n  guide.md", "guide"])
def test_what_names_no_file_is_the_notes_themselves(plugins, look, write_plugin, text):
    folder = write_plugin(plugins, "a", f"notes: {text}\n")
    (folder / "guide").write_text("Not read.")
    scan = look()
    assert problems(scan) == []
    assert notes(scan).split() == text.replace("|", "").split()


@pytest.mark.parametrize("name", ["gone.md", "../outside.md", "link.md", "skills/x.md"])
def test_notes_that_are_no_file_inside_are_refused(plugins, look, write_plugin, tmp_path, name):
    folder = write_plugin(plugins, "a", f"notes: {name}\n")
    for path in (plugins / "outside.md", tmp_path / "far.md"):
        path.write_text("s3cr3t-canary")
    (folder / "link.md").symlink_to(tmp_path / "far.md")
    scan = look()
    assert "plugin-field-type" in problems(scan)
    assert "s3cr3t-canary" not in repr(scan.findings["a"].manifest)
    assert not scan.findings["a"].is_valid


@pytest.mark.parametrize("data", [b"\xff", b"a\0b", b"x" * 2000])
def test_notes_that_cannot_be_text_are_refused(plugins, look, write_plugin, data):
    folder = write_plugin(plugins, "a", "notes: guide.md\n")
    (folder / "guide.md").write_bytes(data)
    assert problems(look(limits=Limits(skill_file=1000))) == ["plugin-unreadable"]


def test_notes_that_are_too_long_say_what_to_do_with_notes(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", "notes: guide.md\n")
    (folder / "guide.md").write_text("x" * 2000)
    (problem,) = look(limits=Limits(skill_file=1000)).findings["a"].diagnostics
    assert "skill_file" in problem.message
    assert problem.fix == "shorten the notes, or raise the limit"


def test_notes_that_become_a_file_and_cease_to_be_are_followed(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", "notes: plain\n")
    (folder / "guide.md").write_text("From the file.")
    first = look()
    write_plugin(plugins, "a", "notes: guide.md\n")
    second = look(first)
    assert notes(second) == "From the file."
    (folder / "guide.md").unlink()
    third = look(second)
    assert problems(third) == ["plugin-field-type"]
    write_plugin(plugins, "a", "notes: plain\n")
    assert notes(look(third)) == "plain"
    assert look(third).findings["a"].digest == first.findings["a"].digest


def test_only_the_chosen_tools_are_declared_and_by_the_names_they_are_given(
    plugins, look, write_plugin
):
    write_plugin(
        plugins,
        "a",
        "tools: [hello, {name: ring, function: 'more:_bell'}]\n",
        tools=TOOL + TOOL.replace("hello", "other"),
        more="def _bell(times: int):\n    'Ring it.'\n",
    )
    findings = look().findings["a"]
    assert findings.diagnostics == ()
    assert [(tool.name, tool.description) for tool in findings.declared] == [
        ("hello", "Say hello."),
        ("ring", "Ring it."),
    ]


def test_each_module_of_a_chosen_tool_must_be_there(plugins, look, write_plugin):
    write_plugin(plugins, "a", "tools: [hello, {function: 'more:bell'}]\n")
    scan = look()
    assert problems(scan) == ["plugin-field-type", "plugin-field-type"]


def test_an_empty_list_of_tools_serves_none(plugins, look, write_plugin):
    write_plugin(plugins, "a", "tools: []\n", tools=TOOL)
    findings = look().findings["a"]
    assert (findings.declared, findings.diagnostics, findings.file_of(findings.modules[0])) == (
        (),
        (),
        "",
    )


# ---- all at once, with lines ----------------------------------------------------------------


def where(result):
    return [(item.code, item.where.line) for item in result.diagnostics]


def test_what_the_manifest_names_is_judged_though_the_manifest_has_errors(
    plugins, look, write_plugin
):
    text = "notes: gone.md\nactive: maybe\nsetup: prepare\ngroups: {g: {notes: there.md}}\n"
    folder = write_plugin(plugins, "a", text, tools="def f(:\n")
    (folder / "there.md").write_text("Here.")
    findings = look().findings["a"]
    assert findings.manifest is None
    assert where(findings) == [
        ("plugin-field-type", 3),
        ("plugin-field-type", 2),
        ("plugin-syntax", 1),
        ("plugin-field-type", 4),
    ]


def test_code_is_judged_though_the_manifest_is_no_yaml(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", tools="def f(:\n")
    (folder / "toolkit.yaml").write_text("- a\n")
    assert problems(look()) == ["yaml-not-a-mapping", "plugin-syntax"]


def test_what_is_missing_is_reported_on_the_line_that_names_it(plugins, look, write_plugin):
    text = "groups:\n  g:\n    notes: gone.md\nsetup: gone\nskills: gone\ntools:\n- x\n- gone\n"
    write_plugin(plugins, "a", text, gone="def broken(:\n")
    findings = look().findings["a"]
    assert where(findings)[0] == ("plugin-field-type", 4)
    assert ("plugin-field-type", 8) in where(findings)
    assert "'tools' lists 'x'" in findings.diagnostics[1].message


def test_missing_skills_folders_are_reported_until_they_exist(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", "skills: know/how\n")
    before = look()
    assert where(before.findings["a"]) == [("source-missing", 2)]
    (folder / "know" / "how").mkdir(parents=True)
    assert look(before).findings["a"].diagnostics == ()
    write_plugin(plugins, "b")
    assert look().findings["b"].diagnostics == ()


# ---- more files than are read -----------------------------------------------------------------


@pytest.fixture
def few():
    return Limits(files_per_skill=3)


def test_what_the_manifest_names_is_read_however_much_lies_around_it(
    plugins, look, write_plugin, few
):
    folder = write_plugin(plugins, "a", "notes: z.md\ntools: zoo\n", zoo=TOOL)
    (folder / "z.md").write_text("Notes.")
    for number in range(9):
        (folder / f"a{number}.py").touch()
    scan = look(limits=few)
    findings = scan.findings["a"]
    assert (findings.is_valid, findings.diagnostics, findings.manifest.notes) == (
        True,
        (),
        "Notes.",
    )
    assert [tool.name for tool in findings.declared] == ["hello"]
    (problem,) = findings.folder.diagnostics
    assert (problem.code, "files_per_skill" in problem.message) == ("source-too-many", True)


def test_an_environment_of_python_is_no_code_whatever_its_name(plugins, look, write_plugin):
    folder = write_plugin(plugins, "a", tools=TOOL)
    (folder / "env" / "lib").mkdir(parents=True)
    (folder / "env" / "pyvenv.cfg").touch()
    (folder / "env" / "lib" / "x.py").touch()
    assert list(look().findings["a"].sources) == ["tools.py"]


@pytest.mark.parametrize("name", ["/guide.md", "docs/../../guide.md", "..guide.md"])
def test_a_name_that_leads_out_is_never_read(plugins, look, write_plugin, name):
    folder = write_plugin(plugins, "a", f"notes: {name}\n")
    for path in (plugins, folder, folder / "docs"):
        path.mkdir(exist_ok=True)
        (path / "guide.md").write_text("s3cr3t-canary")
        (path / "..guide.md").write_text("s3cr3t-canary")
    findings = look().findings["a"]
    assert (findings.is_valid, where(findings)) == (False, [("plugin-field-type", 2)])


@pytest.mark.parametrize("name", ["Plugin.json", "PLUGIN.JSON", "Toolkit.yaml"])
def test_a_manifest_whose_name_is_nearly_right_is_reported(plugins, look, name):
    (plugins / "a").mkdir()
    (plugins / "a" / name).touch()
    (problem,) = look().diagnostics
    assert (problem.code, problem.fix) == ("plugin-manifest-missing", f"rename it {name.lower()}")


def test_a_corrected_list_of_a_marketplace_is_read_with_all_its_plugins(look, plugins, write_files):
    listing = plugins / ".claude-plugin" / "marketplace.json"
    entries = '{"name": "m", "plugins": [{"name": "a", "source": "./a"}]}'
    write_files(plugins, {listing: entries, "a/commands/c.md": "Go."})
    good = look()
    listing.write_text("{")
    broken = look(good, {str(listing)})
    assert (problems(broken), broken.diagnostics[0].code) == (
        ["marketplace-invalid"],
        "marketplace-invalid",
    )
    listing.write_text(entries)
    assert look(broken, {str(listing)}).findings == good.findings
