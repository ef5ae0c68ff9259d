"""What the user allows for a project, and the check before each start of a server."""

from shlex import quote

from satchel import Project
from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import Where, make_diagnostic
from satchel.loader.project_grants import Grant, StartCheck
from satchel.trust.code_units import CodeUnit
from satchel.trust.runnable_files import CodeFile, CodeProblem


def unit(digest, problem=None):
    return CodeUnit("plugins/a", {"run.py": CodeFile(digest)}, problem)


def granted(tmp_path, level=TrustLevel.CODE):
    return Grant(project=Project(tmp_path), level=level, units={"plugins/a": unit("1")})


def test_code_is_allowed_only_as_it_was_trusted(tmp_path):
    grant = granted(tmp_path)
    assert grant.allows(unit("1"))
    assert not grant.allows(unit("2"))
    assert not grant.allows(unit("1", CodeProblem("a file of it cannot be read")))
    assert not granted(tmp_path, TrustLevel.DATA).allows(unit("1"))


def test_without_code_there_is_nothing_to_allow(tmp_path):
    assert granted(tmp_path, TrustLevel.DATA).allows(None)


def test_a_refusal_names_the_file_that_changed(tmp_path):
    refusal = granted(tmp_path).refusal("a", "it is", unit("2"), instead="nothing is used")
    assert "run.py changed after it was trusted" in refusal.message


def test_a_server_that_changes_its_own_files_has_another_way_out(tmp_path):
    grant = granted(tmp_path)
    change = grant.refusal_to_start("box", "a", "box.log is new")
    assert change.message == "MCP server 'box' is not used: box.log is new; it is not started"
    assert change.fix.endswith("--diff, then satchel trust " + quote(str(tmp_path)) + OTHERWISE)
    problem = grant.refusal_to_start("box", "a", CodeProblem("a file is too large", "move it"))
    assert problem.fix == "move it"


OTHERWISE = "; or declare the server in your own satchel.toml"


def test_a_check_refuses_what_changed():
    diagnostic = make_diagnostic("code-held", Where("a"), "it changed", "trust it again")
    check = StartCheck(trusted=(), change=lambda: "run.py", refusal=lambda _: diagnostic)
    assert check() is diagnostic
    assert StartCheck(trusted=(), change=str, refusal=lambda _: diagnostic)() is None


def test_checks_of_the_same_trusted_files_are_equal():
    trusted = CodeUnit("plugins/a", {"run.py": CodeFile("1")})
    first, second = (
        StartCheck(trusted=(trusted, None), change=str, refusal=lambda _: None) for _ in range(2)
    )
    assert first == second
    assert hash(first) == hash(second)
    assert first != StartCheck(trusted=(None, None), change=str, refusal=first.refusal)
