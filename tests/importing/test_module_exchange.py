import gc
import importlib
import json
import sys
import threading
import weakref
from dataclasses import replace

import pytest

from satchel.importing.code_guard import PluginCodeError
from satchel.importing.distributions import scan_distributions
from satchel.importing.editable_imports import entries_of
from satchel.importing.importer import import_distribution
from satchel.importing.module_paths import LocatedModule

pytestmark = pytest.mark.usefixtures("untouched_modules")

STATE = "from acme import state\ndef late():\n    from acme import state\n    return state.X\n"


@pytest.fixture
def site(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    return site


@pytest.fixture
def acme(install, site):
    """Install a version of the package `acme`, and return what the scan finds of it."""

    def acme(version="1", *, points=("acme.p",), files=(), **sources):
        texts = {"__init__": "", "state": f"X = {version!r}\n", "p": STATE, **sources}
        for name, text in texts.items():
            write(site / "acme" / f"{name}.py", text)
        listed = "".join(f"{point.split('.')[-1]} = {point}\n" for point in points)
        record = (*(f"acme/{name}.py" for name in texts), f"acme/v{version}", *files)
        install(site, points=f"[satchel.plugins]\n{listed}", files=record)
        findings = scan_distributions([str(site)]).findings
        return findings[0] if len(findings) == 1 else findings

    return acme


@pytest.fixture
def edited(install, site):
    """Install `acme` editably, from a folder."""

    def edited(work, version="1", name="acme"):
        write(work / name / "__init__.py", f"X = {version!r}\n")
        write(work / name / "p.py", f"X = {version!r}\n")
        write(work / "beside.py", f"X = {version!r}\n")
        (site / "_acme.pth").write_text(f"{work}\n")
        points = f"[satchel.plugins]\nacme = {name}.p\n"
        install(site, points=points, files=("_acme.pth", f"v{version}"))
        (finding,) = scan_distributions([str(site)]).findings
        return finding, LocatedModule(name, str(work / name))

    return edited


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for cached in path.parent.glob("__pycache__/*"):
        cached.unlink()


def loaded(top="acme"):
    return {name: it for name, it in sys.modules.items() if name.split(".")[0] == top}


# ---- undo ---------------------------------------------------------------------------------


def test_a_version_that_is_undone_leaves_the_one_that_serves_its_modules(acme):
    old = import_distribution(acme("1"), 5)
    before = loaded()
    new = import_distribution(acme("2"), 5)
    assert new.thing.late() == "2"
    new.undo()
    assert (old.thing.late(), loaded()) == ("1", before)


def test_a_version_that_is_undone_leaves_nothing_where_nothing_was(acme):
    import_distribution(acme("1"), 5).undo()
    assert loaded() == {}


def test_an_unused_version_does_not_come_back(acme):
    old = import_distribution(acme("1"), 5)
    new = import_distribution(acme("2"), 5)
    del old
    gc.collect()
    new.undo()
    assert loaded() == {}


def test_a_new_version_keeps_no_old_one_alive(acme):
    old = import_distribution(acme("1"), 5)
    gone = weakref.ref(old.thing)
    new = import_distribution(acme("2"), 5)
    del old
    gc.collect()
    assert (gone(), new.thing.late()) == (None, "2")


def test_a_plugin_that_is_undone_takes_nothing_from_its_sibling(acme):
    p, q = acme(points=("acme.p", "acme.q"), q="from acme import state\n")
    first = import_distribution(p, 5)
    before = loaded()
    second = import_distribution(q, 5)
    assert second.thing.state is first.thing.state
    second.undo()
    assert loaded() == before


def test_what_a_sibling_has_begun_to_share_stays_when_the_first_is_undone(acme):
    p, q = acme(points=("acme.p", "acme.q"), q="from acme import state\n")
    first, second = import_distribution(p, 5), import_distribution(q, 5)
    first.undo()
    assert sys.modules["acme.state"] is second.thing.state
    second.purge()
    assert loaded() == {}


def test_of_two_holders_of_one_version_the_last_forgets_it(acme):
    result = acme()
    first, second = import_distribution(result, 5), import_distribution(result, 5)
    first.purge()
    assert sys.modules["acme.p"] is second.thing
    second.purge()
    assert loaded() == {}


def test_an_import_that_fails_leaves_a_sibling_its_modules(acme):
    p, q = acme(points=("acme.p", "acme.q"), q="import acme.state, acme.more\n1/0", more="")
    import_distribution(p, 5)
    before = loaded()
    with pytest.raises(PluginCodeError):
        import_distribution(q, 5)
    assert loaded() == before


# ---- claim --------------------------------------------------------------------------------


def test_each_life_of_a_plugin_has_modules_of_its_own(acme):
    result = acme()
    first = import_distribution(result, 5)
    first.own()
    second = import_distribution(result, 5)
    assert second.thing is not first.thing
    assert second.thing.state is not first.thing.state
    second.undo()
    assert sys.modules["acme.p"] is first.thing


def test_siblings_share_the_modules_that_one_of_them_claimed(acme):
    p, q = acme(points=("acme.p", "acme.q"), q="from acme import state\n")
    first = import_distribution(p, 5)
    first.own()
    assert import_distribution(q, 5).thing.state is first.thing.state


def test_without_a_claim_a_version_is_shared(acme):
    result = acme()
    first = import_distribution(result, 5)
    assert import_distribution(result, 5).thing is first.thing


def test_a_module_that_replaced_itself_is_imported_again(install, site):
    source = "import sys\nclass Box: pass\nsys.modules[__name__] = Box()\n"
    install(site, acme_plugin=source)
    (finding,) = scan_distributions([str(site)]).findings
    first = import_distribution(finding, 5)
    first.own()
    assert import_distribution(finding, 5).thing is not first.thing


def test_what_cannot_be_referred_to_weakly_comes_back_as_well(install, site):
    source = "import sys\nclass Box:\n    __slots__ = ()\nsys.modules[__name__] = Box()\n"
    install(site, acme_plugin=source)
    (finding,) = scan_distributions([str(site)]).findings
    first = import_distribution(finding, 5)
    import_distribution(finding, 5).undo()
    assert sys.modules["acme_plugin"] is first.thing


# ---- editable installs --------------------------------------------------------------------


def take(result, package=None):
    return import_distribution(result, 5, edited=package)


def test_an_editable_install_that_moves_runs_where_it_is(edited, tmp_path):
    first = take(*edited(tmp_path / "a", "1"))
    second = take(*edited(tmp_path / "b", "2"))
    assert (first.thing.X, second.thing.X) == ("1", "2")
    assert str(tmp_path / "a") not in sys.path
    assert importlib.import_module("beside").X == "2"


def test_a_move_that_is_undone_leads_back(edited, tmp_path):
    first = take(*edited(tmp_path / "a", "1"))
    take(*edited(tmp_path / "b", "2")).undo()
    assert sys.modules["acme.p"] is first.thing
    assert [route.package.path for route in entries_of("acme")] == [str(tmp_path / "a" / "acme")]
    assert str(tmp_path / "a") in sys.path


def test_a_wheel_after_an_editable_install_runs_its_own_code(edited, acme, site, tmp_path):
    first = take(*edited(tmp_path / "a", "1"))
    (site / "_acme.pth").unlink()
    second = take(acme("2"))
    assert (first.thing.X, second.thing.late()) == ("1", "2")
    assert entries_of("acme") == ()
    assert str(tmp_path / "a") not in sys.path


def test_an_editable_install_after_a_wheel_runs_its_own_code(edited, acme, tmp_path):
    take(acme("1"))
    assert take(*edited(tmp_path / "a", "2")).thing.X == "2"


def test_what_the_host_imported_from_the_old_place_is_not_taken_for_the_new(
    edited, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path / "a")
    edited(tmp_path / "a", "1")
    assert importlib.import_module("acme.p").X == "1"
    assert take(*edited(tmp_path / "b", "2")).thing.X == "2"


def test_nothing_is_left_of_an_editable_install_that_is_gone(edited, tmp_path):
    item, package = edited(tmp_path / "a")
    code = take(item, package)
    for file in (*tmp_path.glob("site/*.dist-info/*"), tmp_path / "site" / "_acme.pth"):
        file.unlink()
    (tmp_path / "site" / "acme-1.0.dist-info").rmdir()
    del code
    gc.collect()
    assert (loaded(), entries_of("acme")) == ({}, ())
    assert str(tmp_path / "a") not in sys.path


def test_a_sibling_that_goes_leaves_the_way_to_the_package(edited, tmp_path):
    item, package = edited(tmp_path / "a")
    first, second = take(item, package), take(item, package)
    first.purge()
    assert [route.package for route in entries_of("acme")] == [package]
    second.purge()
    assert entries_of("acme") == ()


def test_each_edited_package_of_a_distribution_has_a_version_of_its_own(edited, tmp_path):
    item, package = edited(tmp_path / "a")
    one = take(item, package)
    write(tmp_path / "a" / "other" / "p.py", "X = 'other'\n")
    other = replace(item, name="other", value="other.p", digest="another")
    two = take(other, LocatedModule("other", str(tmp_path / "a" / "other")))
    assert (sys.modules["acme.p"], two.thing.X) == (one.thing, "other")
    assert len(entries_of("acme")) == 2


# ---- whose modules ------------------------------------------------------------------------

EXTENDED = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"


def test_a_package_that_another_has_a_part_in_keeps_that_part(acme, site):
    write(site / "acme" / "lib.py", "class A: pass\n")
    take(acme("1", __init__=EXTENDED))
    lib = importlib.import_module("acme.lib")
    new = take(acme("2", __init__=EXTENDED))
    assert (new.thing.late(), sys.modules["acme.lib"]) == ("2", lib)
    assert sys.modules["acme"].lib is lib
    new.purge()
    assert sys.modules["acme"].lib is lib
    assert "acme.p" not in sys.modules


def test_a_package_that_is_spread_over_folders_is_left_to_its_owner(
    acme, site, tmp_path, monkeypatch
):
    write(tmp_path / "more" / "acme" / "__init__.py", EXTENDED)
    write(tmp_path / "more" / "acme" / "lib.py", "")
    monkeypatch.syspath_prepend(tmp_path / "more")
    result = acme("1", __init__=EXTENDED)
    package, lib = importlib.import_module("acme"), importlib.import_module("acme.lib")
    code = take(result)
    assert code.thing.late() == "1"
    code.purge()
    assert loaded() == {"acme": package, "acme.lib": lib}


def test_modules_of_the_standard_library_are_never_owned(acme):
    files = ("json/__init__.py", "threading.py")
    for version in "12":
        code = take(acme(version, files=files))
        assert (sys.modules["json"], sys.modules["threading"]) == (json, threading)
    code.purge()
    assert (sys.modules["json"], sys.modules["threading"]) == (json, threading)


def test_a_module_of_the_host_that_a_distribution_lists_too_stays(acme, tmp_path, monkeypatch):
    write(tmp_path / "host" / "acme_tests" / "__init__.py", "")
    monkeypatch.syspath_prepend(tmp_path / "host")
    hosts = importlib.import_module("acme_tests")
    for version in "12":
        take(acme(version, files=("acme_tests/__init__.py",)))
    assert sys.modules["acme_tests"] is hosts


def test_modules_that_a_package_makes_go_with_it(acme):
    created = "import sys, types\nsys.modules['acme.made'] = types.ModuleType('acme.made')\n"
    first = take(acme("1", p=STATE + created))
    of_first = sys.modules["acme.made"]
    take(acme("2", p=STATE + created))
    assert sys.modules["acme.made"] is not of_first
    first.purge()
    assert "acme.made" in sys.modules


def test_what_was_imported_late_goes_with_the_rest(acme):
    code = take(acme("1", late=""))
    importlib.import_module("acme.late")
    code.purge()
    assert loaded() == {}


def test_a_package_that_an_earlier_folder_hides_says_so_and_leaves_all_as_it_was(
    acme, tmp_path, monkeypatch
):
    result = acme()
    write(tmp_path / "checkout" / "acme" / "__init__.py", "")
    write(tmp_path / "checkout" / "acme" / "p.py", "")
    monkeypatch.syspath_prepend(tmp_path / "checkout")
    hosts = importlib.import_module("acme.p")
    with pytest.raises(PluginCodeError, match=r"acme\.p is installed in .*site.*, but .*checkout"):
        take(result)
    assert sys.modules["acme.p"] is hosts


def test_files_that_an_installer_linked_lie_where_their_links_are(acme, site, tmp_path):
    result = acme()
    cache = tmp_path / "cache"
    cache.mkdir()
    for number, file in enumerate(sorted((site / "acme").glob("*.py"))):
        file.rename(cache / f"{number}")
        file.symlink_to(cache / f"{number}")
    assert take(result).thing.late() == "1"


def test_a_name_that_is_no_text_does_no_harm(acme, monkeypatch):
    monkeypatch.setitem(sys.modules, 5, json)
    assert take(acme()).thing.late() == "1"
