"""`test`: the tools of a plugin, called with their own examples in a scratch world."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from satchel.cli.main import cli
from satchel.configuration.configuration import configuration_path

HEAD = "from satchel import ToolError, tool\n"


@pytest.fixture
def plugin(here, write_plugin):
    """Write `plugins/demo` with these tools."""

    def plugin(tools, manifest="active: true\n"):
        return write_plugin(here / "plugins", "demo", manifest, tools=HEAD + tools)

    return plugin


@pytest.fixture
def outcome(run):
    """Test a plugin, and return what is told as JSON, with the exit code."""

    def outcome(*args):
        result = run("test", *args, "--json")
        return json.loads(result.stdout), result.exit_code

    return outcome


ECHO = """
@tool(examples=[{"text": "a"}, {"text": "b", "times": 2}])
def echo(text: str, times: int = 1) -> str:
    "Say it again."
    return text * times
"""


def test_each_tool_is_called_with_each_of_its_examples(run, outcome, plugin):
    plugin(ECHO)
    messages, code = outcome("plugins/demo")
    assert (code, messages["passed"], messages["plugin"], messages["state"]) == (
        0,
        True,
        "demo",
        "ok",
    )
    assert [item["text"] for item in messages["calls"]] == ["a", "bb"]
    assert all(item["seconds"] >= 0 for item in messages["calls"])
    result = run("test", "plugins/demo")
    first, second = result.stdout.splitlines()
    assert first.startswith('ok      echo {"text": "a"} (')
    assert second.endswith(" ms)")
    assert result.stderr == "demo: 2 calls, 0 failed\n"


@pytest.mark.parametrize("name", ["plugins/demo", "plugins/demo/", "plugins/demo/toolkit.yaml"])
def test_a_plugin_is_named_by_its_folder(outcome, plugin, name):
    plugin(ECHO)
    assert outcome(name)[0]["passed"]


def test_a_link_to_a_plugin_is_as_good_as_its_folder(outcome, plugin, here):
    (here / "linked").symlink_to(plugin(ECHO))
    assert len(outcome("linked")[0]["calls"]) == 2


def test_a_plugin_is_named_as_the_sources_know_it(run, outcome, plugin):
    plugin(ECHO)
    assert outcome("demo", "--plugins", "plugins")[0]["passed"]
    result = run("test", "dmo", "--plugins", "plugins")
    assert result.exit_code == 1
    assert "did you mean demo?" in result.stderr
    os.mkdir("plugins/other")
    assert "there is no plugin" in run("test", "plugins/other").stderr


def test_an_installed_plugin_is_tested_though_it_is_not_enabled(outcome):
    messages, code = outcome("builtin")
    # Its file tools need a folder.
    assert (code, messages["state"]) == (1, "degraded")
    assert {item["reason"] for item in messages["left_out"]} >= {"no examples"}


def test_what_ends_in_an_error_fails_with_what_the_model_would_get(run, outcome, plugin):
    plugin("""
@tool(examples=[{"city": "Rome"}, {"town": "Rome"}])
def forecast(city: str) -> str:
    "Forecast."
    raise ToolError("There is no such city.\\nThere is Oslo.")
""")
    messages, code = outcome("plugins/demo")
    assert (code, messages["passed"]) == (1, False)
    first, second = messages["calls"]
    assert (first["error_code"], first["location"]) == ("tool_error", "")
    assert second["error_code"] == "invalid_arguments"
    result = run("test", "plugins/demo")
    assert "FAILED  forecast" in result.stdout
    assert "        There is no such city.\n        There is Oslo.\n" in result.stdout
    assert "2 calls, 2 failed" in result.stderr


@pytest.mark.parametrize("options", ["", "background=True, ", "idempotent=True, "])
def test_an_exception_is_reported_with_the_place_in_the_plugins_own_code(
    run, outcome, plugin, options
):
    path = plugin(f"""
import json

@tool({options}examples=[{{"text": "not json"}}])
def parse(text: str) -> dict:
    "Parse."
    return inner(text)

def inner(text):
    return json.loads(text)
""")
    messages, code = outcome("plugins/demo")
    (call,) = messages["calls"]
    line = (path / "tools.py").read_text().splitlines().index("    return json.loads(text)") + 1
    assert code == 1
    assert call["location"] == f"{path}/tools.py:{line} in inner: json.decoder.JSONDecodeError"
    assert "Traceback" in run("test", "plugins/demo").stderr


@pytest.mark.parametrize("manifest", ["isolation: process\n", ""])
def test_an_exception_raised_elsewhere_has_no_place(outcome, plugin, manifest):
    plugin(
        """
class Lost(Exception):
    @property
    def __traceback__(self):
        return None

@tool(examples=[{}])
def go() -> int:
    "Go."
    raise Lost
""",
        manifest,
    )
    messages, code = outcome("plugins/demo")
    (call,) = messages["calls"]
    assert (code, call["error_code"], call["location"]) == (1, "tool_failed", "")


def test_a_stream_is_read_to_its_end(outcome, plugin):
    plugin("""
@tool(examples=[{"times": 2}])
def count(times: int):
    "Count."
    for number in range(times):
        yield str(number)
    raise ToolError("and no further")
""")
    messages, code = outcome("plugins/demo")
    assert code == 1
    assert "and no further" in messages["calls"][0]["text"]


def test_a_tool_without_examples_is_listed_and_not_called(run, plugin):
    path = plugin("""
from pathlib import Path

@tool
def launch() -> None:
    "Launch it."
    Path(__file__).with_name("launched").touch()
""")
    result = run("test", "plugins/demo")
    assert result.exit_code == 1
    assert "launch: no examples" in result.stdout
    assert "0 calls, 0 failed, 1 tool without examples, no tool was tested" in result.stderr
    assert not (path / "launched").exists()


KEYED = """
@tool(state=["api_key", "unit"], examples=[{}])
def tell(api_key: str, unit: str = "C") -> str:
    "Tell."
    return f"{api_key} {unit}"
"""
DECLARED = """\
active: true
config:
  api_key: {type: secret}
  unit: {type: choice, options: [C, F], default: C}
"""


@pytest.mark.parametrize("manifest", ["active: true\n", DECLARED])
def test_a_tool_that_needs_a_value_is_listed_with_what_to_give(run, outcome, plugin, manifest):
    plugin(KEYED, manifest)
    messages, code = outcome("plugins/demo")
    assert (code, messages["passed"], messages["calls"]) == (1, False, [])
    assert messages["left_out"] == [
        {"tool": "tell", "reason": "'api_key' has no value", "fix": "give --set api_key=VALUE"}
    ]
    assert "1 tool left out, no tool was tested" in run("test", "plugins/demo").stderr
    messages, code = outcome("plugins/demo", "--set", "api_key=abc", "--set", "unit=F")
    assert (code, messages["passed"]) == (0, True)
    assert [item["text"] for item in messages["calls"]] == ["abc F"]


def test_a_group_that_requires_a_value_is_listed_with_what_to_give(outcome, plugin):
    manifest = "groups:\n  paid: {requires: [plan], tools: [echo]}\n"
    plugin(ECHO, manifest)
    messages, _ = outcome("plugins/demo")
    (item,) = messages["left_out"]
    assert (item["tool"], item["fix"]) == ("echo", "give --set plan=VALUE")
    assert len(outcome("plugins/demo", "--set", "plan=gold")[0]["calls"]) == 2


def test_a_tool_is_left_out_for_one_reason(outcome, plugin):
    manifest = "groups:\n  paid: {requires: [plan], tools: [echo]}\n"
    plugin(ECHO.replace('(examples=[{"text": "a"}, {"text": "b", "times": 2}])', ""), manifest)
    messages, _ = outcome("plugins/demo")
    assert [item["reason"] for item in messages["left_out"]] == ["group 'paid' requires plan"]
    messages, _ = outcome("plugins/demo", "--set", "plan=gold")
    assert [item["reason"] for item in messages["left_out"]] == ["no examples"]


def test_a_value_that_is_not_allowed_is_refused(run, plugin):
    plugin(KEYED, DECLARED)
    result = run("test", "plugins/demo", "--set", "unit=K")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "allowed is one of C, F" in result.stderr
    assert run("test", "plugins/demo", "--set", "unit").exit_code == 2
    assert "did you mean unit?" in run("test", "plugins/demo", "--set", "unt=F").stderr


def test_a_relative_path_means_the_folder_of_the_user(outcome, plugin, here):
    (here / "data.txt").write_text("found")
    plugin(
        """
from pathlib import Path

@tool(state=["file"], examples=[{}])
def read(file: Path) -> str:
    "Read it."
    return file.read_text()
""",
        "active: true\nconfig:\n  file: {type: path, must_exist: true}\n",
    )
    messages, _ = outcome("plugins/demo", "--set", "file=data.txt")
    assert [item["text"] for item in messages["calls"]] == ["found"]


def test_nothing_of_the_users_is_used_or_changed(outcome, plugin, here, monkeypatch):
    plugin("""
import os
from pathlib import Path

@tool(state=["api_key"], examples=[{}])
def tell(api_key: str = "none") -> str:
    "Tell."
    Path("litter").touch()
    return f"{api_key} {os.environ.get('SATCHEL_DEMO_API_KEY')}"
""")
    file = Path(configuration_path("demo"))
    file.parent.mkdir(parents=True)
    file.write_text("API_KEY=secret\n")
    file.parents[1].joinpath("satchel.toml").write_text('disable = ["tell"]\n')
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", "secret")
    messages, _ = outcome("plugins/demo")
    assert [item["text"] for item in messages["calls"]] == ["none None"]
    assert os.environ["SATCHEL_DEMO_API_KEY"] == "secret"
    assert file.read_text() == "API_KEY=secret\n"
    assert Path.cwd() == here
    assert not (here / "litter").exists()


def test_each_call_is_a_conversation_of_its_own(outcome, plugin):
    plugin("""
from satchel import ToolContext

@tool(examples=[{}, {}])
def remember(context: ToolContext) -> int:
    "Count the calls."
    context.state["calls"] = context.state.get("calls", 0) + 1
    return context.state["calls"]
""")
    messages, _ = outcome("plugins/demo")
    assert [item["text"] for item in messages["calls"]] == ["1", "1"]


@pytest.mark.parametrize(
    "broken", ["def broken(:", "raise ValueError('x')", "@tool\ndef bad(x: object()): ...\n"]
)
def test_a_plugin_that_does_not_load_fails(run, outcome, plugin, broken):
    plugin(ECHO + broken)
    messages, code = outcome("plugins/demo")
    assert (code, messages["passed"]) == (1, False)
    assert messages["diagnostics"]
    assert "plugins/demo/" in run("test", "plugins/demo").stdout


def test_a_plugin_with_tools_of_which_none_is_loaded_does_not_pass(outcome, plugin):
    plugin("if False:\n    @tool\n    def unused() -> str:\n        'Do it.'\n        return 'a'\n")
    messages, code = outcome("plugins/demo")
    assert code == 1
    assert [item["tool"] for item in messages["left_out"]] == ["unused"]


def test_a_package_that_imports_itself_by_name_is_tested_as_a_project(run, here):
    run("new", "plugin", "acme-maps", "--package")
    package = here / "acme-maps/src/acme_maps"
    (package / "names.py").write_text("NAME = 'maps'\n")
    tools = package / "tools.py"
    tools.write_text(f"from acme_maps.names import NAME\n{tools.read_text()}")
    for path in ("acme-maps", "acme-maps/src/acme_maps"):
        result = run("test", path)
        assert (result.exit_code, result.stderr) == (0, "acme-maps: 1 call, 0 failed\n")
        assert re.fullmatch(r"ok      acme_maps_repeat .*\n", result.stdout)
        assert str(package.parent) not in sys.path


def test_the_name_of_a_packages_entry_point_is_right_for_its_manifest(run, here):
    run("new", "plugin", "acme-maps", "--package")
    project = here / "acme-maps/pyproject.toml"
    project.write_text(
        project.read_text().replace('"acme-maps" = "acme_maps"', 'maps = "acme_maps"')
    )
    manifest = here / "acme-maps/src/acme_maps/toolkit.yaml"
    manifest.write_text("name: maps\n")
    assert "plugin-name-folder" not in run("validate", "acme-maps").stdout
    manifest.write_text("name: charts\n")
    assert "plugin-name-folder" in run("validate", "acme-maps").stdout


def test_a_broken_manifest_fails(run, here):
    (here / "demo").mkdir()
    (here / "demo" / "toolkit.yaml").write_text("name: [\n")
    result = run("test", "demo")
    assert result.exit_code == 1
    assert "the plugin did not load" in result.stderr


def test_a_value_may_come_from_stdin_and_a_word_without_a_key_is_not_quoted(run, plugin):
    plugin(KEYED, DECLARED)
    args = ["test", "plugins/demo", "--set", "api_key=-"]
    assert "1 call, 0 failed" in CliRunner().invoke(cli, args, input="abc\n").stderr
    assert "s3cr3t" not in run("test", "plugins/demo", "--set", "s3cr3t").output


SLOW = """
import time

@tool(examples=[{}])
def first() -> str:
    "At once."
    return "one"

@tool(examples=[{}])
async def second() -> str:
    "Never."
    import asyncio
    print("WAITING")
    await asyncio.sleep(3600)
"""


def test_each_call_is_reported_when_it_ends_and_ctrl_c_sums_up(start, plugin):
    plugin(SLOW)
    process = start("test", "plugins/demo")
    process.until("ok +first")
    process.until("WAITING", "stderr")
    process.process.send_signal(signal.SIGINT)
    rest = process.rest("stderr")
    assert "demo: 1 call, 0 failed, interrupted" in rest
    assert process.process.returncode == 1
    assert not any("Traceback" in line for line in rest)


def test_the_plugin_is_shut_down_at_the_end(run, plugin):
    path = plugin(
        ECHO
        + """
from pathlib import Path
from satchel import hookimpl

@hookimpl
def satchel_shutdown():
    Path(__file__).with_name("ended").touch()
"""
    )
    assert run("test", "plugins/demo").exit_code == 0
    assert (path / "ended").exists()


def test_a_tool_of_another_plugin_is_not_run(outcome, plugin, here, write_plugin):
    plugin(ECHO)
    other = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    folder = write_plugin(here / "plugins", "other", tools=other)
    assert outcome("demo", "--plugins", "plugins")[0]["passed"]
    assert not (folder / "ran").exists()


def test_what_a_tool_prints_is_no_data(execute, plugin):
    plugin(ECHO + "    \nprint('noise')\n")
    done = execute("test", "plugins/demo", "--json")
    assert done.code == 0
    assert json.loads(done.stdout)["passed"]
