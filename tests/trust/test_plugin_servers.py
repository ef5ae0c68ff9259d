"""Which servers of a plugin use only its own folder; all others may use its whole project."""

import pytest

from satchel.formats.mcp_json import McpServerManifest
from satchel.trust.plugin_servers import stays_in_folder

ROOT = "${CLAUDE_PLUGIN_ROOT}"


@pytest.fixture
def plugin(tmp_path):
    folder = tmp_path / "clone/plugins/demo"
    for name in ("server.py", "bin/serve", "index.js", "sub dir/run.sh", "sub.d", "$x.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def stays(plugin, command, *args, of_claude=True, **table):
    table = {"command": command, "args": list(args), **table}
    server = McpServerManifest(name="a", table=table, of_claude=of_claude)
    return stays_in_folder(server, str(plugin), str(plugin.parent.parent))


def test_a_header_of_a_fetched_server_is_no_command(plugin):
    assert stays(plugin, "npx", "-y", "acme", "--header", "Authorization: Bearer ${KEY}")
    assert not stays(plugin, "npx", "-y", "acme", "--header", "sh: Bearer ${KEY}")


def test_a_variable_of_the_user_with_a_path_of_the_project_leads_out(plugin, monkeypatch):
    monkeypatch.setenv("REPO", str(plugin.parent))
    assert not stays(plugin, "python3", f"{ROOT}/server.py", env={"PYTHONPATH": "${REPO}"})
    monkeypatch.setenv("REPO", str(plugin))
    assert stays(plugin, "python3", f"{ROOT}/server.py", env={"PYTHONPATH": "${REPO}"})


def test_a_remote_server_uses_no_files(plugin):
    server = McpServerManifest(name="a", table={"url": "https://h.example/../x"})
    assert stays_in_folder(server, str(plugin), str(plugin.parent))


@pytest.mark.parametrize(
    "line",
    [
        f"python3 {ROOT}/server.py --title (all) $x",
        "python3 -u server.py",
        f"/usr/bin/python3.12 -uB {ROOT}/server.py",
        f"{ROOT}/.venv/bin/python {ROOT}/server.py",
        f"node --no-warnings {ROOT}/index.js",
        f"bash {ROOT}/bin/serve",
        f"{ROOT}/bin/serve --any (thing)",
        "./bin/serve",
        f"uv run {ROOT}/server.py",
        f"uv --directory {ROOT} run server.py",
        f"uv run --directory {ROOT} --quiet python -u server.py",
        "uvx mcp-server-time",
        "uvx --from tool[all]==2.* mcp-server-x",
        "npx -y @acme/server@1.0 --port 80 ./data",
        "npx -y mcp-remote https://h.example/mcp?a=1",
        "docker run -i --rm -e KEY -e NAME=value ghcr.io/acme/server:1.0 sh -c x",
        "podman run --rm acme@sha256:" + "a" * 64,
        "uvx mcp-proxy --transport sse",
    ],
)
def test_the_usual_servers_of_plugins_use_their_own_folder(plugin, line):
    assert stays(plugin, *line.split())


@pytest.mark.parametrize(
    ("table", "is_understood"),
    [
        ({"env": {"KEY": "${KEY}", "LEVEL": "info", "URL": "https://h.example/x"}}, True),
        ({"env": {"DATA": f"{ROOT}/data", "NUMBER": 3}, "cwd": ROOT}, True),
        ({"cwd": "."}, True),
        ({"env": {"BASH_ENV": "$(x)"}}, False),
        ({"env": {"NODE_OPTIONS": "--require=evil"}}, False),
        ({"env": {"NODE_OPTIONS": " --require=evil"}}, False),
        ({"env": {"PYTHONPATH": "${PWD}"}}, False),
        ({"env": {"PYTHONPATH": "${init_cwd}/x"}}, False),
        ({"env": {"X": "${KEY:-default}"}}, True),
        ({"env": {"X": "${KEY:-}", "DB": "${CLAUDE_PLUGIN_DATA}/x.db"}}, True),
        ({"env": {"X": "${KEY:-a;b}"}}, False),
        ({"env": {"X": "${KEY:-.}${KEY:-.}/x"}}, False),
        ({"env": {"PYTHONPATH": f"{ROOT}-lib"}}, False),
        ({"env": {"PYTHONPATH": f"{ROOT}/lib:{ROOT}"}}, True),
        ({"env": {"BASH_ENV": "/home/${USER}/clone/x"}}, False),
        ({"env": {"A_": ".", "BASH_ENV": "${A_}${A_}x"}}, False),
        ({"cwd": "${KEY:-.}."}, False),
        ({"cwd": "${KEY}"}, False),
        ({"args": ["${KEY:-server.py}"]}, False),
        ({"env": {"PYTHONPATH": "${PWD:-x}"}}, False),
        ({"env": ["A=b"]}, False),
        ({"env-file": ".env"}, False),
        ({"cwd": "sub dir"}, False),
        ({"cwd": "/"}, False),
        ({"args": "server.py"}, False),
    ],
)
def test_only_plain_values_and_the_folder_of_the_plugin_are_understood(
    plugin, table, is_understood
):
    assert stays(plugin, "python3", **{"args": ["server.py"], **table}) is is_understood


CODE = ". ./.''./evil.sh"


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", CODE],
        ["sh", "-c", "x"],
        ["sh", "-s", "bin/serve"],
        ["bash", "-O", "extglob", "-c", CODE],
        ["sh", "run.sh"],
        ["sh", "/etc/profile"],
        ["python3", "-m", "server"],
        ["python3", "-c", "x"],
        ["python3", "../../x.py"],
        ["python3", "sub%20dir/%2e%2e/x"],
        ["python3", "${PWD}/x.py"],
        ["python3", ".${X_:-}./.${X_:-}./x.py"],
        [".${X_:-}./.${X_:-}./python3", "server.py"],
        ["${PWD}/bin/python3", "server.py"],
        [f"{ROOT}-x/python3", "server.py"],
        ["server.py"],
        ["php", "-B", "server.py"],
        ["python3", "--no-warnings", "server.py"],
        ["uv", "run", "sub.d"],
        ["node", "-r", "./index.js", "-p", "x"],
        ["node", "--experimental-loader", "index.js", "x"],
        ["perl", "-ex"],
        ["awk", "x"],
        ["env", "python3", "server.py"],
        ["make", "serve"],
        ["cargo", "run"],
        ["mcp-server-unknown"],
        ["bun", "run", "index.js"],
        ["deno", "run", "-A", "server.py"],
        ["npm", "start"],
        ["uv", "run", "serve"],
        ["uv", "run", "--with", "x", "server.py"],
        ["uv", "run", "--directory", "/", "server.py"],
        ["uv", "run", "--directory", "sub dir", "server.py"],
        ["uv", "run", "sh", "-c", CODE],
        ["uv", "server.py"],
        ["uv"],
        ["uvx", "mcp-proxy", "sh", "x"],
        ["uvx", "mcp-proxy", "--command=awk x"],
        ["uvx", "mcp-proxy", "$SHELL"],
        ["uvx", "mcp-proxy", "${SHELL_PATH}"],
        ["uvx", "mcp-proxy", CODE],
        ["npx", "-y", "bridge", "${CMD}"],
        ["npx", "-c", "x"],
        ["docker", "run", "-v", ".:/x", "acme"],
        ["docker", "run", "--volume=x:/x", "acme"],
        ["docker", "run", "--env-file", "x", "acme"],
        ["docker", "compose", "up"],
        ["docker", "run"],
        ["docker", "run", "a b"],
        ["unknown", "server.py"],
        ["sub dir/python3", "server.py"],
    ],
)
def test_every_other_command_may_use_the_whole_project(plugin, words):
    (plugin / "sub dir/python3").symlink_to("/")
    words = [*words]
    env = {"CMD": "x"} if "${CMD}" in words else {}
    expected = words[0] == "sub dir/python3"  # A link out of the project to an interpreter.
    assert stays(plugin, *words, env=env) is expected


def test_a_path_of_the_project_outside_of_the_plugin_is_seen(plugin):
    other = plugin.parent.parent / "x.js"
    other.touch()
    assert not stays(plugin, "node", "index.js", str(other))
    assert not stays(plugin, "node", "index.js", f"file://{other}".replace("x.js", "./x.js"))
    assert not stays(plugin, "node", "index.js", str(other).upper())
    assert stays(plugin, "node", "index.js", str(plugin / "other.js"))


@pytest.mark.parametrize("name", ["-c", "sh"])
def test_a_file_that_is_called_as_an_option_or_a_command_is_no_script(plugin, name):
    (plugin / name).touch()
    assert not stays(plugin, "sh", "-c", CODE)
    assert not stays(plugin, "uv", "run", "sh", "-c", CODE)


def test_a_link_is_the_file_that_it_leads_to(plugin):
    (plugin.parent / "x.py").touch()
    (plugin / "link.py").symlink_to("../x.py")
    assert not stays(plugin, "python3", "link.py")
    assert not stays(plugin, "./link.py")


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        ("[build-system]\n[project.scripts]\nserve = 'x:main'\n", True),
        ("[build-system]\n[project.scripts]\nother = 'x:main'\n", False),
        ("[build-system]\n[project]\nscripts = 'serve'\n", False),
        ("[project.scripts]\nserve = 'x:main'\n", False),
        ("not toml", False),
        ("project = 1", False),
    ],
)
def test_uv_may_run_what_the_project_file_of_the_plugin_defines(plugin, text, is_own):
    (plugin / "pyproject.toml").write_text(text)
    assert stays(plugin, "uv", "run", "serve") is is_own


def test_an_installed_program_is_not_that_of_the_plugin(plugin):
    text = "[build-system]\n[project.scripts]\nawk = 'x:main'\n"
    (plugin / "pyproject.toml").write_text(text)
    assert not stays(plugin, "uv", "run", "awk")


def test_an_open_plugin_fills_in_only_its_folder(plugin):
    assert stays(plugin, "python3", "${PLUGIN_ROOT}/server.py", of_claude=False)
    assert not stays(plugin, "python3", "server.py", of_claude=False, env={"X": "${KEY:-(x)}"})


@pytest.mark.parametrize("name", ["pyproject.toml", ".venv", "uv.toml"])
def test_uv_run_below_a_project_that_it_would_use_may_use_it(plugin, name):
    assert stays(plugin, "uv", "run", "server.py")
    (plugin.parent.parent / name).mkdir()
    assert not stays(plugin, "uv", "run", "server.py")
