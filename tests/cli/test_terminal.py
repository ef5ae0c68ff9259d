"""The person at the terminal, as far as no terminal is needed."""

import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from satchel.cli.console import Console, wrapped
from satchel.cli.terminal import Terminal
from satchel.diagnostics import Where, make_diagnostic
from satchel.reports.short_texts import short_path, status_label, with_short_paths

MIB = 1024 * 1024


@pytest.fixture
def terminal():
    return Terminal(Console(sys.stdout))


@pytest.mark.parametrize(
    ("codes", "label"),
    [
        ("code-held", "held"),
        ("lock-changed", "held by the lock"),
        ("lock-changed code-held", "held until it is trusted and locked"),
        ("mcp-server-starting", "starting"),
    ],
)
def test_a_state_is_named_by_its_cause(codes, label):
    problems = [make_diagnostic(code, Where("a"), "a reason", "") for code in codes.split()]
    assert status_label(SimpleNamespace(state="revoked", diagnostics=problems)) == label


def test_in_the_root_folder_paths_stay_whole(monkeypatch):
    monkeypatch.chdir("/")
    assert short_path("/srv/skills") == "/srv/skills"
    assert short_path(str(Path.home() / "x")) == "~/x"


def test_without_a_terminal_a_download_is_one_line(terminal, capsys):
    for done in range(3):
        terminal.progress("a.bin", done * MIB, 2 * MIB)
    terminal.progress("b.bin", 5, None)
    assert capsys.readouterr().err == "downloading a.bin (2.0 MiB)\ndownloading b.bin\n"
    assert not terminal.is_there


def test_on_a_terminal_it_is_drawn_in_place_and_ended_before_other_words(
    terminal, capsys, monkeypatch
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    terminal.progress("a", MIB, 2 * MIB)
    terminal.say("wait")
    terminal.progress("a", 2 * MIB, 2 * MIB)
    terminal.say("done\x1b[31m")
    drawn = capsys.readouterr().err.replace("\x1b[K", "")
    assert drawn.split("\n") == [
        "\rdownloading a: 1.0 of 2.0 MiB",
        "wait",
        "\rdownloading a: 2.0 of 2.0 MiB",
        "done[31m",
        "",
    ]


def test_work_is_one_line_on_a_terminal_that_goes_when_it_is_done(terminal, capsys, monkeypatch):
    with terminal.working("scanning a"):
        assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with terminal.working("scanning a"):
        assert capsys.readouterr().err == "\rscanning a\x1b[K"
    assert capsys.readouterr().err == "\r\x1b[K"


class Screen(StringIO):
    def isatty(self):
        return True


LONG = "skills/pdf/SKILL.md:3: warning[skill-unknown-field]: the field 'colour' is odd -> drop it"


def test_on_a_terminal_a_diagnostic_is_wrapped_with_a_hanging_indent(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert wrapped(f"short\n  {LONG}", Screen()).split("\n") == [
        "short",
        "  skills/pdf/SKILL.md:3: warning[skill-unknown-field]: the",
        "      field 'colour' is odd -> drop it",
    ]
    Console(screen := Screen()).wrapped(LONG)
    assert screen.getvalue().count("\n    ") == 1


def test_a_command_that_fits_a_line_is_not_broken(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    command = "satchel config set --plugins plugins weather api_key"
    lines = wrapped(f"weather.env: 'api_key' has no value -> {command}, or so", Screen())
    assert f"    {command}," in lines.split("\n")[1]
    assert len(wrapped(f"see satchel {'word ' * 40}", Screen()).split("\n")) > 2


def test_a_message_has_short_paths_but_in_quotes(here, tmp_path):
    text = f"{tmp_path}/home/.config/a.env: put X=... into {tmp_path}/here/b.env, or {tmp_path}/c"
    assert with_short_paths(text) == f"~/.config/a.env: put X=... into b.env, or {tmp_path}/c"
    for text in (f"cd '{tmp_path}/home/my folder'", f"git+file://{tmp_path}/home/x", "/x y"):
        assert with_short_paths(text) == text


def test_a_pipe_gets_whole_lines_and_a_word_is_never_cut(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert wrapped(LONG, StringIO()) == LONG
    assert wrapped("x" * 90, Screen()) == "x" * 90
    monkeypatch.setenv("COLUMNS", "3")
    assert wrapped(LONG, Screen()) == LONG


@pytest.mark.parametrize("answers", [["2"], ["two"], ["", "3", "tow", "two"]])
def test_an_option_is_chosen_by_its_number_or_its_name(terminal, capsys, monkeypatch, answers):
    is_refused = len(answers) > 1
    left = iter(answers)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(left))
    assert terminal.choice("Which?", ["one: First", "two: Second"]) == 1
    refused = "answer with a number from 1 to 2, or with a name"
    assert (refused in capsys.readouterr().err) is is_refused
