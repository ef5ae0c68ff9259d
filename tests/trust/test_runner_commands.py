import json

import pytest

from satchel.trust.fetched_servers import fetches_only
from satchel.trust.runner_commands import inner_runner_index, parse_runner
from satchel.trust.server_outline import server_outline


@pytest.mark.parametrize(
    ("line", "options", "program", "rest"),
    [
        ("npx -y acme X", ["-y"], "acme", ["X"]),
        ("npx -p a --package=b -- serve -y", ["-p=a", "--package=b", "--"], "serve", ["-y"]),
        ("npx --loud acme", [], "--loud", ["acme"]),
        ("npx --loud=1 acme", ["--loud=1"], "acme", []),
        ("npx -- -y acme", ["--"], "-y", ["acme"]),
        ("npx --from", ["--from="], "", []),
        ("uvx --python=3.12 --from tool serve", ["--python=3.12", "--from=tool"], "serve", []),
        ("uv --directory X run a.py b", ["--directory=X", "run"], "a.py", ["b"]),
        ("docker run -i -e A=b acme/x:1 c", ["run", "-i", "-e=A=b"], "acme/x:1", ["c"]),
        ("uvx -i VALUE", [], "-i", ["VALUE"]),
        ("python -u -m acme X", ["-u", "-m"], "acme", ["X"]),
        ("uv tool run acme X", ["tool", "run"], "acme", ["X"]),
        ("uv run tool X", ["run"], "tool", ["X"]),
        ("docker run run X", ["run"], "run", ["X"]),
    ],
)
def test_the_options_of_a_runner_are_in_front_of_what_it_starts(line, options, program, rest):
    name, *args = line.split()
    parts = parse_runner(name, args)
    shown = [it.name if it.value is None else f"{it.name}={it.value}" for it in parts.options]
    assert (shown, parts.program, args[parts.program_at + 1 :]) == (options, program, rest)


@pytest.mark.parametrize(
    "line",
    ["node a.js", "uv sync", "uv tool X", "uv tool install X", "docker -i", "python a.py", "deno"],
)
def test_other_commands_are_no_runners(line):
    name, *args = line.split()
    assert parse_runner(name, args) is None


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("cmd /c npx acme", "npx"),
        ("cmd /C npx", "npx"),
        ("cmd npx", ""),
        ("cmd /c sh", ""),
        ("env A=b C= uvx x", "uvx"),
        ("env -u A npx", ""),
        ("env A=b", ""),
    ],
)
def test_a_runner_inside_another_command(line, inner):
    name, *args = line.split()
    start = inner_runner_index(name, args)
    assert (args[start] if start else "") == inner


@pytest.mark.parametrize(
    ("line", "is_fetched", "outline"),
    [
        ("npx -y @acme/x@1 --key X", True, "npx -y @acme/x@1 --key ***"),
        ("npx -p acme serve", True, "npx -p *** serve"),
        ("npx -p acme sh -c X", False, "npx -p *** sh -c ***"),
        ("npx --from ./X serve", False, "npx --from *** serve"),
        ("npx --loud acme", False, "npx --loud ***"),
        ("npx --loud=X acme", False, "npx --loud=*** acme"),
        ("npx -i acme", False, "npx -i ***"),
        ("uvx --from git+https://h.x/r run", True, "uvx --from git+https://h.x/r run"),
        ("uvx --directory X acme", False, "uvx --directory *** acme"),
        ("uvx python -m X", False, "uvx python -m ***"),
        ("uvx --offline -- acme", True, "uvx --offline -- acme"),
        ("uv tool run acme", True, "uv tool run acme"),
        ("docker run -e A=X acme", False, "docker run -e A=*** acme"),
    ],
)
def test_trust_and_lists_read_a_command_in_the_same_way(line, is_fetched, outline, tmp_path):
    command, *args = line.split()
    assert fetches_only(command, args, str(tmp_path)) is is_fetched
    assert server_outline(json.dumps([command, args, None, ""])) == outline
