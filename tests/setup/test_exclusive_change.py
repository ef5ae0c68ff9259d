"""Changing the place of a plugin: one at a time, and whole again after whatever ended it."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from satchel.errors import SatchelError
from satchel.setup.folder_placement import (
    ending_in_order,
    exclusive_change,
    hidden_beside,
    placed,
    staged_copy,
)


@pytest.fixture
def home(tmp_path):
    """A folder of plugins with one called demo."""
    (tmp_path / "home/demo").mkdir(parents=True)
    (tmp_path / "home/demo/old").touch()
    return tmp_path / "home"


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source/new").touch()
    return str(tmp_path / "source")


def names(folder):
    return sorted(os.listdir(folder))


def change(home, source, meanwhile):
    target = str(home / "demo")
    messages = []
    with (
        exclusive_change(target, messages.append),
        placed(staged_copy(source, target), target),
    ):
        meanwhile()
    return messages


def test_nothing_but_the_new_one_is_left(home, source):
    seen = []
    assert change(home, source, lambda: seen.extend(names(home))) == []
    assert (names(home), names(home / "demo")) == (["demo"], ["new"])
    assert "demo" in seen


def test_plugins_are_changed_one_at_a_time(home, source):
    def another():
        for name in ("demo", "other"):
            with (
                pytest.raises(SatchelError, match="another process installs or removes"),
                exclusive_change(str(home / name), pytest.fail),
            ):
                pytest.fail("it was let in")

    change(home, source, another)
    change(home, source, lambda: None)
    assert names(home) == ["demo"]


def test_a_link_is_locked_where_it_is(home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (home / "link").symlink_to(tmp_path / "elsewhere")
    with (
        exclusive_change(str(home / "link"), pytest.fail),
        pytest.raises(SatchelError, match="another process installs or removes"),
        exclusive_change(str(home / "demo"), pytest.fail),
    ):
        pytest.fail("it was let in")


def test_the_lock_counts_between_processes(home, source):
    code = (
        "import sys; from satchel.setup.folder_placement import exclusive_change\n"
        "with exclusive_change(sys.argv[1], print): pass"
    )
    done = []

    def another():
        line = [sys.executable, "-c", code, str(home / "demo")]
        done.append(subprocess.run(line, capture_output=True, text=True, check=False))

    change(home, source, another)
    another()
    assert "another process installs or removes" in done[0].stderr
    assert (done[1].returncode, done[1].stderr) == (0, "")


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "home").write_text("a file")
    with (
        pytest.raises(SatchelError, match="cannot be written"),
        exclusive_change(str(tmp_path / "home/demo"), pytest.fail),
    ):
        pytest.fail("it was let in")


SIGNALS = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def default_handlers():
    """Restore what `nohup` and the like take away: an ignored signal interrupts nothing."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("default_handlers")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_ends_the_program_takes_everything_back(home, source, number):
    with pytest.raises(KeyboardInterrupt):
        change(home, source, lambda: signal.raise_signal(number))
    assert (names(home), names(home / "demo")) == (["demo"], ["old"])
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.usefixtures("default_handlers")
def test_a_second_signal_does_not_interrupt_the_taking_back():
    seen = []
    with pytest.raises(KeyboardInterrupt), ending_in_order():
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGTERM)
            seen.append("whole")
    assert seen == ["whole"]


@pytest.mark.usefixtures("default_handlers")
def test_a_signal_that_the_host_handles_is_left_to_them():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("theirs"))
    try:
        with ending_in_order():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == ["theirs"]


@pytest.mark.usefixtures("default_handlers")
def test_in_another_thread_signals_are_left_alone(home, source):
    seen = []

    def look():
        seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=change, args=(home, source, look))
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
    assert names(home / "demo") == ["new"]


def killed(home, source):
    """Let a process be killed while the new one is in its place."""
    code = (
        "import os, signal, sys\n"
        "from satchel.setup.folder_placement import exclusive_change\n"
        "from satchel.setup.folder_placement import placed, staged_copy\n"
        "source, target = sys.argv[1:]\n"
        "with exclusive_change(target, print), placed(staged_copy(source, target), target):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    line = [sys.executable, "-c", code, source, str(home / "demo")]
    assert subprocess.run(line, check=False).returncode == -signal.SIGKILL


def test_what_one_that_was_killed_put_aside_is_back_with_the_next(home, source):
    killed(home, source)
    assert names(home / "demo") == ["new"]
    messages = []
    with exclusive_change(str(home / "demo"), messages.append):
        assert names(home / "demo") == ["old"]
    assert messages == ["a change of demo was interrupted; the old version was restored"]
    assert names(home) == ["demo"]


@pytest.mark.parametrize("kind", ["new", "gone"])
def test_what_no_one_needs_any_more_is_removed_with_the_next(home, kind):
    for name in ("demo", "demo.x", "dem"):
        os.mkdir(hidden_beside(str(home / name), kind))
    messages = []
    with exclusive_change(str(home / "demo"), messages.append):
        pass
    assert messages == ["a change of demo was interrupted; its files were removed"]
    assert [name.split(f".{kind}")[0] for name in names(home)] == [".dem", ".demo.x", "demo"]
    assert names(home / "demo") == ["old"]
