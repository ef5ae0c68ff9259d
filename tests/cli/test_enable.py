"""`enable` and `disable`: what they write, what they leave, and what they tell."""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


@pytest.fixture
def file(config_folder) -> Path:
    """The user's own file, which is not there."""
    return config_folder / "satchel.toml"


@pytest.fixture
def say(file):
    def say(text: str | bytes) -> None:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    return say


@pytest.fixture(autouse=True)
def skills(here, write_skill) -> None:
    for name in ("pdf", "doc"):
        write_skill(here / "skills", name)


READS = ("--skills", "skills")


def test_what_is_disabled_is_listed_so_and_enabled_again_as_before(run, file):
    before = run("list", "skills", *READS).stdout
    result = run("disable", "pdf", *READS)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"disabled pdf ({file})\n"
    assert file.read_text() == 'disable = [\n    "pdf",\n]\n'
    assert re.search(r"^pdf +disabled", run("list", "skills", *READS).stdout, re.MULTILINE)
    assert run("enable", "pdf", *READS).stdout == f"enabled pdf ({file})\n"
    assert tomllib.loads(file.read_text()) == {}
    assert run("list", "skills", *READS).stdout == before


def test_several_names_are_written_at_once(run, file):
    result = run("disable", "pdf", "tool:delete_*", "--force", *READS)
    assert len(result.stdout.splitlines()) == 2
    assert tomllib.loads(file.read_text()) == {"disable": ["pdf", "tool:delete_*"]}


@pytest.mark.parametrize("word", ["enable", "disable"])
@pytest.mark.parametrize("text", ["", "disable = ['pdf'] # why", "enable=['pdf']\ndisable=['*']"])
def test_to_say_the_same_twice_changes_nothing(run, file, say, word, text):
    say(text)
    run(word, "pdf", *READS)
    once, status = file.read_bytes(), file.stat()
    result = run(word, "pdf", *READS)
    assert result.stdout == f"pdf is already {word}d ({file})\n"
    assert file.read_bytes() == once
    assert file.stat().st_ino == status.st_ino


def test_what_needs_no_change_makes_no_file(run, file):
    run("enable", "pdf", *READS)
    assert not file.exists()


# text before, command, lists afterwards
STEPS = [
    ("enable = ['pdf', 'a']", "disable", {"enable": ["a"], "disable": ["pdf"]}),
    ("disable = ['pdf', 'pdf']", "enable", {}),
    ("disable = ['pdf'] # mine", "enable", {"disable": []}),
    ("disable = [\n  'pdf', # mine\n  # why\n]", "enable", {"disable": []}),
    ("disable = ['*']", "enable", {"disable": ["*"], "enable": ["pdf"]}),
    ("disable = ['pdf', 'p*']", "enable", {"disable": ["p*"], "enable": ["pdf"]}),
    ("disable = ['skill:pdf']", "enable", {"disable": ["skill:pdf"], "enable": ["pdf"]}),
    ("disable = ['skills']", "enable", {"disable": ["skills"], "enable": ["pdf"]}),
    ("disable = ['tool:*']", "enable", {"disable": ["tool:*"]}),
    ("enable = ['p*']\ndisable = ['*']", "enable", {"enable": ["p*"], "disable": ["*"]}),
]


@pytest.mark.parametrize("step", STEPS)
def test_no_more_is_written_than_it_takes(run, file, say, step):
    before, word, after = step
    say(before)
    run(word, "pdf", *READS)
    assert tomllib.loads(file.read_text()) == after


def test_comments_and_order_stay(run, file, say):
    say(
        "# Mine.\ndisable = [\n  'zoo',  # no animals\n  'pdf',\n  # later\n"
        "  'doc'\n]\n\n[x]\ny = 1\n"
    )
    run("enable", "pdf", *READS)
    run("disable", "new", "--force", *READS)
    assert file.read_text() == (
        "# Mine.\ndisable = [\n  'zoo',  # no animals\n  # later\n"
        "  'doc',\n  \"new\"\n]\n\n[x]\ny = 1\n"
    )


def test_a_new_key_comes_before_the_tables(run, file, say):
    say("[x]\ny = 1\n")
    run("disable", "pdf", *READS)
    assert tomllib.loads(file.read_text()) == {"disable": ["pdf"], "x": {"y": 1}}


def test_marks_and_line_ends_of_other_systems_stay(run, file, say):
    say(b"\xef\xbb\xbfdisable = [\r\n'a',\r\n'b'\r\n]\r\n")
    run("disable", "pdf", *READS)
    assert file.read_bytes() == b"\xef\xbb\xbfdisable = [\r\n'a',\r\n'b',\r\n\"pdf\"\r\n]\r\n"


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "naïve ✓", "[abc]*"])
def test_any_name_is_written_so_that_it_is_read_back(run, file, name):
    run("disable", "--force", name, *READS)
    assert tomllib.loads(file.read_text()) == {"disable": [name]}


# ---- projects -----------------------------------------------------------------------------


@pytest.mark.parametrize("project", [(), ("--project",)])
def test_a_declared_server_is_disabled_and_enabled_again_whether_it_can_be_used_or_not(
    run, here, say, project
):
    servers = {"maps": {"command": "x", "args": ["${NO_SUCH_KEY}"]}, "odd": {"command": 7}}
    if project:
        (here / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    else:
        say('[mcp.maps]\ncommand = "${NO_SUCH_KEY}"\n[mcp.odd]\ncommand = 7\n')
    for name in ("mcp:maps", "mcp:odd", "plugin:mcp:maps"):
        assert run("disable", name, *project).exit_code == 0
        assert run("enable", name, *project).exit_code == 0
    assert run("disable", "mcp:maps", *project).stdout.startswith("disabled mcp:maps (")
    assert "mcp:maps" in run("disable", "maps", *project).stderr
    assert run("disable", "mcp:map", *project).exit_code == 1
    if project:
        assert run("trust", "--code").exit_code == 0
    assert "NO_SUCH_KEY" not in run("mcp", "list").stderr
    run("enable", "mcp:maps", *project)
    assert "NO_SUCH_KEY" in run("mcp", "list").stderr


def test_with_project_the_file_of_the_current_folder_is_written(run, file, here):
    result = run("disable", "pdf", "--project")
    assert result.stdout == "disabled pdf (satchel.toml)\n"
    assert not file.exists()
    assert tomllib.loads((here / "satchel.toml").read_text()) == {"disable": ["pdf"]}
    listed = json.loads(run("list", "skills", "--json", "--trust", "data").stdout)
    assert [item["state"] for item in listed] == ["ok", "disabled"]
    assert listed[1]["diagnostics"][0]["fix"] == "satchel enable pdf --project"


def test_what_the_user_disabled_is_enabled_for_a_project(run, say, here):
    say("disable = ['pdf']")
    run("enable", "pdf", "--project")
    assert tomllib.loads((here / "satchel.toml").read_text()) == {"enable": ["pdf"]}


# ---- plugins ------------------------------------------------------------------------------


def test_an_installed_plugin_is_enabled_and_disabled_again(run, file):
    run("enable", "builtin")
    assert tomllib.loads(file.read_text()) == {"enable": ["builtin"]}
    (plugin,) = json.loads(run("list", "plugins", "--json").stdout)
    assert (plugin["name"], plugin["state"]) == ("builtin", "not run")
    run("disable", "builtin")
    assert tomllib.loads(file.read_text()) == {"disable": ["builtin"]}
    run("enable", "builtin")
    assert tomllib.loads(file.read_text()) == {"enable": ["builtin"]}


def test_an_installed_plugin_that_an_option_enables_needs_no_word(run, file):
    run("enable", "builtin", "--entry-points", "builtin")
    assert not file.exists()


def test_no_code_is_run(run, toolkit, was_run):
    run("disable", "echo", "--plugins", toolkit)
    run("enable", "echo", "--plugins", toolkit)
    assert not was_run()


def test_the_doctor_has_the_command_that_switches_it_on_again(run):
    run("disable", "pdf", *READS)
    result = run("doctor", "--json", *READS)
    (finding,) = [f for f in json.loads(result.stdout)["findings"] if f["code"] == "disabled"]
    assert finding["command"] == "satchel enable --skills skills pdf"


# ---- what is told -------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["enable", "disable"])
def test_an_unknown_name_is_refused_with_near_misses(run, file, word):
    result = run(word, "pdf", "skill:pfd", *READS)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing is named 'skill:pfd'; nothing was written" in result.stderr
    assert "did you mean pdf? --force writes it" in result.stderr
    assert not file.exists()


@pytest.mark.parametrize("pattern", ["skil:*", "skill:zz*"])
@pytest.mark.parametrize("word", ["enable", "disable"])
def test_a_pattern_that_matches_nothing_is_refused(run, file, word, pattern):
    result = run(word, pattern, *READS)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"nothing matches {pattern!r}; nothing was written" in result.stderr
    assert ("did you mean skill:*" in result.stderr) is (pattern == "skil:*")
    assert not file.exists()
    assert run(word, pattern, "--force", *READS).exit_code == 0


def test_an_unknown_name_is_removed_from_the_list_that_has_it(run, file, say):
    say("disable = ['gone']")
    result = run("enable", "gone", *READS)
    assert result.exit_code == 0
    assert "warning: nothing is named 'gone'" in result.stderr
    assert tomllib.loads(file.read_text()) == {}


def test_an_unknown_name_is_written_with_force(run, file):
    result = run("disable", "pfd", "--force", *READS)
    assert result.exit_code == 0
    assert "did you mean pdf?" in result.stderr
    assert tomllib.loads(file.read_text()) == {"disable": ["pfd"]}


@pytest.mark.parametrize("name", ["pdf", "skills:pdf", "skills", "p*", "skill:pdf"])
def test_whatever_names_something_is_known(run, name):
    assert run("disable", name, *READS).stderr == ""


def test_what_stays_on_because_of_another_pattern_is_reported(run, say):
    say("enable = ['p*']")
    result = run("disable", "*df", *READS)
    assert "still enabled: skill 'pdf', because of enable = ['p*']" in result.stderr


def test_what_stays_off_with_its_group_is_reported(run, say, toolkit):
    say("disable = ['group:demo']")
    result = run("enable", "echo", "--plugins", toolkit)
    assert "still disabled: tool 'echo' is disabled with the group 'demo'" in result.stderr


def test_a_file_below_home_is_named_as_one_types_it(run, monkeypatch):
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", "~/mine")
    assert run("disable", "pdf", *READS).stdout == "disabled pdf (~/mine/satchel.toml)\n"


def test_json_reports_whether_anything_changed(run, file):
    (messages,) = json.loads(run("disable", "pdf", "--json", *READS).stdout)
    assert messages == {"name": "pdf", "enabled": False, "path": str(file), "changed": True}
    (again,) = json.loads(run("disable", "pdf", "--json", *READS).stdout)
    assert again["changed"] is False


# ---- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"disable = [", b"disable = 'pdf'", b"\xff", b"#" * 300_000])
@pytest.mark.parametrize("word", ["enable", "disable"])
def test_a_file_that_does_not_parse_is_not_touched(run, file, say, text, word):
    say(text)
    result = run(word, "pdf", *READS)
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(file) in result.stderr
    assert file.read_bytes() == text


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_not_touched(run, file, make):
    file.parent.mkdir()
    make(file)
    result = run("disable", "pdf", *READS)
    assert result.exit_code == 1
    assert "not a regular file" in result.stderr


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\u202eb"])
def test_a_name_that_cannot_be_seen_is_refused(run, file, name):
    assert run("disable", name, *READS).exit_code == 2
    assert not file.exists()


@pytest.mark.parametrize("name", ["basic", "group:basic"])
def test_the_basic_group_cannot_be_disabled(run, file, name):
    result = run("disable", name, *READS)
    assert result.exit_code == 1
    assert "always active" in result.stderr
    assert not file.exists()


def test_where_nothing_can_be_written_nothing_is_left_behind(run, file):
    file.parent.write_text("a file")
    result = run("disable", "pdf", *READS)
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


# ---- the file itself ----------------------------------------------------------------------


def test_a_link_stays_a_link_and_a_mode_what_it_was(run, file, tmp_path):
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    real.chmod(0o640)
    file.parent.mkdir()
    file.symlink_to(real)
    run("disable", "pdf", *READS)
    assert file.is_symlink()
    assert tomllib.loads(real.read_text()) == {"disable": ["pdf"]}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.glob("*dotfiles*")) == ["dotfiles.toml"]


def test_a_link_to_what_is_not_there_yet_is_followed(run, file, tmp_path):
    file.parent.mkdir()
    file.symlink_to(tmp_path / "later" / "mine.toml")
    run("disable", "pdf", *READS)
    assert tomllib.loads((tmp_path / "later" / "mine.toml").read_text()) == {"disable": ["pdf"]}


def test_the_file_is_replaced_and_never_half_written(run, file, say, monkeypatch):
    say("# mine\n")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    result = run("disable", "pdf", *READS)
    assert (result.exit_code, file.read_text()) == (1, "# mine\n")
    assert os.listdir(file.parent) == ["satchel.toml"]


MANY = """
import sys
from click.testing import CliRunner
from satchel.cli.main import cli
for number in range(12):
    assert CliRunner().invoke(cli, ["disable", "--force", f"{sys.argv[1]}{number}"]).exit_code == 0
"""


def test_nothing_is_lost_where_several_choose_at_once(config_folder):
    writers = [subprocess.Popen([sys.executable, "-c", MANY, name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    records = tomllib.loads((config_folder / "satchel.toml").read_text())
    assert len(records["disable"]) == 24


def test_plugins_that_no_name_tells_apart_are_named(run, here, write_plugin):
    for folder in ("a", "b"):
        write_plugin(here / "plugins", "clock", "notes: Use it.\n").rename(
            here / "plugins" / folder
        )
    places = ("--plugins", "plugins")
    for word in ("disable", "enable"):
        text = run(word, "clock", *places).stderr
        assert "'clock' is the name of 2 plugins: plugins/a, plugins/b; to choose one" in text
    assert "rename one of the two in its manifest" in run("doctor", *places).stdout


def test_a_new_skill_that_waits_for_a_choice_is_enabled_by_its_folder(run, here, file, skill_text):
    run("prompt", *READS)
    new = here / "skills/a/pdf"
    new.mkdir(parents=True)
    (new / "SKILL.md").write_text(skill_text("pdf", "Another one."))

    def states():
        text = run("list", "skills", *READS).stdout
        return re.findall(r"^pdf +(\w+)", text, re.MULTILINE)

    assert states() == ["held", "ok"]
    assert "enable --skills skills skills:a/pdf" in run("doctor", *READS).stdout
    assert run("enable", "skills:a/pdf", *READS).stdout == f"enabled skills:a/pdf ({file})\n"
    assert tomllib.loads(file.read_text()) == {"enable": ["skills:a/pdf"]}
    assert states() == ["ok", "shadowed"]
