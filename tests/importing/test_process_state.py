"""What plugin code changes for everybody is put back and named."""

import ctypes
import gc
import importlib
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from satchel.importing import importer
from satchel.importing.process_state import NOT_REVERTED, ProcessState


@pytest.fixture
def before(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # pytest changes it between a fixture and the test
    return ProcessState.now()


def test_without_a_change_there_is_nothing_to_report(before):
    assert before.put_back("/plugin") == ()


def test_the_current_folder_is_put_back(before, tmp_path):
    os.chdir(tmp_path)
    assert before.put_back() == ("the current folder",)
    assert os.getcwd() == before.folder


def test_a_folder_plugin_may_not_add_to_the_import_path_and_a_package_may(before, monkeypatch):
    monkeypatch.syspath_prepend("/plugin/lib")
    monkeypatch.syspath_prepend("/somebody/elses")
    assert before.put_back() == ()
    assert "/plugin/lib" in sys.path
    assert before.put_back("/plugin") == ("sys.path",)
    assert "/plugin/lib" not in sys.path
    assert "/somebody/elses" in sys.path, "the host may have added it meanwhile"


def test_finders_that_vanish_are_put_back(before):
    finders = list(sys.meta_path)
    sys.meta_path.clear()
    try:
        assert before.put_back() == ("sys.meta_path",)
        assert sys.meta_path == finders
    finally:
        sys.meta_path[:] = finders


def test_a_module_that_was_replaced_is_the_old_one_again(monkeypatch):
    wave = importlib.import_module("wave")
    before = ProcessState.now()
    monkeypatch.setitem(sys.modules, "wave", ModuleType("wave"))
    assert before.put_back() == ("the module 'wave'",)
    assert sys.modules["wave"] is wave


def test_a_module_that_replaces_itself_while_another_thread_imports_it_stays(tmp_path, monkeypatch):
    (tmp_path / "replacing.py").write_text(
        "import sys, types\n"
        "is_old = True\n"
        "sys.begun.set()\n"
        "sys.may_end.wait(60)\n"
        "sys.modules[__name__] = types.ModuleType(__name__)\n"
    )
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "begun", begun, raising=False)
    monkeypatch.setattr(sys, "may_end", may_end, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "replacing", raising=False)
    thread = threading.Thread(target=importlib.import_module, args=["replacing"])
    thread.start()
    assert begun.wait(60)
    before = ProcessState.now()
    may_end.set()
    thread.join()
    assert not hasattr(sys.modules["replacing"], "is_old")
    assert before.put_back() == ()
    assert not hasattr(sys.modules["replacing"], "is_old")


def test_a_module_imported_by_a_public_name_from_the_plugin_is_forgotten(before, monkeypatch):
    stray, other = ModuleType("stray"), ModuleType("other")
    stray.__file__, other.__file__ = "/plugin/stray.py", "/plugin-2/other.py"
    monkeypatch.setitem(sys.modules, "stray", stray)
    monkeypatch.setitem(sys.modules, "other", other)
    assert before.put_back("/plugin") == ("the module 'stray'",)
    assert "stray" not in sys.modules
    assert "other" in sys.modules
    monkeypatch.setitem(sys.modules, "stray", stray)
    assert before.put_back() == (), "a package's own modules are there to be imported"


def test_a_current_folder_that_is_gone_cannot_be_put_back(before, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside = tmp_path / "inside"
    inside.mkdir()
    os.chdir(inside)
    gone = ProcessState.now()
    os.chdir(tmp_path)
    inside.rmdir()
    assert gone.put_back() == ("the current folder",)
    assert os.getcwd() == str(tmp_path)


def test_beside_others_only_what_is_plainly_the_plugins_doing_is_undone(
    before, tmp_path, monkeypatch
):
    """The host and other imports go on meanwhile; what they do is theirs."""
    own, others = ModuleType("json"), ModuleType("csv")
    own.__file__, others.__file__ = "/plugin/json.py", "/upgraded/csv.py"
    import csv
    import json

    before = ProcessState.now()
    monkeypatch.setitem(sys.modules, "json", own)
    monkeypatch.setitem(sys.modules, "csv", others)
    monkeypatch.setattr(sys, "path", [*sys.path[1:], "/plugin"])
    monkeypatch.chdir(tmp_path)
    assert before.put_back("/plugin", alone=False) == (
        f"the current folder{NOT_REVERTED}",
        "sys.path",
        "the module 'json'",
    )
    assert sys.modules["json"] is json
    assert sys.modules["csv"] is others is not csv
    assert "/plugin" not in sys.path
    assert os.getcwd() == str(tmp_path)


class Churning:
    """Garbage that changes `sys.modules` whenever it is collected, as an old version does."""

    rounds = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        cls = type(self)
        if sys.modules.pop("churning", None) is None:
            sys.modules["churning"] = ModuleType("churning")
        cls.rounds -= 1
        if cls.rounds > 0:
            cls()


def test_modules_may_go_while_they_are_looked_at():
    """A collection may begin at any allocation, and purge an old version of a plugin."""
    thresholds = gc.get_threshold()
    try:
        gc.collect()
        Churning.rounds = 2_000
        Churning()
        gc.set_threshold(1, 1, 1)
        for _ in range(20):
            ProcessState.now().put_back("/plugin")
            importer._FolderModules("nobody").purge()
    finally:
        gc.set_threshold(*thresholds)
        Churning.rounds = 0
        gc.collect()
        sys.modules.pop("churning", None)


def test_what_would_stop_the_process_is_restored_even_beside_others(monkeypatch):
    path, finders = list(sys.path), list(sys.meta_path)
    before = ProcessState.now()
    try:
        sys.path.clear()
        sys.meta_path.clear()
        assert before.put_back("/plugin", alone=False) == ("sys.path", "sys.meta_path")
        assert (sys.path, sys.meta_path) == (path, finders)
    finally:
        sys.path[:], sys.meta_path[:] = path, finders


def test_beside_others_what_the_host_may_have_set_stays(monkeypatch):
    before = ProcessState.now()
    gc.disable()
    try:
        monkeypatch.delenv("PATH")
        monkeypatch.setattr(sys, "displayhook", print)
        assert before.put_back("/plugin", alone=False) == (f"the environment{NOT_REVERTED}",)
        assert "PATH" not in os.environ
        messages = before.put_back("/plugin")
        assert set(messages) == {"sys.displayhook", "the collection of garbage", "the environment"}
        assert gc.isenabled()
        assert "PATH" in os.environ
    finally:
        gc.enable()


def test_a_recursion_limit_too_low_to_continue_is_put_back_even_beside_others():
    limit = sys.getrecursionlimit()
    before = ProcessState.now()
    try:
        sys.setrecursionlimit(limit + 1)
        assert before.put_back(alone=False) == (f"the recursion limit{NOT_REVERTED}",)
        sys.setrecursionlimit(limit - 1)
        assert before.put_back(alone=False) == ("the recursion limit",)
        assert sys.getrecursionlimit() == limit
    finally:
        sys.setrecursionlimit(limit)


def test_what_the_environment_gained_is_there_for_others(before, monkeypatch):
    monkeypatch.setenv("A_SWITCH_OF_A_LIBRARY", "1")
    assert before.put_back() == ()
    assert os.environ["A_SWITCH_OF_A_LIBRARY"] == "1"


def test_a_name_added_to_the_built_in_ones_stays(before, monkeypatch):
    monkeypatch.setattr("builtins.translated", str, raising=False)
    assert before.put_back() == ()


def test_a_finder_of_a_package_stays(before):
    class Finder: ...

    finder = Finder()
    sys.meta_path.append(finder)
    try:
        assert before.put_back("/plugin") == ()
        assert finder in sys.meta_path
    finally:
        sys.meta_path.remove(finder)


def test_a_package_that_was_purged_meanwhile_is_not_brought_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "purged_package", ModuleType("purged_package"))
    before = ProcessState.now()
    monkeypatch.delitem(sys.modules, "purged_package")
    assert before.put_back() == ()
    assert "purged_package" not in sys.modules


def test_the_umask_and_signal_handlers_are_put_back(before):
    def nothing(*_):
        pass

    os.umask(0)
    signal.signal(signal.SIGUSR2, nothing)
    try:
        assert before.put_back(alone=False) == ("the umask",), "the host may set a handler"
        assert before.put_back() == ("the handler of SIGUSR2",)
        assert signal.getsignal(signal.SIGUSR2) is before.signals.handlers[signal.SIGUSR2]
        assert ProcessState.now().signals.umask == before.signals.umask
    finally:
        os.umask(before.signals.umask)


def test_a_handler_that_the_host_sets_while_another_thread_loads_a_plugin_is_no_change(before):
    handler = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        with ThreadPoolExecutor() as threads:
            assert threads.submit(before.put_back).result() == ()
    finally:
        signal.signal(signal.SIGUSR2, handler)


def test_a_timer_that_a_plugin_starts_is_stopped_and_one_of_the_host_continues(before):
    name = "the timers of signals"
    signal.setitimer(signal.ITIMER_REAL, 3600)
    try:
        while_it_runs = ProcessState.now()
        assert before.put_back(alone=False) == (f"{name}{NOT_REVERTED}",)
        assert before.put_back() == (name,)
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        signal.setitimer(signal.ITIMER_REAL, 3600)
        assert while_it_runs.put_back() == ()
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_a_handler_that_code_in_c_sets_is_put_back(before):
    libc = ctypes.CDLL(None)
    libc.signal(int(signal.SIGUSR2), 1)
    if not os.path.exists("/proc/self/status"):
        pytest.skip("only the kernel knows, and it does not tell here")
    assert before.put_back() == ("the handler of SIGUSR2",)
    assert ProcessState.now().signals.masks == before.signals.masks


def test_a_handler_that_does_nothing_is_no_change():
    logger = logging.getLogger("satchel.tests.library")
    before = ProcessState.now()
    logger.addHandler(logging.NullHandler())
    assert before.put_back() == ()
    assert len(logger.handlers) == 1


def test_the_configuration_of_logging_is_put_back():
    logger = logging.getLogger("satchel.tests.known")
    before, handlers = ProcessState.now(), list(logging.root.handlers)
    logging.root.addHandler(logging.Handler())
    logger.disabled = True
    logging.disable(logging.CRITICAL)
    (change,) = before.put_back(alone=False)
    assert change.startswith("the configuration of logging; it was not reverted")
    assert before.put_back() == ("the configuration of logging",)
    assert (logging.root.handlers, logger.disabled) == (handlers, False)
    assert logging.root.manager.disable == 0
    logging.getLogger("satchel.tests.own").setLevel(logging.ERROR)
    assert before.put_back() == (), "a plugin may configure its own logger"


def test_settings_that_all_code_shares_are_put_back(monkeypatch):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    zone, language, timeout = (
        time.tzname,
        locale.setlocale(locale.LC_ALL),
        socket.getdefaulttimeout(),
    )
    monkeypatch.setenv("A_KEY", "mine")
    before = ProcessState.now()
    resource.setrlimit(resource.RLIMIT_CORE, (hard if soft == 0 else 0, hard))
    os.environ.update(TZ="Pacific/Niue", A_KEY="theirs")
    time.tzset()
    locale.setlocale(locale.LC_ALL, "C")
    socket.setdefaulttimeout(0.001)
    beside = before.put_back(alone=False)
    assert {f"{name}{NOT_REVERTED}" for name in ("the limits of resources", "the time zone")} <= {
        *beside
    }
    assert all(change.endswith(NOT_REVERTED) for change in beside), "the host may have done it"
    messages = before.put_back()
    names = {"the default timeout of sockets", "the time zone", "the environment"}
    assert names <= set(messages)
    assert resource.getrlimit(resource.RLIMIT_CORE) == (soft, hard)
    assert (time.tzname, locale.setlocale(locale.LC_ALL)) == (zone, language)
    assert socket.getdefaulttimeout() is timeout
    assert os.environ["A_KEY"] == "mine"
    assert before.put_back() == ()


def test_a_patched_function_is_reported_and_stays(before, monkeypatch):
    def dumps(*_, **__):
        """Keep a copy."""

    monkeypatch.setattr("json.dumps", dumps)
    assert before.put_back() == ("json.dumps, which stays so",)
    assert before.put_back(alone=False) == (), "the host may patch it"
