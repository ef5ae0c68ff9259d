import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from satchel import FunctionTool, Limits, Satchel, ToolCall, builtin
from satchel.plugins.hook_host import call_hooks
from satchel.runtime.call_task import prepare_call
from satchel.tools import as_tool

NAMES = [
    *("get_today_date", "view_text_file", "write_text_file", "insert_text_file"),
    *("execute_python_code", "execute_shell_command"),
]


@pytest.fixture(scope="module")
def brought():
    return call_hooks(builtin)


@pytest.fixture
def app(brought, tmp_path):
    """A satchel with the tools as a host would have them that gives the folder as a preset."""
    app = Satchel()
    for fn in brought.tools:
        fields = {"base_directory": tmp_path} if fn.__name__ != "get_today_date" else {}
        app.register_tool(fn, presets=fields)
    return app


def call(app, name, **arguments):
    return asyncio.run(app.session().call(name, arguments))


def test_it_brings_six_tools_each_in_one_group(brought):
    assert [fn.__name__ for fn in brought.tools] == NAMES
    assert [name for group in brought.groups for name in group.tools] == NAMES


def test_only_the_dates_are_active_by_themselves(brought):
    assert [group.name for group in brought.groups] == ["dates", "files", "code", "shell"]
    assert [group.name for group in brought.groups if group.active] == ["dates"]


def test_each_group_says_what_it_is_for_and_how_to_use_it_well(brought):
    for group in brought.groups:
        assert group.description
        assert 50 < len(group.notes) < 500


def test_every_parameter_is_described_and_none_is_the_hosts(app):
    for schema in app.session().schemas():
        properties = schema["function"]["parameters"]["properties"]
        assert "base_directory" not in properties
        for about in properties.values():
            assert about["description"]


def test_a_model_that_names_a_folder_of_its_own_is_refused(app, tmp_path):
    result = call(app, "view_text_file", path="passwd", base_directory="/etc")
    assert (result.error_code, "/etc" in result.text) == ("invalid_arguments", False)


def test_a_file_that_is_written_is_what_the_shell_and_the_code_see(app):
    assert not call(app, "write_text_file", path="a.txt", content="42\n").is_error
    shell = call(app, "execute_shell_command", command="cat a.txt")
    code = call(app, "execute_python_code", code="print(open('a.txt').read(), end='')")
    assert shell.structured["stdout"] == code.structured["stdout"] == "42\n"
    assert call(app, "view_text_file", path="a.txt").text == "1\t42"


def test_the_folder_of_the_host_may_be_in_its_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    app = Satchel()
    for fn in (builtin.write_text_file, builtin.execute_shell_command):
        app.register_tool(fn, presets={"base_directory": Path("~/work")})
    assert not call(app, "write_text_file", path="a.txt", content="42\n").is_error
    assert call(app, "execute_shell_command", command="ls").structured["stdout"] == "a.txt\n"


def test_a_refusal_reaches_the_model_in_our_words(app, tmp_path):
    result = call(app, "view_text_file", path="../../etc/passwd")
    assert (result.is_error, result.error_code) == (True, "tool_error")
    assert str(tmp_path) not in result.text


def test_the_limit_of_the_model_comes_before_the_one_of_the_host(brought, ends):
    tool = next(as_tool(fn) for fn in brought.tools if fn.__name__ == "execute_shell_command")
    wish = ToolCall(
        name="execute_shell_command", arguments={"command": "echo $$; sleep 100", "timeout": 1}
    )
    result = asyncio.run(prepare_call(wish, tool, Limits(tool_call=0.5)).result())
    assert result.structured["timed_out"]
    assert ends(int(result.structured["stdout"]))


def test_the_limit_of_the_host_ends_the_program_as_well(brought, ends, tmp_path):
    fn = next(fn for fn in brought.tools if fn.__name__ == "execute_shell_command")
    tool = FunctionTool(fn, timeout=0.5, presets={"base_directory": tmp_path})
    wish = ToolCall(name="execute_shell_command", arguments={"command": "echo $$ > pid; sleep 100"})
    result = asyncio.run(prepare_call(wish, tool, Limits()).result())
    assert result.error_code == "timeout"
    assert ends(int((tmp_path / "pid").read_text()))


def test_importing_it_loads_nothing_heavy_that_was_not_there():
    code = """if True:
        import sys, satchel.plugins
        before = set(sys.modules)
        import satchel.builtin
        print(*set(sys.modules) - before)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "satchel.builtin.file_tools" in loaded
    assert loaded.isdisjoint({"asyncio", "subprocess", "tempfile", "shutil", "pydantic", "griffe"})
