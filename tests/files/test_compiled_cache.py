"""A forged compiled file beside a source that did not change is never run."""

import importlib.util
import json
import marshal
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from satchel import Project, Satchel, SatchelError, Settings
from satchel.configuration.projects import TrustLevel
from satchel.configuration.selection_reader import parse_selection
from satchel.files import compiled_cache as module
from satchel.files.compiled_cache import compiled_cache
from satchel.sources.search_roots import Precedence
from satchel.trust.code_units import project_of_settings
from satchel.trust.trust_record import TrustStore

TAG = sys.implementation.cache_tag
CHECKED = 3
"""The flags of a compiled file that Python compares with the hash of its source."""


def forge(source: Path, code: str, flags: int = CHECKED) -> Path:
    """Write a compiled file of other code, which Python takes for that of the source."""
    compiled = Path(os.path.dirname(source), "__pycache__", f"{source.stem}.{TAG}.pyc")
    compiled.parent.mkdir(exist_ok=True)
    if flags:
        message = importlib.util.source_hash(source.read_bytes())
    else:
        status = source.stat()
        message = b"".join(
            int(it).to_bytes(4, "little") for it in (status.st_mtime, status.st_size)
        )
    head = importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + message
    compiled.write_bytes(head + marshal.dumps(compile(code, str(source), "exec")))
    return compiled


@pytest.fixture
def marks(tmp_path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def mark(path: Path) -> str:
    return f"open({str(path)!r}, 'w').close()\ndef said(): return {path.name!r}\n"


@pytest.mark.parametrize("flags", [CHECKED, 0])
def test_python_itself_believes_the_forged_file(tmp_path, marks, flags):
    helper = tmp_path / "helper.py"
    helper.write_text(mark(marks / "honest"))
    forge(helper, mark(marks / "forged"), flags)
    environment = {k: v for k, v in os.environ.items() if k != module.VARIABLE}
    command = [sys.executable, "-c", "import helper"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert os.listdir(marks) == ["forged"]


def trust(folder: Path) -> None:
    from satchel.trust.project_inventory import read_inventory

    TrustStore().write(read_inventory(Project(folder)).record(TrustLevel.CODE, ()))


@pytest.mark.parametrize("flags", [CHECKED, 0])
def test_a_server_of_a_trusted_project_runs_its_source(tmp_path, marks, flags):
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "helper.py").write_text(mark(marks / "honest"))
    (clone / "server.py").write_text("import helper\n")
    command = json.dumps(sys.executable)
    (clone / "satchel.toml").write_text(f"[mcp.own]\ncommand = {command}\nargs = ['server.py']\n")
    trust(clone)
    forge(clone / "helper.py", mark(marks / "forged"), flags)
    with Satchel(project=Project(clone)) as app:
        app.wait_for_mcp_servers(60)
    assert os.listdir(marks) == ["honest"]


def test_a_script_of_a_frozen_skill_runs_its_source(tmp_path, marks, write_skill):
    scripts = write_skill(tmp_path / "skills", "greet") / "scripts"
    scripts.mkdir()
    for name in ("run.py", "other.sh"):
        text = f'exec {sys.executable} -c \'import sys; sys.path[0] = "scripts"; import helper; '
        text += "print(helper.said())'\n"
        (scripts / name).write_text(text if name == "other.sh" else RUN)
    (scripts / "helper.py").write_text("def said(): return 'honest'\n")
    lock = tmp_path / "satchel.lock"
    with Satchel(tmp_path / "skills", settings=Settings(cache=False)) as app:
        lock.write_text(app.lock_contents(lock).text)
    compiled = forge(scripts / "helper.py", "def said(): return 'forged'\n")
    content = compiled.read_bytes()
    with Satchel(tmp_path / "skills", locked=lock, frozen=True) as app:
        session = app.session(scripts=True)
        session.step().call_sync("load_skill", {"name": "greet"})
        for name in ("run.py", "other.sh"):
            asked = {"skill": "greet", "script": f"scripts/{name}"}
            text = session.step().call_sync("run_skill_script", asked).text
            assert "honest" in text
            assert "forged" not in text
    assert compiled.read_bytes() == content


RUN = "import helper\nprint(helper.said())\n"
PLUGIN = """
import importlib
from satchel import tool
import helper
from . import helper as beside

@tool
def ask() -> str:
    'Ask.'
    import late
    found = importlib.import_module(__package__ + ".helper") if __package__ else helper
    return " ".join((helper.said(), beside.said(), found.said(), late.said()))
"""


@pytest.mark.parametrize("manifest", ["", "isolation: process\n"])
def test_a_plugin_runs_the_sources_of_its_modules(tmp_path, marks, write_plugin, manifest):
    files = {"helper": mark(marks / "honest"), "late": mark(marks / "honest")}
    write_plugin(tmp_path / "plugins", "demo", f"{manifest}active: true\n", tools=PLUGIN, **files)
    for name in files:
        forge(tmp_path / f"plugins/demo/{name}.py", mark(marks / "forged"))
    with Satchel(plugins=[tmp_path / "plugins"]) as app:
        text = app.session().step().call_sync("ask", {}).text
    assert text == "honest honest honest honest"
    assert os.listdir(marks) == ["honest"]


def test_an_isolated_plugin_uses_no_compiled_file_of_what_it_imports_by_path(
    tmp_path, marks, write_plugin
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "far_helper.py").write_text(mark(marks / "honest"))
    forge(outside / "far_helper.py", mark(marks / "forged"))
    code = f"import sys\nsys.path.insert(0, {str(outside)!r})\nimport far_helper\n"
    write_plugin(tmp_path / "plugins", "demo", "isolation: process\n", tools=code)
    with Satchel(plugins=[tmp_path / "plugins"]) as app:
        assert app.catalog.all_plugins
    assert os.listdir(marks) == ["honest"]


@pytest.mark.parametrize(
    ("command", "args", "may"),
    [
        ("/usr/bin/python3.12", ["-u", "server.py"], False),
        ("uv", ["run", "server"], False),
        ("uvx", ["proxy", "python3", "server.py"], True),
        ("./server", (), True),
    ],
)
def test_the_command_says_whether_compiled_files_are_compared(tmp_path, command, args, may):
    (tmp_path / "a.py").touch()
    text = f"[mcp.box]\ncommand = '{command}'\nargs = {json.dumps(list(args))}\n"
    path = str(tmp_path / "satchel.toml")

    def digest() -> str:
        file = parse_selection(path, Precedence.PROJECT, text.encode())
        unit = project_of_settings(file, str(tmp_path))
        return unit.digest if unit else ""

    before = digest()
    forge(tmp_path / "a.py", "x = 1")
    assert (digest() != before) == may
    (tmp_path / "a.py").unlink()
    before = digest()
    (tmp_path / f"__pycache__/a.{TAG}.pyc").unlink()
    assert digest() != before  # without a source it always counts


@pytest.mark.parametrize(("command", "counts"), [("python", False), ("env", True)])
def test_compiled_files_of_a_locked_plugin_count_if_its_server_may_use_them(
    tmp_path, command, counts
):
    bundle = tmp_path / "plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    server = {"command": command, "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"]}
    (bundle / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": server}}))
    (bundle / "server.py").touch()
    lock = tmp_path / "satchel.lock"
    with Satchel(plugins=[tmp_path / "plugins"]) as app:
        lock.write_text(app.lock_contents(lock).text)
    forge(bundle / "server.py", "x = 1")
    expected = pytest.raises(SatchelError, match="bundle") if counts else nullcontext()
    with expected, Satchel(plugins=[tmp_path / "plugins"], locked=lock):
        pass


@pytest.mark.parametrize(("command", "counts"), [("python", False), ("env", True)])
def test_compiled_files_are_compared_before_each_start_if_the_server_may_use_them(
    tmp_path, command, counts
):
    clone = tmp_path / "clone"
    bundle = clone / "plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    server = {"command": command, "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"]}
    (bundle / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": server}}))
    (bundle / "server.py").write_text("x = 1")
    (clone / "satchel.toml").write_text("[sources]\nskills = []\n")
    trust(clone)
    with Satchel(project=Project(clone), settings=Settings(mcp_servers=False)) as app:
        check = app.declared_mcp_servers["a"].server.check
    assert check() is None
    forge(bundle / "server.py", "x = 2")
    assert (check() is not None) == counts


def test_the_folder_is_private_or_nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.delenv(module.VARIABLE)
    folder = Path(compiled_cache())
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert compiled_cache() == os.devnull
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert compiled_cache() == os.devnull
    folder.unlink()
    folder.touch()
    assert compiled_cache() == os.devnull
    command = [sys.executable, "-X", f"pycache_prefix={os.devnull}", "-c", "import json, cmd"]
    done = subprocess.run(command, check=True, capture_output=True)
    assert done.stderr == b""
    monkeypatch.setenv(module.VARIABLE, str(tmp_path))
    assert compiled_cache() == str(tmp_path)
