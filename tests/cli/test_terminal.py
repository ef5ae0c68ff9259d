"""The person at the terminal, as far as no terminal is needed."""

import sys

import pytest

from satchel.cli.console import Console
from satchel.cli.terminal import Terminal

MIB = 1024 * 1024


@pytest.fixture
def terminal():
    return Terminal(Console(sys.stdout), no_input=False)


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
