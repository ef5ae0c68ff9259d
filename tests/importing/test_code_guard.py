import asyncio
import os
import sys
import threading
import time
import types

import pytest

from satchel.importing import code_guard
from satchel.importing.code_guard import (
    PRIVATE_PREFIX,
    PluginCodeError,
    PluginTimeoutError,
    guarded,
    with_author_names,
)


def test_what_the_work_returns_comes_back():
    assert guarded(lambda: 42, 5) == (42, ())


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Rude(BaseException):
    def __str__(self):
        raise SystemExit


def recurse():
    return recurse()


def raising(problem):
    def work():
        raise problem

    return work


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (raising(ValueError("boom")), "ValueError: boom"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(asyncio.CancelledError()), "CancelledError"),
        (raising(BaseException("base")), "BaseException: base"),
        (raising(BaseExceptionGroup("group", [SystemExit()])), "BaseExceptionGroup: group"),
        (raising(SilentError()), "SilentError: (its message cannot be shown)"),
        (raising(Rude()), "Rude: (its message cannot be shown)"),
        (recurse, "RecursionError: maximum recursion depth"),
    ],
)
def test_whatever_is_raised_becomes_one_kind_of_error(work, message):
    with pytest.raises(PluginCodeError) as caught:
        guarded(work, 5)
    assert caught.value.message.startswith(message)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("name", ["tools", "h_264_tools", "h_264"])
def test_modules_have_the_names_of_their_author(name):
    text = f"cannot import 'a' from '_satchel_plugin_{name}_12' or '_satchel_plugin_{name}_12.b_1'"
    assert with_author_names(text) == "cannot import 'a' from 'the plugin' or 'b_1'"


def test_a_class_that_lies_about_its_name_is_reported_by_its_real_one():
    class Meta(type):
        @property
        def __name__(cls):
            raise RuntimeError

    class LyingError(Exception, metaclass=Meta):
        pass

    with pytest.raises(PluginCodeError, match="LyingError"):
        guarded(raising(LyingError()), 5)


def test_what_hangs_is_left_behind_when_its_time_is_over():
    free = threading.Event()
    with pytest.raises(PluginTimeoutError, match=r"took longer than 0\.05 s"):
        guarded(free.wait, 0.05)
    free.set()


def test_a_finalizer_that_never_ends_does_not_keep_what_removes_its_object(tmp_path, monkeypatch):
    monkeypatch.setattr(code_guard, "_DROPPING", 0.01)
    ended = threading.Event()

    class Stubborn:
        __module__ = f"{PRIVATE_PREFIX}x"

        def __del__(self):
            ended.wait(30)

    def work():
        sys.modules["stubborn"] = Stubborn()

    began = time.monotonic()
    assert guarded(work, 30, plugin_folder=str(tmp_path))[1] == ("the module 'stubborn'",)
    assert time.monotonic() - began < 20
    ended.set()


def test_an_error_whose_words_hang_is_a_hang():
    free = threading.Event()

    class SlowError(Exception):
        def __str__(self):
            free.wait()
            return ""

    with pytest.raises(PluginTimeoutError):
        guarded(raising(SlowError()), 0.05)
    free.set()


def test_threads_that_plugin_code_starts_do_not_keep_the_process_alive():
    started, _ = guarded(lambda: threading.Thread(target=int), 5)
    assert started.daemon


def test_the_current_folder_is_put_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert guarded(lambda: os.chdir("/"), 5)[1] == ("the current folder",)
    assert os.getcwd() == str(tmp_path)


def test_a_current_folder_that_the_plugin_removed_is_only_reported(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert guarded(lambda: os.rmdir(tmp_path / "gone"), 5)[1] == ("the current folder",)


def test_a_host_without_a_current_folder_can_still_run_code(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")
    assert guarded(lambda: 1, 5) == (1, ())


def replaced_path():
    sys.path = ["elsewhere"]


def no_path():
    sys.path = None


def deleted_path():
    del sys.path


@pytest.mark.parametrize(
    "work", [sys.path.clear, sys.path.pop, replaced_path, no_path, deleted_path]
)
def test_entries_that_vanish_from_the_module_path_are_put_back(work):
    path, before = sys.path, list(sys.path)
    _, (messages,) = guarded(work, 5)
    assert sys.path is path
    assert path == before
    assert messages.startswith("sys.path")


def test_the_process_is_put_back_also_after_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def work():
        os.chdir("/")
        raise ValueError

    with pytest.raises(PluginCodeError):
        guarded(work, 5)
    assert os.getcwd() == str(tmp_path)


@pytest.mark.parametrize("name", [PRIVATE_PREFIX + "demo_1.tools", None, 7])
def test_the_innermost_line_of_plugin_code_is_reported_if_there_is_one(name):
    source = "def work():\n    int('x')\n"
    module = types.ModuleType("m")
    exec(compile(source, "/plugins/demo/tools.py", "exec"), vars(module))
    module.__name__ = name
    with pytest.raises(PluginCodeError) as caught:
        guarded(module.work, 5)
    expected = ("/plugins/demo/tools.py", 2) if isinstance(name, str) else (None, None)
    assert (caught.value.path, caught.value.line) == expected


def test_a_syntax_error_is_reported_where_it_stands():
    with pytest.raises(PluginCodeError) as caught:
        guarded(lambda: compile("x =\n", "/plugins/demo/tools.py", "exec"), 5)
    assert (caught.value.path, caught.value.line) == ("/plugins/demo/tools.py", 1)


def test_a_limit_of_processor_time_ends_what_computes_and_not_what_waits():
    def compute():
        while True:
            pass

    def wait():
        threading.Event().wait(0.3)
        return "done"

    assert guarded(wait, 0.1, of_processor=True)[0] == "done"
    with pytest.raises(PluginTimeoutError, match=r"longer than 0\.1 s of processor time"):
        guarded(limited(compute), 0.1, of_processor=True)
    free = threading.Event()
    with pytest.raises(PluginTimeoutError, match=r"longer than 0\.24 s"):
        guarded(free.wait, 0.02, of_processor=True)
    free.set()


def limited(work):
    """Let work that never ends raise in its thread some time after the test."""

    def run():
        def leave(*_):
            if time.monotonic() > end:
                raise SystemExit
            return leave

        end = time.monotonic() + 5
        sys.settrace(leave)
        work()

    return run
