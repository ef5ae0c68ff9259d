"""Which commands may run compiled files that nobody compared."""

import pytest

from satchel.trust.compiled_files import may_use_compiled


@pytest.mark.parametrize(
    ("command", "args", "may"),
    [
        ("python", ["-m", "a"], False),
        ("/usr/bin/python3.12", ["-u", "server.py"], False),
        ("uv", ["run", "--directory=.", "server.py"], False),
        ("uv", ["run", "server"], False),
        ("uv", ["--directory", ".", "run", "--frozen", "--with=x", "python", "a.py"], False),
        ("uv", ["run", "mcp", "run", "server.py"], False),
        ("uv", ["run", "proxy", "python3", "server.py"], True),
        ("uv", ["tool", "run", "proxy", "server.py"], True),
        ("uv", ["run", "python", "-m", "proxy", "python3", "server.py"], True),
        ("uv", ["run", "--isolated", "run", "python3", "server.py"], True),
        ("python3", ["-m", "proxy", "python3", "server.py"], True),
        ("python3", ["-m", "proxy", "uv", "run", "server.py"], True),
        ("node", ["index.js"], False),
        ("node", ["index.js", "/usr/bin/python3.12"], True),
        ("node", ["proxy.js", "./server.py"], True),
        ("uvx", ["--from", "./proxy.whl", "proxy"], False),
        ("uvx", ["proxy", "python3", "server.py"], True),
        ("python3", ["-I", "server.py"], True),
        ("python3", ["-uE", "server.py"], True),
        ("python3", ["-X", "pycache_prefix=", "server.py"], True),
        ("python3", ["-Xpycache_prefix=", "server.py"], True),
        ("uv", ["run", "env", "-i", "python", "server.py"], True),
        ("env", ["-i", "python", "server.py"], True),
        ("bash", ["run.sh"], True),
        ("./server", (), True),
        ("uvx", ["proxy", "./serve"], True),
        ("python3", ["-m", "proxy", "serve"], True),
        ("uv", ["run", "proxy", "./serve"], True),
        ("uv", ["run", "./serve"], False),
        ("python3", ["./serve", "data.json"], False),
    ],
)
def test_the_command_says_whether_compiled_files_count(tmp_path, command, args, may):
    (tmp_path / "serve").touch(mode=0o755)
    (tmp_path / "data.json").touch(mode=0o644)
    assert may_use_compiled(command, args, str(tmp_path)) == may
