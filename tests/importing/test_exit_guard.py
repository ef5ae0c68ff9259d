"""A plugin cannot keep the process at its exit; other code is waited for as always."""

import subprocess
import sys
import threading
import time

import pytest

PROGRAM = """
import sys
from satchel import Satchel
app = Satchel(plugins=[sys.argv[1]])
print(app.session().call_sync("hello", {}).text)
sys.exit(3)
"""
TOOL = '''
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from satchel import tool

@tool
def hello() -> str:
    """Say hello."""
    return "hi"
'''
HANGS = {
    "a callback": "atexit.register(time.sleep, 3600)",
    "a thread": "threading.Thread(target=time.sleep, args=(3600,), daemon=False).start()",
    "a pool": "pool = ThreadPoolExecutor()\npool.submit(time.sleep, 3600)",
}


def run(tmp_path, write_plugin, code):
    write_plugin(tmp_path, "hang", tools=TOOL + code + "\n")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("code", HANGS.values(), ids=HANGS)
def test_what_a_plugin_leaves_behind_does_not_keep_the_process(tmp_path, write_plugin, code):
    ended = run(tmp_path, write_plugin, code)
    assert (ended.returncode, ended.stdout) == (3, "hi\n")
    assert "satchel: " in ended.stderr


@pytest.mark.slow
def test_a_finalizer_that_never_ends_does_not_keep_a_command(tmp_path, write_plugin):
    code = """
class Stubborn:
    def __del__(self, sleep=time.sleep):
        sleep(3600)
threading.stubborn = Stubborn()
"""
    write_plugin(tmp_path, "hang", tools=TOOL + code)
    command = [sys.executable, "-m", "satchel", "prompt", "--plugins", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 1
    assert "__del__" in ended.stderr


@pytest.mark.slow
def test_a_callback_that_survives_its_interruptions_ends_with_the_process(tmp_path, write_plugin):
    code = """
def stubborn():
    while True:
        try:
            time.sleep(100)
        except BaseException:
            pass
atexit.register(stubborn)
"""
    assert "does not end" in run(tmp_path, write_plugin, code).stderr


@pytest.mark.slow
def test_a_plugin_that_ends_in_time_ends_its_work(tmp_path, write_plugin):
    code = """
def work():
    time.sleep(0.3)
    print("worked", flush=True)
atexit.register(print, "bye", flush=True)
threading.Thread(target=work, daemon=False).start()
"""
    ended = run(tmp_path, write_plugin, code)
    assert (ended.returncode, ended.stderr) == (3, "")
    assert sorted(ended.stdout.split()) == ["bye", "hi", "worked"]
    assert ended.stdout.endswith("bye\n")


def test_a_callback_of_a_plugin_can_be_unregistered(tmp_path, write_plugin):
    code = "atexit.register(print, 'bye')\natexit.unregister(print)\n"
    assert run(tmp_path, write_plugin, code).stdout == "hi\n"


def test_the_threads_of_the_host_are_not_touched():
    thread = threading.Thread(target=time.sleep, args=(0,), daemon=False)
    thread.start()
    thread.join()
    assert not thread.daemon
