"""Each law refuses what it is there for: texts that somebody tried on it, and none may pass."""

import pytest
from law_of_floors import against_the_floors
from law_of_purity import against_purity
from law_of_state import against_statelessness


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("prompt.notes", "from satchel.satchel import Satchel"),
        ("prompt.notes", "from satchel.runtime import run_call"),
        ("prompt.notes", "from satchel import session"),
        ("prompt.notes", "from satchel import Satchel"),
        ("prompt.notes", "import satchel; satchel.Satchel"),
        ("prompt.notes", "import satchel.session as below"),
        ("prompt.notes", "import satchel.text; satchel.Satchel"),
        ("prompt.notes", "from satchel.text import *"),
        ("prompt.notes", "from ..session import Session"),
        ("prompt.notes", "from satchel.nowhere import thing"),
        ("prompt.notes", "def f():\n    from satchel.session import Session"),
        ("prompt.notes", "def f():\n    from satchel.text import one_line"),
        ("prompt.notes", "def f():\n    import json"),
        ("tools.base", "from satchel.formats import ReadResult"),
        ("session", "from satchel.watch_thread import Changes"),
        ("text", "from satchel.errors import SatchelError"),
    ],
)
def test_an_import_that_goes_up_or_sideways_is_refused(module, text):
    assert against_the_floors(module, text)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("prompt.notes", "from os import listdir; X = listdir('.')"),
        ("prompt.notes", "from pathlib import Path\nPath('/etc/passwd').read_text()"),
        ("prompt.notes", "from os.path import exists; exists('/')"),
        ("prompt.notes", "import io\nio.open('/etc/passwd')"),
        ("prompt.notes", "open('/etc/passwd')"),
        ("prompt.notes", "read = open"),
        ("prompt.notes", "import threading\nthreading.Thread(target=print).start()"),
        ("prompt.notes", "import uuid\nuuid.uuid4()"),
        ("prompt.notes", "def f():\n    import subprocess"),
        ("prompt.notes", "def f():\n    from time import time"),
        ("prompt.notes", "import string\nstring._re.os"),
        ("prompt.notes", "eval('1')"),
        ("prompt.notes", "__import__('os')"),
        ("prompt.notes", "__builtins__['open']"),
        ("prompt.notes", "from satchel.sources import read_regular"),
        ("prompt.notes", "from satchel.plugins.hook_host import os"),
        ("plugins.loading", "import os\nos.listdir('.')"),
        ("plugins.loading", "import os as system\nsystem.remove('x')"),
        ("plugins.loading", "import os\nos.path.exists('/')"),
        ("plugins.loading", "from os import path\npath.exists('/')"),
        ("plugins.loading", "import os\ngetattr(os, 'listdir')('.')"),
        ("plugins.loading", "from os.path import *"),
        ("plugins.loading", "import json\njson.codecs.open('x')"),
        ("manifests.code", "import pathlib\npathlib.Path('/')"),
        ("catalog.entries", "from satchel.sources.file_reader import read_regular"),
        ("text", "import importlib\nimportlib.import_module('satchel.cli.main')"),
        ("text", "from importlib import import_module"),
        ("runtime.call", "open('/etc/passwd')"),
        ("runtime.call", "import subprocess"),
        ("runtime.call", "import socket"),
        ("runtime.call", "import asyncio\nasyncio.create_subprocess_exec('ls')"),
        ("runtime.messages", "import asyncio"),
        ("tools.base", "from threading import Thread"),
        ("watching", "open('/etc/passwd')"),
        ("watching", "import subprocess"),
        ("satchel", "open('/etc/passwd')"),
        ("satchel", "import subprocess"),
        ("satchel", "import socket"),
        ("satchel", "import os\nos.environ['HOME'] = '/'"),
        ("sources.watcher", "import subprocess"),
        ("sources.watcher", "open('/etc/passwd')"),
        ("__init__", "import os"),
    ],
)
def test_touching_the_world_without_leave_is_refused(module, text):
    assert against_purity(module, text)


@pytest.mark.parametrize(
    "text",
    [
        "_SEEN = {}\ndef f(x):\n    _SEEN[x] = 1",
        "_SEEN = {}",
        "_SEEN: dict[str, int] = {}",
        "_seen = dict()",
        "_SEEN = dict()",
        "from collections import deque\n_LATEST = deque()",
        "from collections import defaultdict as d\n_seen = d(list)",
        "from itertools import count\n_SERIAL = count()",
        "class A:\n    seen: dict = {}",
        "class A:\n    class B:\n        seen = []",
        "class A:\n    seen = list()",
        "if True:\n    seen = []",
        "try:\n    pass\nexcept ValueError:\n    seen = []",
        "seen = {'a': 1}",
        "_PAIR = ([], {})",
        "_PAIR = {'a': []}",
        "_SEEN = [x for x in 'ab']",
        "class Thing: ...\n_thing = Thing()",
        "_SEEN = {'a': 1}\ndef f():\n    _SEEN['b'] = 2",
        "_SEEN = {'a': 1}\ndef f():\n    del _SEEN['a']",
        "_SEEN = {'a': 1}\ndef f():\n    _SEEN.update(b=2)",
        "_SEEN = {'a': {1}}\ndef f():\n    _SEEN['a'].add(2)",
        "_SEEN = {'a': {1}}\ndef f():\n    _SEEN.get('a').add(2)",
        "_SEEN = ['a']\n_SEEN += ['b']",
        "class A:\n    SEEN = {'a': 1}\n    def f(self):\n        self.SEEN['b'] = 2",
        "class A:\n    def f(self):\n        type(self).seen = 2",
        "class A:\n    def f(self):\n        self.__class__.seen = 2",
        "class A:\n    @classmethod\n    def f(cls):\n        cls.seen = 2",
        "class A: ...\ndef f():\n    A.seen = 2",
        "class A: ...\ndef f():\n    setattr(A, 'seen', 2)",
        "def f():\n    f.calls = 1",
        "def f(x, seen=[]): ...",
        "def f(x, *, seen={}): ...",
        "def f(x, seen=dict()): ...",
        "from satchel.names import KNOWN\ndef f():\n    KNOWN.append(1)",
        "import satchel.names as names\ndef f():\n    names.known['a'] = 1",
        "x = 1\ndef f():\n    global x\n    x = 2",
        "import threading\nthreading.Thread(target=print).start()",
    ],
)
def test_keeping_something_in_a_module_or_class_is_refused(text):
    assert against_statelessness("prompt.notes", text)


@pytest.mark.parametrize(
    ("check", "module", "text"),
    [
        (against_the_floors, "prompt.notes", "from satchel.text import one_line"),
        (against_the_floors, "cli.command", "import satchel"),
        (against_the_floors, "runtime.call", "def f():\n    import asyncio"),
        (against_purity, "plugins.host", "import os\nos.path.join('a', 'b')"),
        (against_purity, "plugins.host", "from os.path import join\njoin('a', 'b')"),
        (against_purity, "manifests.skill", "import re\nre.compile('a').open()"),
        (against_purity, "sources.importer", "import importlib\nimportlib.import_module('x')"),
        (against_statelessness, "text", "_WORDS = {'a', 'b'}\n_PAIRS = [('a', 1)]"),
        (against_statelessness, "text", "from dataclasses import field\nx = field(default=1)"),
        (against_statelessness, "text", "def f():\n    seen = {}\n    seen['a'] = 1"),
        (against_statelessness, "text", "import os\ndef f(x):\n    os.remove(x)"),
        (against_statelessness, "text", "seen = 1\ndef f(seen):\n    seen.append(1)"),
        (against_statelessness, "text", "from a import Callable\nF = Callable[[int], str]"),
    ],
)
def test_what_the_laws_do_not_mean_passes(check, module, text):
    assert check(module, text) == []
