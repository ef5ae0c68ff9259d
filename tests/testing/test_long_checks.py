"""Counting objects for the checks of long conversations."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from satchel.testing.adapter_checks.long_checks import _live_objects

sys.setswitchinterval(1e-6)
errors, is_over = [], threading.Event()

def make_tuples():
    while not is_over.is_set():
        try:
            tuple(item for item in range(40))
        except SystemError as error:
            errors.append(error)

thread = threading.Thread(target=make_tuples)
thread.start()
for _ in range(50):
    _live_objects()
is_over.set()
thread.join()
print(len(errors))
"""


def test_counting_objects_leaves_the_tuples_that_other_threads_make_alone():
    program = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(program, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
