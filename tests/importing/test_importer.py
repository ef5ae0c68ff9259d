import asyncio
import gc
import importlib
import inspect
import os
import sys
import wave
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from satchel.importing.code_guard import PRIVATE_PREFIX, PluginCodeError, PluginTimeoutError
from satchel.importing.code_snapshots import _finder
from satchel.importing.distributions import DistributionFinding, scan_distributions
from satchel.importing.importer import import_distribution, import_folder

pytestmark = pytest.mark.usefixtures("untouched_modules")


@pytest.fixture
def load(tmp_path):
    """Import a module of a plugin whose sources are given by their paths."""
    codes = []

    def load(module="tools", limit=5.0, **sources):
        texts = {
            name.replace("__", "/", 1) + ".py" if "__init" not in name else name: dedent(text)
            for name, text in sources.items()
        }
        return loaded({name: text.encode() for name, text in texts.items()}, module, limit)

    def loaded(sources, module="tools", limit=5.0):
        folder = tmp_path / "Demo-plugin"
        for name, data in sources.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        code = import_folder(str(folder), sources, module, limit)
        codes.append(code)
        return code

    load.bytes = loaded
    yield load
    for code in codes:
        code.purge()


def private():
    gc.collect()  # what other tests dropped may still be waiting for it
    return [name for name in sys.modules if name.startswith(PRIVATE_PREFIX)]


# ---- folders ------------------------------------------------------------------------------


def test_a_module_is_imported_under_a_private_name(load, tmp_path):
    module = load(tools="X = 1").thing
    assert module.__name__.startswith(f"{PRIVATE_PREFIX}demo_plugin_")
    assert module.__file__ == str(tmp_path / "Demo-plugin/tools.py")
    assert sys.modules[module.__name__] is module


def test_a_plugin_never_replaces_a_module_of_the_standard_library(load):
    sources = {
        "tools": "import json, wave\nfrom wave import open as o\nJ, W = json, wave",
        "json": "raise RuntimeError('the plugin took over')",
        "wave": "raise RuntimeError('the plugin took over')",
    }
    module = load(**sources).thing
    assert module.J is sys.modules["json"]
    assert module.W is wave is importlib.import_module("wave")


def test_a_file_named_like_the_standard_library_can_still_be_meant(load):
    assert load(tools="from . import wave\nX = wave.X", wave="X = 'mine'").thing.X == "mine"


def test_a_plugin_never_replaces_satchel(load):
    assert load(tools="import satchel\nS = satchel", satchel="").thing.S is sys.modules["satchel"]


@pytest.mark.parametrize(
    "line",
    [
        "from . import helper; X = helper.X",
        "from .helper import X",
        "from .helper import *",
        "import helper; X = helper.X",
        "import helper as h; X = h.X",
        "from helper import X",
        "from helper import *",
        "X = __import__('helper').X",
        "X = __import__('helper', fromlist=['X']).X",
        "X = __import__('helper', globals(), locals(), None, 0).X",
        "import importlib; X = importlib.import_module('.helper', __package__).X",
    ],
)
def test_the_files_beside_a_module_can_be_imported_in_every_way(load, line):
    before = list(sys.path)
    assert load(tools=line, helper="X = 'beside'").thing.X == "beside"
    assert "helper" not in sys.modules
    assert sys.path == before


@pytest.mark.parametrize(
    "line",
    [
        "from .pack.deep import X",
        "from . import pack; X = pack.deep.X",
        "import pack.deep; X = pack.deep.X",
        "import pack.deep as d; X = d.X",
        "from pack import deep; X = deep.X",
        "from pack import deep, MARK; X = deep.X",
        "from pack.deep import X",
    ],
)
def test_packages_of_a_plugin_can_be_imported_in_every_way(load, line):
    sources = {
        "tools.py": line.encode(),
        "pack/__init__.py": b"from . import deep\nMARK = 1",
        "pack/deep.py": b"from ..base import X",
        "base.py": b"X = 'deep'",
    }
    assert load.bytes(sources).thing.X == "deep"


def test_a_folder_without_an_init_file_is_a_package_too(load):
    sources = {"tools.py": b"from pack import deep; X = deep.X", "pack/deep.py": b"X = 1"}
    assert load.bytes(sources).thing.X == 1


def test_the_tools_can_be_a_package_themselves(load):
    sources = {"tools/__init__.py": b"from .more import X", "tools/more.py": b"X = 1"}
    assert load.bytes(sources).thing.X == 1


def test_the_own_init_file_of_a_plugin_runs_first(load):
    sources = {"__init__.py": b"X = 1", "tools.py": b"from . import X"}
    assert load.bytes(sources).thing.X == 1


def test_what_is_installed_can_be_imported_as_ever(load):
    import pluggy

    code = load(tools="import pluggy, os.path\nfrom pluggy import PluginManager\np, o = pluggy, os")
    assert (code.thing.p, code.thing.o) == (pluggy, os)


def test_keywords_reach_the_import_of_what_is_installed(load):
    code = load(tools="D = __import__('json', fromlist=['decoder'], level=0).decoder")
    assert code.thing.D is sys.modules["json.decoder"]


@pytest.mark.parametrize("line", ["import absent", "from . import absent", "from .absent import x"])
def test_what_is_nowhere_is_missing_as_ever(load, line):
    with pytest.raises(PluginCodeError, match=r"(ModuleNotFound|Import)Error: .*absent"):
        load(tools=line)


def test_an_edit_in_the_same_second_and_of_the_same_length_runs_new(load, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for at in range(10):
        path = tmp_path / "Demo-plugin/helper.py"
        code = load(tools="from . import helper\nX = helper.X", helper=f"X = {at}")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert vars(code.thing)["X"] == at
    assert not list(tmp_path.rglob("__pycache__"))
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_stale_pyc_beside_the_source_is_never_believed(load, monkeypatch, tmp_path):
    import py_compile

    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    load(tools="X = 'old'")
    path = tmp_path / "Demo-plugin/tools.py"
    os.utime(path, (1_000_000_000, 1_000_000_000))
    py_compile.compile(str(path))
    path.write_text("X = 'new'")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert load(tools="X = 'new'").thing.X == "new"


def test_two_versions_live_side_by_side_and_a_late_import_stays_with_its_own(load):
    tools = "def late():\n    import helper\n    from .helper import X\n    return helper.X, X"
    old = load(tools=tools, helper="X = 'old'")
    new = load(tools=tools, helper="X = 'new'")
    assert old.thing.late() == ("old", "old")
    assert new.thing.late() == ("new", "new")


def test_a_later_edit_on_disk_does_not_mix_into_a_version_that_runs(load, tmp_path):
    code = load(tools="def late():\n    from .helper import X\n    return X", helper="X = 'then'")
    (tmp_path / "Demo-plugin/helper.py").write_text("X = 'now'")
    assert code.thing.late() == "then"


def test_nothing_is_left_after_a_purge(load):
    before = private()
    code = load(tools="from . import helper\nimport helper", helper="")
    assert len(private()) == len(before) + 3
    name = code.thing.__name__.partition(".")[0]
    code.purge()
    code.purge()
    assert private() == before
    assert name not in _finder.snapshots


def test_a_purged_version_cannot_be_imported_any_more(load):
    code = load(tools="")
    code.purge()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(code.thing.__name__)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import helper\n1/0", "ZeroDivisionError"),
        ("x =", "SyntaxError"),
        ("x = '\0'", "(Syntax|Value)Error"),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
    ],
)
def test_nothing_is_left_after_an_import_that_failed(load, source, message):
    before, snapshots = private(), set(_finder.snapshots)
    with pytest.raises(PluginCodeError, match=message):
        load(tools=source, helper="")
    assert private() == before
    assert set(_finder.snapshots) == snapshots


def test_an_import_that_hangs_is_given_up(load):
    with pytest.raises(PluginTimeoutError):
        load(limit=0.1, tools="import threading\nthreading.Event().wait(2)")
    assert private() == []


def test_an_error_says_where_in_the_plugin_it_arose(load, tmp_path):
    with pytest.raises(PluginCodeError) as caught:
        load(tools="\nfrom . import helper", helper="def f():\n    int('x')\nf()")
    assert caught.value.path == str(tmp_path / "Demo-plugin/helper.py")
    assert caught.value.line == 2


def test_postponed_annotations_of_a_dataclass_find_their_module(load):
    code = load(
        tools="""\
        from __future__ import annotations
        from dataclasses import dataclass
        from typing import ClassVar, get_type_hints
        from .helper import Thing

        @dataclass
        class D:
            thing: Thing
            shared: ClassVar[int] = 1

        HINTS = get_type_hints(D)
        FIELDS = list(D.__dataclass_fields__)
        """,
        helper="class Thing: pass",
    )
    assert code.thing.HINTS["thing"].__name__ == "Thing"


def test_pickle_finds_the_classes_of_a_version_that_lives(load):
    code = load(tools="import pickle\nclass C: pass\nX = pickle.loads(pickle.dumps(C()))")
    assert type(code.thing.X) is code.thing.C


def test_the_source_of_a_function_can_be_shown(load):
    code = load(tools="def f():\n    return 1  # a comment\n")
    assert inspect.getsource(code.thing.f) == "def f():\n    return 1  # a comment\n"
    assert inspect.getsource(code.thing).startswith("def f")


def test_a_source_in_another_encoding_says_so_and_is_read(load):
    code = load.bytes({"tools.py": "# coding: latin-1\nX = 'ß'\n".encode("latin-1")})
    assert code.thing.X == "ß"
    assert "ß" in code.thing.__loader__.get_source(code.thing.__name__)


def test_a_folder_whose_name_has_no_letters_is_imported_as_well(tmp_path):
    code = import_folder(str(tmp_path / "+-+"), {"tools.py": b"X = 1"}, "tools", 5)
    assert code.thing.__name__.startswith(f"{PRIVATE_PREFIX}plugin_")
    code.purge()


def test_what_importing_changed_in_the_process_is_reported(load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(tools="import os\nos.chdir('/')").process_changes == ("the current folder",)
    assert Path.cwd() == tmp_path


def test_code_runs_on_an_event_loop_as_ever(load):
    code = load(tools="async def f():\n    import helper\n    return helper.X", helper="X = 1")
    assert asyncio.run(code.thing.f()) == 1


# ---- distributions ------------------------------------------------------------------------


@pytest.fixture
def site(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    return site


def found_in(site) -> DistributionFinding:
    (finding,) = scan_distributions([str(site)]).findings
    return finding


def upgraded(site) -> DistributionFinding:
    """The distribution with new metadata, as an upgrade in place leaves it."""
    return replace(found_in(site), digest="newer")


def test_an_entry_point_can_name_a_module(install, site):
    install(site, acme_plugin="X = 1")
    code = import_distribution(found_in(site), 5)
    assert (code.thing.__name__, code.thing.X) == ("acme_plugin", 1)


@pytest.mark.parametrize("value", ["acme_plugin:Box.inner", "acme_plugin : Box.inner"])
def test_an_entry_point_can_name_an_object_in_a_module(install, site, value):
    points = f"[satchel.plugins]\nacme = {value}\n"
    install(site, points=points, acme_plugin="class Box:\n    inner = 'it'")
    assert import_distribution(found_in(site), 5).thing == "it"


@pytest.mark.parametrize("value", ["absent", "acme_plugin:absent", "", ":x", "acme_plugin:a..b"])
def test_an_entry_point_that_names_nothing_is_an_error(install, site, value):
    install(site, points=f"[satchel.plugins]\nacme = {value}\n", acme_plugin="")
    with pytest.raises(PluginCodeError):
        import_distribution(found_in(site), 5)
    assert "acme_plugin" not in sys.modules


def test_a_package_that_fails_leaves_nothing_and_puts_back_what_was_there(install, site):
    install(site, acme_plugin="X = 'old'")
    old = import_distribution(found_in(site), 5)
    (site / "acme_plugin.py").write_text("raise SystemExit('new and broken')")
    with pytest.raises(PluginCodeError, match="new and broken"):
        import_distribution(upgraded(site), 5)
    assert sys.modules["acme_plugin"] is old.thing


def test_an_upgrade_runs_the_new_code_and_the_old_purge_spares_it(install, site):
    install(site, acme_plugin="X = 'old'")
    old = import_distribution(found_in(site), 5)
    (site / "acme_plugin.py").write_text("X = 'newer'")
    new = import_distribution(upgraded(site), 5)
    old.purge()
    assert new.thing.X == "newer"
    assert sys.modules["acme_plugin"] is new.thing
    new.purge()
    assert "acme_plugin" not in sys.modules


def test_a_module_that_the_host_imported_is_shared_and_stays(install, site):
    install(site, acme_plugin="")
    hosts = importlib.import_module("acme_plugin")
    code = import_distribution(found_in(site), 5)
    assert code.thing is hosts
    code.purge()
    assert sys.modules["acme_plugin"] is hosts


def test_a_distribution_owns_its_modules_and_no_others(install, site):
    install(site, acme_plugin="import acme_dep", files=("acme_pack/__init__.py", "acme_pack/a.py"))
    (site / "acme_dep.py").write_text("")
    (site / "acme_pack").mkdir()
    (site / "acme_pack/__init__.py").write_text("")
    (site / "acme_pack/a.py").write_text("")
    (site / "acme_plugin.py").write_text("import acme_dep, acme_pack.a")
    before = set(sys.modules)
    import_distribution(found_in(site), 5).purge()
    left = {name for name in sys.modules.keys() - before if name.startswith("acme")}
    assert left == {"acme_dep"}


def test_a_namespace_is_shared_by_its_distributions(install, site):
    (site / "acme_ns").mkdir()
    (site / "acme_ns/one.py").write_text("X = 1")
    (site / "acme_ns/two.py").write_text("X = 2")
    points = "[satchel.plugins]\nacme = acme_ns.one\n"
    install(site, points=points, files=("acme_ns/one.py",))
    two = importlib.import_module("acme_ns.two")
    import_distribution(found_in(site), 5).purge()
    assert sys.modules["acme_ns.two"] is two
    assert "acme_ns.one" not in sys.modules


def test_a_plugin_inside_satchel_itself_is_never_forgotten(install, site):
    install(site, points="[satchel.plugins]\nacme = satchel.names\n", record=False)
    names = importlib.import_module("satchel.names")
    os.utime(site / "acme-1.0.dist-info", (1_000_000_000, 1_000_000_000))
    import_distribution(found_in(site), 5).purge()
    assert sys.modules["satchel.names"] is names


def test_an_editable_install_becomes_importable_by_its_path_file(install, site, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "acme_plugin.py").write_text("X = 'old'")
    (site / "_acme.pth").write_text(f"{work}\n")
    install(site, files=("_acme.pth", "../bin/acme", "sub/other.pth"))
    assert import_distribution(found_in(site), 5).thing.X == "old"
    assert sys.path.count(str(work)) == 1
    (work / "acme_plugin.py").write_text("X = 'newer'")
    assert import_distribution(upgraded(site), 5).thing.X == "newer"
    assert sys.path.count(str(work)) == 1


def test_an_editable_install_with_a_finder_of_its_own_is_imported_again_as_well(install, site):
    """
    Its RECORD lists the finder, not the modules that it finds.
    """
    (site / "acme_plugin.py").write_text("X = 'old'")
    install(site, __editable___acme_finder="")
    assert import_distribution(found_in(site), 5).thing.X == "old"
    (site / "acme_plugin.py").write_text("X = 'newer'")
    assert import_distribution(upgraded(site), 5).thing.X == "newer"


def test_a_path_file_that_leaves_the_process_costs_only_its_own_plugin(install, site):
    (site / "_acme.pth").write_text("import sys; sys.exit('out')\n")
    install(site, acme_plugin="", files=("_acme.pth",))
    with pytest.raises(PluginCodeError, match="SystemExit: out"):
        import_distribution(found_in(site), 5)


def test_a_plugin_that_puts_its_folder_on_the_path_shadows_no_other_module(write_plugin, tmp_path):
    """The habit is common; the host's `import wave` must go on to mean the standard library's."""
    sys.modules.pop("wave", None)
    source = (
        b"import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport wave, helper_x\n"
    )
    folder = write_plugin(tmp_path, "meddler", wave="X = 1\n", helper_x="Y = 2\n", tools="")
    sources = {"tools.py": source, "wave.py": b"X = 1\n", "helper_x.py": b"Y = 2\n"}
    code = import_folder(str(folder), sources, "tools", 5)
    assert code.thing.helper_x.Y == 2
    assert "sys.path" in code.process_changes
    assert str(folder) not in sys.path
    assert importlib.import_module("wave").__file__ == wave.__file__
    code.purge()


def test_an_installed_package_wins_over_a_bare_folder_of_its_name(load):
    code = load(
        tools="from pydantic import BaseModel\nNAME = BaseModel.__name__", pydantic__demo=""
    )
    assert code.thing.NAME == "BaseModel"


def test_a_star_import_brings_the_modules_that_a_package_names(load):
    code = load(
        tools="from pk import *\nVALUE = sub.VALUE",
        **{"pk/__init__.py": "__all__ = ['sub']\n", "pk__sub": "VALUE = 42\n"},
    )
    assert code.thing.VALUE == 42


def test_files_beside_the_code_are_found_by_the_standard_means(tmp_path):
    (tmp_path / "data.txt").write_text("hello")
    source = b"""
import importlib.resources, pkgutil
A = (importlib.resources.files(__package__) / "data.txt").read_text()
B = pkgutil.get_data(__name__, "data.txt")
"""
    code = import_folder(str(tmp_path), {"tools.py": source}, "tools", 5)
    assert (code.thing.A, code.thing.B) == ("hello", b"hello")
    code.purge()


def test_modules_of_a_package_that_is_still_installed_are_left_to_others(install, site):
    install(site, acme_plugin="X = 1")
    code = import_distribution(found_in(site), 5)
    name = code.thing.__name__
    del code
    gc.collect()
    assert name in sys.modules
    del sys.modules[name]


def test_asking_which_version_a_module_is_runs_none_of_its_code(install, site):
    install(site, acme_plugin="def __getattr__(name):\n    raise SystemExit(name)\n")
    first = import_distribution(found_in(site), 5)
    assert import_distribution(found_in(site), 5).thing is first.thing
    assert import_distribution(upgraded(site), 5).thing is not first.thing


def test_a_module_that_replaces_itself_is_a_plugin_too(install, site):
    source = "import sys\nclass Box:\n    __slots__ = ()\nsys.modules[__name__] = Box()\n"
    install(site, acme_plugin=source)
    assert type(import_distribution(found_in(site), 5).thing).__name__ == "Box"
