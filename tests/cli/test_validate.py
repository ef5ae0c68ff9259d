"""`validate`: strict, all at once, and it survives what strangers write."""

import json
import os
import subprocess
import sys

import pytest

from satchel.cli.commands.validate import check, workflow_command
from satchel.diagnostics import Diagnostic, Severity, Where


@pytest.fixture
def bad(here):
    folder = here / "skills" / "bad"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Good Name\nextra: 1\n---\n")
    return folder


def test_all_problems_are_told_at_once_with_paths_from_here(run, bad):
    result = run("validate", "skills")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert all(line.startswith("skills/bad/SKILL.md:") for line in lines)
    for code in ("skill-name-shape", "skill-description-missing", "skill-field-unknown"):
        assert any(f"error[{code}]" in line for line in lines)
    assert result.stderr == f"1 checked: {len(lines) - 1} errors, 1 warning\n"


@pytest.mark.parametrize(
    "path", ["skills/bad/SKILL.md", "skills/bad", "skills", ".", "skills/bad/"]
)
def test_a_path_may_be_the_file_the_skill_or_a_folder_above(run, bad, path):
    assert run("validate", path).stdout == run("validate", bad).stdout != ""


def test_a_good_skill_is_silence_and_exit_code_zero(run, here, write_skill):
    write_skill(here / "skills", "good")
    result = run("validate", "skills/good")
    assert (result.exit_code, result.stdout) == (0, "")


def test_plugins_and_their_skills_are_found_at_any_depth(run, here, write_plugin, write_skill):
    folder = write_plugin(here / "a" / "b", "demo", "surprise: 1\n", tools="def broken(:\n")
    write_skill(folder / "skills", "Loud")
    codes = {item["code"] for item in json.loads(run("validate", ".", "--json").stdout)}
    assert codes >= {"plugin-field-unknown", "plugin-syntax", "skill-name-shape"}
    for path in (folder, folder / "toolkit.yaml"):
        assert run("validate", path).stdout == run("validate", ".").stdout


@pytest.mark.parametrize("path", ["nowhere", "empty", "note.txt", "empty/SKILL.md"])
def test_nothing_to_check_is_an_error(run, here, path):
    (here / "empty").mkdir()
    (here / "note.txt").touch()
    result = run("validate", path)
    assert result.exit_code == 1
    assert f"{path}: error[" in result.stdout


def test_a_file_nearly_named_right_is_told_as_that(run, here):
    (here / "s").mkdir()
    (here / "s" / "skill.md").touch()
    result = run("validate", "s")
    assert result.exit_code == 1
    assert [line.split(" ")[1] for line in result.stdout.splitlines()] == [
        "error[skill-file-case]:"
    ]


def test_one_finding_of_two_paths_is_told_once(run, bad):
    assert run("validate", "skills", "skills/bad").stdout == run("validate", "skills").stdout


def test_github_gets_workflow_commands(run, bad):
    lines = run("validate", "skills", "--format", "github").stdout.splitlines()
    assert "::error file=skills/bad/SKILL.md,line=3,title=skill-field-unknown::" in "\n".join(lines)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)


def test_workflow_commands_are_escaped_as_the_runner_unescapes_them():
    where = Where("a,b:c%\n\x1b.md", 2, 3)
    item = Diagnostic(Severity.ERROR, "some-code", where, "100%: a,\r\nb", "mend")
    assert workflow_command(item) == (
        "::error file=a%2Cb%3Ac%25%0A.md,line=2,col=3,title=some-code::100%25: a,%0D%0Ab -> mend"
    )


def test_json_is_the_format_json(run, bad):
    assert run("validate", "skills", "--json").stdout == (
        run("validate", "skills", "--format", "json").stdout
    )


def test_each_real_skill_gets_its_verdict(shared):
    files = sorted((shared / "corpus").rglob("SKILL.md"))
    assert len(files) > 500
    for file in files:
        units, problems = check(str(file))
        assert units == 1, file
        assert all(item.where.path.startswith(str(file.parent)) for item in problems), file


def test_hostile_skills_end_in_a_verdict(shared, run, tmp_path):
    world = tmp_path / "hostile"
    subprocess.run(
        [sys.executable, shared / "hostile" / "make.py", "build", world],
        check=True,
        capture_output=True,
    )
    cases = sorted(os.listdir(world))
    assert len(cases) > 40
    for case in cases:
        for form in ("text", "json", "github"):
            result = run("validate", world / case, "--format", form)
            assert result.exit_code in (0, 1), case
            assert all(letter.isprintable() or letter == "\n" for letter in result.output), case
    assert not list(tmp_path.rglob("PWNED"))
