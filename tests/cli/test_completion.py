"""Completion in the shell: the scripts, and where they are installed."""

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_for_each_shell(run, shell):
    result = run("completion", "show", shell)
    assert "_SATCHEL_COMPLETE" in result.stdout
    assert result.exit_code == 0


def test_the_users_shell_is_the_default(run, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert run("completion", "show").stdout == run("completion", "show", "fish").stdout
    monkeypatch.setenv("SHELL", "/usr/bin/nu")
    result = run("completion", "show")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "your shell is not known; name it: bash, zsh, fish" in result.stderr


@pytest.mark.parametrize(
    ("shell", "path"),
    [
        ("bash", ".local/share/bash-completion/completions/satchel"),
        ("fish", ".config/fish/completions/satchel.fish"),
    ],
)
def test_bash_and_fish_get_a_file(run, tmp_path, monkeypatch, shell, path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for _ in range(2):
        assert run("completion", "install", shell).stdout == f"{tmp_path}/{path}\n"
        assert (tmp_path / path).read_text() == run("completion", "show", shell).stdout


@pytest.mark.parametrize("before", [b"", b"a=1", b"a=1\n", b"# \xff\n"])
def test_zsh_gets_one_line_and_keeps_the_rest_of_its_file(run, tmp_path, monkeypatch, before):
    monkeypatch.setenv("ZDOTDIR", str(tmp_path))
    (tmp_path / ".zshrc").write_bytes(before)
    for _ in range(2):
        assert run("completion", "install", "zsh").exit_code == 0
    lines = (tmp_path / ".zshrc").read_bytes().splitlines()
    assert lines[:-1] == before.splitlines()
    assert lines[-1].endswith(b'eval "$(satchel completion show zsh)"')


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_the_line_for_zsh_works_without_and_with_compinit_before_it(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ZDOTDIR", str(tmp_path))
    assert run("completion", "install", "zsh").exit_code == 0
    line = (tmp_path / ".zshrc").read_text()
    folder = os.path.dirname(sys.executable)
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    for before in ("", "autoload -Uz compinit && compinit -u\n"):
        script = f"{before}{line}print $_comps[satchel]"
        done = subprocess.run(
            ["zsh", "-f", "-c", script], env=environ, capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.stderr) == ("_satchel_completion\n", "")


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_the_file_of_bash_completes_the_command(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    result = run("completion", "install", "bash")
    assert "bash-completion" in result.stderr
    source = f"source {result.stdout.strip()} && complete -p satchel"
    done = subprocess.run(
        ["bash", "--norc", "-c", source], capture_output=True, text=True, check=False
    )
    assert "_satchel_completion satchel" in done.stdout, done.stderr


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
def test_bash_completes_commands_and_options(tmp_path):
    satchel = os.path.join(os.path.dirname(sys.executable), "satchel")
    for words, expected in (
        ("satchel doc", "plain,doctor"),
        ("satchel list --pl", "plain,--plugins"),
    ):
        environ = {
            **os.environ,
            "_SATCHEL_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        done = subprocess.run(
            [satchel], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stdout.split() == [expected]
