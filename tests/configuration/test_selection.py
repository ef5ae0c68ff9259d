import json
import os
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.configuration.selection import (
    Selection,
    SelectionPatterns,
    project_selection_path,
    selection_path,
    tool_filter,
)
from satchel.configuration.selection_reader import SELECTION_LIMIT, parse_selection, read_selection
from satchel.errors import DefinitionError
from satchel.sources.search_roots import Precedence

OWN_KEYS = "find_folders, plugin_import and worker"


@pytest.fixture
def user(tmp_path):
    return tmp_path / "user" / "satchel.toml"


@pytest.fixture
def project(tmp_path):
    return tmp_path / "project" / "satchel.toml"


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def chosen(text, *farther):
    """Choices of these texts, the nearest first."""
    scopes = [Precedence.PROJECT, Precedence.USER][-1 - len(farther) :]
    files = zip((text, *farther), scopes, strict=True)
    return Selection(tuple(parse_selection(f"/{scope}", scope, t.encode()) for t, scope in files))


def is_off(choices, name, kind="skill", source="acme"):
    return choices.disabled(kind, name, (f"{source}:{name}", source)) is not None


def codes(choices):
    return [item.code for item in choices.diagnostics]


# ---- patterns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        *("pdf", "acme:pdf", "acme", "p*", "acme:*", "*", "[op]df"),
        *("skill:pdf", "skill:acme:pdf", "skill:acme", "skill:*", "skill:p?f"),
    ],
)
def test_a_pattern_is_a_name_an_address_a_source_or_a_glob_perhaps_of_a_kind(pattern):
    choices = chosen(f"disable = ['{pattern}']")
    assert is_off(choices, "pdf")
    (file,) = choices.files
    problem = choices.disabled("skill", "pdf", ("acme:pdf", "acme"))
    assert (problem.code, problem.where.path) == ("disabled", file.path)
    assert f"'{pattern}'" in problem.message
    assert problem.fix == "satchel enable pdf"


@pytest.mark.parametrize(
    "pattern", ["PDF", "pd", "df", "acm", "other:pdf", "tool:pdf", "tool:*", "skill:", "", "skill"]
)
def test_what_is_not_meant_stays_on(pattern):
    assert not is_off(chosen(f"disable = ['{pattern}']"), "pdf")


def test_patterns_for_more_than_skills_are_distinguished():
    patterns = SelectionPatterns(("pdf", "skill:a", "tool:skill", "group:b"))
    assert patterns.beyond_skills == ("pdf", "tool:skill", "group:b")
    assert patterns.of_skills.texts == ("skill:pdf", "skill:a")
    others = ("tool:pdf", "group:pdf", "plugin:pdf", "tool:skill", "group:b")
    assert patterns.without_skills.texts == others


def test_tools_of_a_server_are_accepted_by_patterns_of_tools_whatever_their_names():
    assert tool_filter(None, [])("read")
    assert [tool_filter(["read", "tool:group:*"], [])(name) for name in ("read", "write")] == [
        True,
        False,
    ]
    assert tool_filter(["group:*"], [])("group:delete")
    assert not tool_filter(["*"], ["group:delete"])("group:delete")
    assert tool_filter(["full"], ["other"])("short", "full")


def test_what_is_typed_in_another_normal_form_is_the_same_name():
    assert is_off(chosen("disable = ['cafe\u0301']"), "caf\xe9")


def test_the_basic_group_cannot_be_disabled():
    choices = chosen("disable = ['*', 'basic', 'group:basic']")
    assert not is_off(choices, "basic", "group", "satchel")
    assert is_off(choices, "basic", "skill")


def test_the_fix_can_be_pasted_and_names_the_file_of_the_project():
    problem = chosen("disable = ['*']", "").disabled("skill", "a b")
    assert problem.fix == "satchel enable 'a b' --project"


# ---- precedence ---------------------------------------------------------------------------


def test_inside_one_file_enable_wins():
    choices = chosen("disable = ['*']\nenable = ['pdf']")
    assert not is_off(choices, "pdf")
    assert is_off(choices, "doc")


def test_inside_one_file_a_name_counts_before_a_source_or_a_glob():
    assert is_off(chosen("enable = ['*']\ndisable = ['pdf']"), "pdf")
    assert is_off(chosen("enable = ['skills']\ndisable = ['skills:pdf']"), "pdf", source="skills")
    assert not is_off(chosen("enable = ['p*']\ndisable = ['*f']"), "pdf")


def test_no_project_enables_a_plugin_that_its_user_disabled():
    choices = chosen("enable = ['jira', '*']", "disable = ['jira']")
    assert is_off(choices, "jira", "plugin")
    assert not is_off(choices, "jira", "skill")


@pytest.mark.parametrize(
    ("near", "far", "off"),
    [
        ("", "disable = ['pdf']", True),
        ("enable = ['pdf']", "disable = ['pdf']", False),
        ("disable = ['*']", "enable = ['pdf']", True),
        ("disable = ['doc']", "", False),
    ],
)
def test_the_nearer_file_decides(near, far, off):
    assert is_off(chosen(near, far), "pdf") is off


PATTERNS = st.lists(
    st.tuples(
        st.sampled_from(["", "skill:", "tool:"]),
        st.sampled_from(["a", "b", "*", "s:*", "s:a", "s", "t", "?", "[ab]"]),
    ).map("".join),
    max_size=3,
)


@given(st.lists(st.tuples(PATTERNS, PATTERNS), min_size=1, max_size=2))
def test_precedence_is_that_of_a_list_of_rules_read_from_the_end(files):
    choices = chosen(*(f"enable = {on}\ndisable = {off}" for on, off in files))
    for kind in ("skill", "tool"):
        for name in ("a", "b"):
            for source in ("s", "t"):
                # The last rule that fits has the last word.
                own = {name, f"{source}:{name}"}
                rules = [
                    (pattern, word)
                    for on, off in reversed(files)
                    for is_name in (False, True)
                    for patterns, word in ((off, "off"), (on, "on"))
                    for pattern in patterns
                    if (pattern.removeprefix("skill:").removeprefix("tool:") in own) is is_name
                ]
                message = "on"
                for pattern, word in rules:
                    full_pattern = (
                        pattern if pattern.startswith(("skill:", "tool:")) else f"*:{pattern}"
                    )
                    for text in (name, source, f"{source}:{name}"):
                        if full_pattern.startswith("*:"):
                            message = word if fnmatchcase(text, full_pattern[2:]) else message
                        elif fnmatchcase(f"{kind}:{text}", full_pattern):
                            message = word
                assert is_off(choices, name, kind, source) is (message == "off")


# ---- reading ------------------------------------------------------------------------------


def test_without_files_everything_is_as_it_was(user, project):
    choices = read_selection(str(user), str(project))
    assert (choices.verdict("skill", ["pdf"]), choices.diagnostics) == (None, ())
    assert [path for path, _ in choices.stamps] == [
        str(project),
        str(project.with_name(".mcp.json")),
        str(user),
    ]


def test_the_file_of_a_project_is_read_only_when_it_is_named(user, project):
    write(project, "disable = ['pdf']")
    assert not is_off(read_selection(str(user)), "pdf")
    assert is_off(read_selection(str(user), str(project)), "pdf")


def test_the_servers_of_a_mcp_json_are_the_same_in_each_clone(user, tmp_path):
    servers = {"a": {"command": "x"}, "b": {"command": "x", "cwd": "${PWD}"}}
    tables = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        files = read_selection(str(user), str(tmp_path / name / "satchel.toml")).files
        tables += [file.servers for file in files if file.servers]
    assert tables[0] == tables[1]
    assert tables[0]["b"]["cwd"] == "${PWD}"


def test_a_broken_mcp_json_is_reported_and_its_last_good_servers_stay(user, project):
    servers = write(project.parent / ".mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    good = read_selection(str(user), str(project))
    servers.write_text('{"mcpServers": {"a":\n')
    broken = read_selection(str(user), str(project), good)
    assert [(item.code, item.where.path) for item in broken.diagnostics] == [
        ("mcp-invalid", str(servers))
    ]
    assert [list(file.servers) for file in broken.files if file.servers] == [["a"]]
    cold = read_selection(str(user), str(project))
    assert (codes(cold), [file.servers for file in cold.files if file.servers]) == (
        ["mcp-invalid"],
        [],
    )


def test_one_file_by_two_paths_counts_once(user, tmp_path):
    write(user, "disable = ['pdf']")
    link = tmp_path / "link"
    link.symlink_to(user.parent)
    assert len(read_selection(str(user), str(link / "satchel.toml")).files) == 1


BROKEN = {
    "not TOML": (b"enable = ['a'\ndisable = 1", 2),
    "cut off": (b"disable = [\n'a',\n", 3),
    "not UTF-8": (b"disable = ['\xff']", None),
    "a text": (b"\n# hm\ndisable = 'a'", 3),
    "a number inside": (b"enable = ['a', 1]", 1),
    "a table": (b"[disable]\na = 1", 1),
    "a key of both": (b"disable.a = 1", 1),
    "cut off at its end": (b"a = 1\nb =", 2),
    "twice": (b"disable = []\ndisable = []", 2),
    "too deep": (b"disable = " + b"[" * 5000, None),
    "too large": (b"#" * (SELECTION_LIMIT + 1), None),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_reported_with_its_line_and_its_last_good_values_stay_in_use(user, case):
    data, line = BROKEN[case]
    write(user, "disable = ['pdf']")
    good = read_selection(str(user))
    write(user, data)
    broken = read_selection(str(user), before=good)
    (problem,) = broken.diagnostics
    assert (problem.code, problem.severity) == ("choices-unreadable", "error")
    assert (problem.where.path, problem.where.line) == (str(user), line)
    assert "stays in use" in problem.message
    assert "[config.PLUGIN]" not in problem.fix
    assert is_off(broken, "pdf")
    assert is_off(read_selection(str(user), before=broken), "pdf")
    assert codes(read_selection(str(user))) == ["choices-unreadable"]
    assert broken.withheld("plugin 'a'") is None
    write(user, "disable = []")
    mended = read_selection(str(user), before=broken)
    assert (is_off(mended, "pdf"), mended.diagnostics) == (False, ())


@pytest.mark.parametrize("case", BROKEN)
def test_without_a_valid_version_it_is_not_known_what_a_broken_file_disables(user, case):
    write(user, BROKEN[case][0])
    broken = read_selection(str(user))
    is_known = case == "a number inside"  # of `enable`
    assert (broken.withheld("plugin 'a'") is None) == is_known
    (problem,) = broken.diagnostics
    rest = "; its other keys count" if is_known else "; until then no code runs that it may disable"
    assert problem.message.endswith(rest)
    # What was broken before is no last good version.
    write(user, "disable = ['pdf']\nenable = 1\n")
    partial = read_selection(str(user), before=broken)
    assert (is_off(partial, "pdf"), partial.withheld("plugin 'a'")) == (True, None)
    write(user, BROKEN[case][0])
    again = read_selection(str(user), before=partial)
    assert again == read_selection(str(user))
    user.unlink()
    assert read_selection(str(user), before=again).withheld("plugin 'a'") is None


@pytest.mark.parametrize("seconds", ["0", "-1", "true", "inf", "nan", '"10"'])
def test_a_limit_of_time_is_a_number_of_seconds(user, seconds):
    write(user, f"plugin_import = {seconds}\n")
    (problem,) = read_selection(str(user)).diagnostics
    assert "'plugin_import' is not a number of seconds above 0" in problem.message
    write(user, "plugin_import = 0.5\n")
    choices = read_selection(str(user))
    assert (choices.diagnostics, dict(choices.files[0].limits)) == ((), {"plugin_import": 0.5})


def test_only_the_users_own_file_may_be_a_link_to_somewhere_else(user, project, tmp_path):
    elsewhere = write(tmp_path / "elsewhere" / "satchel.toml", "disable = ['pdf']")
    for file in (user, project):
        file.parent.mkdir()
        file.symlink_to(elsewhere)
    assert is_off(read_selection(str(user)), "pdf")
    user.unlink()
    choices = read_selection(str(user), str(project))
    assert (is_off(choices, "pdf"), codes(choices)) == (False, ["choices-unreadable"])


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_what_is_no_file_is_reported_and_never_waited_for(user, kind):
    user.parent.mkdir()
    makes = {"pipe": os.mkfifo, "folder": os.mkdir, "loop": lambda path: path.symlink_to(path)}
    makes[kind](user)
    assert codes(read_selection(str(user))) == ["choices-unreadable"]


def test_a_file_that_is_deleted_says_nothing_any_more(user):
    write(user, "disable = ['pdf'")
    broken = read_selection(str(user))
    user.unlink()
    gone = read_selection(str(user), before=broken)
    assert (gone.diagnostics, is_off(gone, "pdf")) == ((), False)


def test_an_unknown_key_is_reported_with_what_was_perhaps_meant_and_the_rest_counts(user):
    write(user, "disable = ['pdf']\nenabel = ['a']\n\n[zoo]\nx = 1\n")
    choices = read_selection(str(user))
    assert [(item.code, item.where.line) for item in choices.diagnostics] == [
        ("choices-unknown", 2),
        ("choices-unknown", 4),
    ]
    assert [item.fix for item in choices.diagnostics] == [
        "did you mean 'enable'?",
        f"the keys are enable, disable, sources, mcp, skills, {OWN_KEYS}",
    ]
    assert is_off(choices, "pdf")


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbfdisable = ['pdf']", b"disable = [\r\n'pdf'\r\n]\r\n"]
)
def test_marks_and_line_ends_of_other_systems_are_fine(user, data):
    write(user, data)
    assert is_off(read_selection(str(user)), "pdf")


@pytest.mark.parametrize("data", ["", "disable = ['pd"])
def test_what_may_be_half_written_counts_as_unchanged_for_a_moment(user, data):
    write(user, "disable = ['pdf']")
    before = read_selection(str(user))
    write(user, data)
    moment = read_selection(str(user), before=before, patience=3600.0)
    assert moment == before
    os.utime(user, (1, 1))
    later = read_selection(str(user), before=moment, patience=3600.0)
    assert later != before


def test_what_did_not_change_is_the_same_value(user):
    write(user, "disable = ['pdf']")
    first = read_selection(str(user))
    assert read_selection(str(user), before=first) == first


# ---- where the files are ------------------------------------------------------------------


def test_the_users_file_is_in_the_configuration_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(tmp_path))
    assert selection_path() == str(tmp_path / "satchel.toml")
    assert selection_path("/given") == "/given/satchel.toml"


def test_the_file_of_a_project_is_where_it_was_when_the_project_was_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert project_selection_path(".") == str(tmp_path / "satchel.toml")
    with pytest.raises(DefinitionError, match="empty path"):
        project_selection_path(" ")


def test_the_file_of_a_project_gives_plugins_values(user, project):
    text = 'disable = ["x"]\n[config.weather]\nUNIT = "C"\nretries = 3\n[config."a.b"]\nx = true\n'
    write(project, text)
    choices = read_selection(str(user), str(project))
    assert choices.diagnostics == ()
    layer = choices.layer("weather")
    assert (layer.path, layer.values) == (str(project), {"UNIT": "C", "retries": 3})
    assert choices.layer("a.b").values == {"x": True}
    assert choices.layer("other").values == {}
    assert "'C'" not in repr(choices)
    assert "'C'" not in repr(layer)


def test_a_project_names_folders_of_skills_but_no_code(user, project):
    text = '[sources]\nskills = ["s"]\nplugins = ["p"]\nentry-points = ["e"]\n'
    write(user, text)
    write(project, text)
    near, _, own = read_selection(str(user), str(project)).files
    assert near.sources == {"skills": ["s"]}
    assert [item.code for item in near.diagnostics] == ["choices-unknown"] * 2
    assert own.sources == {"skills": ["s"], "plugins": ["p"], "entry-points": ["e"]}
    assert own.diagnostics == ()


@pytest.mark.parametrize("value", ['" "', '"a\\u0000b"', "7"])
def test_a_source_has_a_name(user, value):
    write(user, f"[sources]\nplugins = [{value}]\n")
    assert codes(read_selection(str(user))) == ["choices-unreadable"]


def test_what_may_be_secret_is_not_in_a_repr(user):
    write(user, "[mcp.a]\nenv = {K = 'hunter2'}\n[worker]\nredis = 'redis://:hunter2@h'\n")
    choices = read_selection(str(user))
    assert choices.servers["a"][1] == {"env": {"K": "hunter2"}}
    assert "hunter2" not in repr(choices)


def test_the_users_own_file_gives_none(user):
    write(user, '[config.weather]\nunit = "C"\n')
    choices = read_selection(str(user), "")
    assert codes(choices) == ["choices-unknown"]
    assert choices.layer("weather").values == {}


@pytest.mark.parametrize("broken", ["config = 1\n", "[config]\nweather = 1\n", "[config.weather\n"])
def test_values_that_are_no_tables_are_reported_and_the_last_good_ones_stay(user, project, broken):
    write(project, '[config.weather]\nunit = "C"\n')
    before = read_selection(str(user), str(project))
    write(project, broken)
    choices = read_selection(str(user), str(project), before)
    assert codes(choices) == ["choices-unreadable"]
    assert "stays in use" in choices.diagnostics[0].message
    assert choices.diagnostics[0].fix.endswith(" and [config.PLUGIN]")
    assert choices.layer("weather").values == {"unit": "C"}


def test_an_unknown_key_of_the_table_of_workers_is_reported(user):
    write(user, "[worker]\nconcurency = 2\nredis = 'redis://here'\n")
    choices = read_selection(str(user))
    assert [(item.code, item.where.line) for item in choices.diagnostics] == [
        ("choices-unknown", 2)
    ]
    assert choices.diagnostics[0].fix == "did you mean 'concurrency'?"
    assert choices.files[0].worker == {"concurency": 2, "redis": "redis://here"}


def test_a_table_of_workers_in_a_project_is_one_unknown_key(user, project):
    write(project, "[worker]\nconcurency = 2\n")
    choices = read_selection(str(user), str(project))
    assert codes(choices) == ["choices-unknown"]
    assert choices.files[0].worker == {}


def test_the_folders_of_a_file_are_beside_it_and_those_of_a_project_stay_inside(project, tmp_path):
    write(project, '[sources]\nskills = ["s"]\n')
    link = tmp_path / "link"
    link.symlink_to(project.parent)
    for is_project, base in ((True, project.parent), (False, link)):
        paths = [str(link / "satchel.toml"), str(tmp_path / "missing.toml")]
        choices = read_selection(*(reversed(paths) if is_project else paths))
        (root,) = (root for file in choices.files for root in file.roots)
        assert (root.path, root.source) == (str(base / "s"), "s")
        inside = str(base) if is_project else ""
        assert (root.within, root.project) == (inside, inside)
