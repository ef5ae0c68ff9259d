"""Which servers use no file of their project, and which may run programs from above it."""

import os
import tomllib
from time import process_time

import pytest

from satchel.trust.fetched_servers import (
    fetches_only,
    may_hide_names,
    may_use_project,
    runs_from_above,
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "clone"
    folder.mkdir()
    return folder


def test_a_variable_of_the_user_with_a_path_of_the_project_is_a_use_of_it(folder, monkeypatch):
    (folder / "conf.js").touch()
    table = {"command": "npx", "args": ["-y", "acme"], "env": {"KEY": "${CONF}"}}
    for value in ("sk-a/b+c=", str(folder.parent), "other.js", ""):
        monkeypatch.setenv("CONF", value)
        assert not may_use_project(table, str(folder)), value
    for value in ("conf.js", f"/lib:{folder}", f"--import={folder}/conf.js"):
        monkeypatch.setenv("CONF", value)
        assert may_use_project(table, str(folder)), value


@pytest.mark.parametrize(
    ("table", "is_fetched"),
    [
        ("command = 'uvx'\nargs = ['mcp-server-time']", True),
        ("command = 'npx'\nargs = ['-y', '@acme/server@1.0', '--port=80']", True),
        ("command = 'npx'\nargs = ['mcp-remote', 'https://x.example/mcp?a=%20', '-v']", True),
        ("command = 'npx'\nargs = ['-p=acme', '--', 'serve', '--header', 'X-Key: a1']", True),
        ("command = 'uvx'\nargs = ['--from=tool[all]==2.*', '--python', '3.12', 'x']", True),
        ("command = 'npx'\nargs = ['mysub']", True),
        ("command = 'uvx'\nargs = ['serve']\ncwd = '.'", True),
        ("command = 'uvx'\nargs = ['serve']\ncwd = 'sub'", False),
        ("command = 'npx'\nargs = ['-c', 'sh sub/run.sh']", False),
        ("command = 'npx'\nargs = ['-c', 'ls|sh']", False),
        ("command = 'npx'\nargs = ['--workspaces', 'serve']", False),
        ("command = 'npx'\nargs = ['-p', 'acme', 'sh', '-c', 'make']", False),
        ("command = 'npx'\nargs = ['serve', 'sh sub/run.sh']", False),
        ("command = 'npx'\nargs = ['serve', 'sh s*b/run.sh']", False),
        ("command = 'npx'\nargs = ['serve', '-qcsub']", False),
        ("command = 'npx'\nargs = ['serve', 'sub/run']", False),
        ("command = 'npx'\nargs = ['serve', '--url=https://x/$(sh)']", False),
        ("command = 'npx'\nargs = ['serve', '/proc/self/cwd/sub']", False),
        ("command = 'uvx'\nargs = ['-chere.txt', 'serve']", False),
        ("command = 'uvx'\nargs = ['--from', 'file:///%63/sub', 'serve']", False),
        ("command = 'uvx'\nargs = ['--from', '/proc/self/cwd/sub', 'serve']", False),
        ("command = 'uvx'\nargs = ['serve', 'file://%73ub']", False),
        ("command = 'uvx'\nargs = ['python', '-m', 'unittest']", False),
        ("command = 'uvx'\nargs = ['serve', '-m', 'sub.run']", False),
        ("command = 'npx'\nargs = ['node', 'sub/native']", False),
        ("command = 'uvx'\nargs = ['serve', '-m', 'fast']", False),
        ("command = 'uvx'\nargs = ['serve', 1]", True),
        ("command = 'uv'\nargs = ['tool', 'run', 'serve']", True),
        ("command = 'uv'\nargs = ['tool', 'run', '-chere.txt', 'serve']", False),
        ("command = 'uv'\nargs = ['tool', 'tool', 'run', 'serve']", False),
        ("command = 'uvx'\nargs = ['--quiet']", False),
        ("command = 'uvx'\nargs = ['--from', 'my tool', 'serve']", False),
        ("command = 'uvx'\nargs = ['--with=here.txt', 'serve']", False),
        ("command = 'uvx'\nargs = ['--from', '.', 'serve']", False),
        ("command = 'uvx'\nargs = ['${NAME:-x}']", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'b', KEY = '${KEY}', N = 3 }", True),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'https://h.example/x?a=1' }", True),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = '${REGION:-eu}' }", True),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = '${REGION:-sub}' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = '${PWD:-eu}' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'sub' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'x:.' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'x:' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = '-r x' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'make' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = 'awk x' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = '${PWD}' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = { A = '/home/${USER}/x' }", False),
        ("command = 'uvx'\nargs = ['serve']\nenv = ['A=b']", False),
        ("command = 'uvx'\nargs = ['serve']\nenv-file = '.env'", False),
        ("command = './uvx'\nargs = ['serve']", False),
        ("command = 'python3'\nargs = ['-m', 'serve']", False),
    ],
)
def test_a_server_that_is_fetched_by_a_plain_name_uses_no_file_of_the_project(
    folder, table, is_fetched
):
    (folder / "my tool").mkdir()
    (folder / "sub").mkdir()
    (folder / "sub/run.sh").write_text("")
    (folder / "sub/native.node").write_text("")
    (folder / "fast.cpython-313-x86_64-linux-gnu.so").write_text("")
    (folder / "here.txt").write_text("serve")
    assert may_use_project(tomllib.loads(table), str(folder)) is not is_fetched


@pytest.mark.parametrize(
    ("names", "uses_project"),
    [
        ("GITHUB_TOKEN HOMEASSISTANT_TOKEN REDIRECT_URI NPM_TOKEN PROJECT_ID DIRECT_URL", False),
        ("HOME DATA_DIRS BASEPATH npm_config_prefix GIT_DIR PYTHONPATH WORKDIRECTORY LD_X", True),
    ],
)
def test_a_variable_that_may_name_a_folder_is_one_by_the_words_of_its_name(
    folder, names, uses_project
):
    for name in names.split():
        table = {"command": "uvx", "args": ["serve"], "env": {name: f"${{{name}}}"}}
        assert may_use_project(table, str(folder)) is uses_project, name


@pytest.mark.parametrize("name", ["package.json", ".npmrc", "node_modules"])
def test_npx_uses_the_files_of_a_project_that_change_what_it_runs(folder, name):
    server = {"command": "npx", "args": ["serve"]}
    assert not may_use_project(server, str(folder))
    (folder / name).touch()
    assert may_use_project(server, str(folder))
    for version in ("1.2", "latest"):
        pinned = {"command": "npx", "args": ["-y", f"@acme/serve@{version}"]}
        assert not may_use_project(pinned, str(folder))


@pytest.mark.parametrize("word", ["no/../lib", "--config=no/..", "/x/../lib", "%2e%2e/lib"])
def test_a_path_through_a_folder_above_is_a_use(folder, word):
    assert may_use_project({"command": "uvx", "args": ["serve", word]}, str(folder))


def test_a_remote_server_uses_no_file():
    assert not may_use_project({"url": "https://h.example/mcp"}, "/clone")


@pytest.mark.parametrize("args", ["serve", 3, {"a": 1}])
def test_arguments_that_are_no_list_are_not_understood(folder, args):
    assert may_use_project({"command": "uvx", "args": args}, str(folder))


@pytest.mark.parametrize(
    ("table", "is_above"),
    [
        ("command = 'npx'\nargs = ['-y', 'serve', '.']\nenv = { KEY = 'k' }", False),
        ("command = 'npx'\nargs = ['-y', '--loglevel', 'silent', 'serve']", True),
        ("command = 'npx'\nargs = ['-y', 'serve']\ncwd = 'sub'", True),
        ("command = 'sh'\nargs = ['-c', 'exec npx -y serve']", True),
        ("command = 'sh'\nargs = ['-c', '(npx serve)']", True),
        ("command = 'sh'\nargs = ['-c', '\"npx\" serve']", True),
        ("command = 'sh'\nargs = ['-c', 'x=npx;$x serve']", True),
        ("command = 'corepack'\nargs = ['yarn@1', 'serve']", True),
        ("command = 'python3'\nargs = ['npx-tool.py']", False),
        ("command = 'pnpm'\nargs = ['dlx', 'serve']", True),
        ("command = '/usr/bin/bunx'\nargs = ['serve']", True),
        ("command = 'python3'\nargs = ['serve.py']", False),
    ],
)
@pytest.mark.parametrize("name", ["package.json", "node_modules"])
def test_the_file_above_a_project_that_decides_what_runs_is_named(
    folder, monkeypatch, name, table, is_above
):
    server, below = tomllib.loads(table), folder / "sub"
    below.mkdir()
    assert runs_from_above(server, str(below)) == ""
    (folder / name).mkdir()
    assert runs_from_above(server, str(below)) == (str(folder / name) if is_above else "")
    monkeypatch.setenv("HOME", str(folder))  # the user's own files
    assert runs_from_above(server, str(below)) == ""


@pytest.mark.parametrize(
    ("server", "is_hidden"),
    [
        ({"command": "sh", "args": ["-c", "sh ./satchel.l?ck"]}, True),
        ({"command": "sh", "args": ["*"]}, True),
        ({"command": "perl", "args": ["-e", "do q:./satchel.lo:.q:ck:"]}, True),
        ({"command": "perl", "args": ["-edo q:./satchel.lo:.q:ck:"]}, True),
        ({"command": "node", "args": ["x.js"], "env": {"A": "$(cat x)"}}, True),
        ({"command": "node", "args": ["x.js", "${KEY}"], "env": {"A": "b"}}, False),
        ({"url": "https://h.example/mcp"}, False),
    ],
)
def test_a_command_may_hide_the_names_of_files_it_uses(server, is_hidden):
    assert may_hide_names(server) is is_hidden


@pytest.mark.parametrize(
    ("command", "args", "is_above"),
    [
        ("uv", ["run", "server.py"], True),
        ("/usr/bin/uv", ["--directory", ".", "run", "server.py"], True),
        ("uv", ["run", "--no-project", "server.py"], False),
        ("uv", ["run", "--offline", "server.py", "--no-project"], True),
        ("uv", ["run", "--offline", "server.py", "tool"], True),
        ("uv", ["run", "tool"], True),
        ("uv", ["run", "run", "--no-project"], True),
        ("uv", ["run", "--offline", "--", "--no-project"], True),
        ("uv", ["tool", "run", "acme"], False),
        ("uvx", ["acme"], False),
    ],
)
@pytest.mark.parametrize("name", [".venv", "pyproject.toml", "uv.toml", ".python-version"])
def test_uv_run_uses_the_environment_of_a_folder_above(folder, name, command, args, is_above):
    (folder / "sub").mkdir()
    (folder / name).mkdir()
    path = runs_from_above({"command": command, "args": args}, str(folder / "sub"))
    assert path == (str(folder / name) if is_above else "")


@pytest.mark.parametrize(
    "line",
    [
        "uvx uv run serve",
        "uvx mcp-proxy uv run serve",
        "uvx --from invoke inv serve",
        "uvx invoke[x] serve",
        "npx -y cross-env make",
        "npx -y bridge --stdio awk run",
        "npx -y bridge --command=awk x",
        "npx -y bridge --log awk --stdio",
    ],
)
def test_a_fetched_package_that_may_start_an_installed_program_is_not_only_fetched(tmp_path, line):
    command, *args = line.split()
    assert not fetches_only(command, args, str(tmp_path))


def test_a_folder_that_cannot_be_listed_may_hold_what_is_named(tmp_path, monkeypatch):
    table = {"command": "npx", "args": ["serve", "sub/run"]}
    assert not may_use_project(table, str(tmp_path))

    def refuse(_path):
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    assert may_use_project(table, str(tmp_path))


@pytest.mark.parametrize("word", ["${a:-", "x1,", "a/", "-a", "%41", "@a=", "..a/"])
def test_a_long_declaration_is_read_in_linear_time(folder, word):
    for number in range(300):
        (folder / f"file{number}").touch()
    os.utime(folder, (1, 1))
    times = []
    for count in (1000, 8000):
        table = {"command": "uvx", "args": ["package", *[word * count] * 2]}
        start = process_time()
        may_use_project(table, str(folder))
        times.append(process_time() - start)
    assert times[1] < 24 * times[0] + 0.1  # a square would be 64 times
