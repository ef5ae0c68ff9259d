import sys

import pytest

from satchel.importing.distributions import scan_distributions
from satchel.settings import Limits
from satchel.sources.package_scan import scan_packages

MANIFEST = "description: Forecasts.\nconfig: {key: {type: secret}}\nnotes: guide.md\n"
POINTS = "[satchel.plugins]\nacme = acme.weather.plugin\n"


@pytest.fixture
def write():
    """Write a package `acme.weather` whose modules end the process if they are imported."""

    def write(root, manifest=MANIFEST, at="acme/weather"):
        package = root / "acme" / "weather"
        package.mkdir(parents=True, exist_ok=True)
        (package.parent / "__init__.py").write_text("raise SystemExit")
        for name in ("__init__", "plugin", "helper"):
            (package / f"{name}.py").write_text("raise SystemExit")
        tool = "@tool\ndef forecast(city: str) -> str:\n    'Tells.'\n"
        (package / "tools.py").write_text(f"from satchel import tool\nraise SystemExit\n{tool}")
        (package / "guide.md").write_text("Ask for the city.\n")
        if manifest is not None:
            (root / at / "toolkit.yaml").write_text(manifest)
        paths = (path for path in root.rglob("*") if path.is_file())
        return tuple(str(p.relative_to(root)) for p in paths if "dist-info" not in str(p))

    return write


@pytest.fixture
def installed(install, site, write):
    """A wheel's package, as it was read."""

    def installed(**parts):
        install(site, points=POINTS, files=write(site, **parts))
        return look(site)

    return installed


@pytest.fixture
def editable(install, site, write, tmp_path):
    """A package that is edited in another folder, as it was read."""

    def editable(**parts):
        write(tmp_path / "work", **parts)
        (site / "_acme.pth").write_text(str(tmp_path / "work"))
        install(site, points=POINTS, files=("_acme.pth",))
        return look(site)

    return editable


def look(site, before=None, dirty=None, *, used=True, limits=None):
    findings = scan_distributions([str(site)]).findings
    earlier = {(before.installed.path, before.installed.name): before} if before else {}
    scan = scan_packages(findings, limits or Limits(), lambda _: used, earlier, dirty)
    (package,) = scan.values()
    return package


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_a_manifest_is_read_and_nothing_imported(request, monkeypatch, way):
    for name in [name for name in sys.modules if name.startswith("acme")]:
        monkeypatch.delitem(sys.modules, name)  # another test's
    result = request.getfixturevalue(way)()
    manifest = result.part.manifest
    assert (manifest.name, manifest.description, manifest.notes) == (
        "acme",
        "Forecasts.",
        "Ask for the city.",
    )
    assert [tool.name for tool in result.part.declared] == ["forecast"]
    assert [field.name for field in manifest.config] == ["key"]
    assert (result.home, result.modules) == ("acme.weather", {"tools": "acme.weather.tools"})
    assert result.diagnostics == ()
    assert not any(name.startswith("acme") for name in sys.modules)


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_the_innermost_package_with_a_manifest_counts(request, way, site, tmp_path):
    make = request.getfixturevalue(way)
    assert make(at="acme").home == "acme"
    assert make(at="acme/weather").home == "acme.weather"


def test_the_manifest_of_another_distribution_in_the_namespace_is_not_taken(install, site, write):
    files = write(site, at="acme")
    install(site, points=POINTS, files=tuple(f for f in files if not f.endswith(".yaml")))
    assert look(site).part is None


def test_a_distribution_without_a_record_is_looked_at_on_disk(install, site, write, later):
    write(site)
    install(site, points=POINTS, record=False)
    later(11)
    result = look(site)
    assert (result.home, result.edited) == ("acme.weather", None)


def test_a_package_without_a_manifest_has_none(installed):
    result = installed(manifest=None)
    assert (result.part, result.modules, result.skills) == (None, {}, ())


def test_another_name_than_that_of_the_entry_point_is_reported_and_not_used(installed, codes):
    result = installed(manifest="name: other\n")
    assert (result.part.manifest.name, codes(result.diagnostics)) == (
        "acme",
        ["plugin-name-folder"],
    )
    assert result.diagnostics[0].where.line == 1


def test_a_manifest_that_is_wrong_is_reported_with_the_line(installed, codes):
    result = installed(manifest="active: true\nnotez: x\nactive2: y\n")
    assert codes(result.diagnostics) == ["plugin-field-unknown"] * 2
    assert [item.where.line for item in result.diagnostics] == [2, 3]


def test_an_installed_package_is_read_once(installed, site, reads):
    first = installed()
    reads.clear()
    assert look(site, first) is first
    assert reads == []


def test_of_an_installed_package_only_what_it_declares_is_read(installed, reads):
    installed()
    assert sorted(set(reads)) == ["guide.md", "toolkit.yaml", "tools.py"]


@pytest.mark.parametrize(
    "file", ["helper.py", "toolkit.yaml", "guide.md", "../__init__.py", "new.py"]
)
def test_an_edit_in_an_editable_package_changes_its_digest(editable, site, tmp_path, file):
    first = editable()
    path = tmp_path / "work" / "acme" / "weather" / file
    text = path.read_text() if path.exists() else ""
    path.write_text(f"{text}\n# edited\n")
    second = look(site, first)
    assert second.digest != first.digest
    assert (second.installed_with_code.digest != first.installed_with_code.digest) is file.endswith(
        ".py"
    )


@pytest.mark.parametrize("file", ["data.csv", ".agents/skills/a/x.py", "skills/a/x.py"])
def test_data_and_skills_are_no_part_of_the_code(editable, site, tmp_path, file):
    first = editable()
    path = tmp_path / "work" / "acme" / "weather" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    assert look(site, first).digest == first.digest


def test_an_editable_package_is_looked_at_only_when_something_in_it_changed(
    editable, site, tmp_path
):
    first = editable()
    helper = tmp_path / "work" / "acme" / "weather" / "helper.py"
    helper.write_text("X = 1")
    assert look(site, first, dirty=[str(tmp_path / "elsewhere")]) is first
    for dirty in (str(helper), str(tmp_path), first.installed.path):
        assert look(site, first, dirty=[dirty]).digest != first.digest
    assert look(site, first).digest != first.digest


def test_the_code_of_unused_packages_is_not_read(editable, site, reads):
    editable()
    reads.clear()
    result = look(site, used=False)
    assert (result.code, result.part.manifest.name) == (None, "acme")
    assert "helper.py" not in reads
    assert look(site, result, dirty=[], used=True).code is not None


def test_the_package_that_is_edited_is_the_largest_that_is_its_own(editable, tmp_path):
    root = tmp_path / "work" / "acme"
    assert editable().roots == (str(root),)
    (root / "__init__.py").unlink()
    (root / "weather" / "__init__.py").unlink()


def test_a_package_without_init_files_is_edited_where_its_manifest_is(editable, site, tmp_path):
    editable()
    root = tmp_path / "work" / "acme"
    (root / "__init__.py").unlink()
    (root / "weather" / "__init__.py").unlink()
    assert look(site).edited.name == "acme.weather"
    (root / "weather" / "toolkit.yaml").unlink()
    assert look(site).edited.name == "acme.weather"


def test_a_path_file_may_have_the_name_of_the_package(install, site, write, tmp_path):
    write(tmp_path / "work")
    (site / "acme.pth").write_text(str(tmp_path / "work"))
    install(site, points=POINTS, files=("acme.pth",))
    assert [tool.name for tool in look(site).part.declared] == ["forecast"]


def test_a_single_module_is_edited_alone(install, site, tmp_path):
    work = tmp_path / "work"
    (work / "tests").mkdir(parents=True)
    (work / "acme_plugin.py").write_text("X = 1")
    (work / "other.py").write_text("")
    (site / "_acme.pth").write_text(str(work))
    install(site, files=("_acme.pth",))
    first = look(site)
    file = str(work / "acme_plugin.py")
    assert (first.roots, [path for path, _ in first.stamps]) == ((), [file])
    (work / "other.py").write_text("Y = 1")
    assert look(site, first).digest == first.digest
    (work / "acme_plugin.py").write_text("X = 2")
    assert look(site, first).digest != first.digest
    assert look(site, first).stamps != first.stamps


def test_the_two_plugins_of_an_editable_distribution_share_one_version_of_the_code(
    install, site, write, tmp_path
):
    write(tmp_path / "work")
    (site / "_acme.pth").write_text(str(tmp_path / "work"))
    points = "[satchel.plugins]\none = acme.weather.plugin\ntwo = acme\n"
    install(site, points=points, files=("_acme.pth",))
    scan = scan_packages(
        scan_distributions([str(site)]).findings, Limits(), lambda _: True, {}
    ).values()
    one, two = (package.installed_with_code.digest for package in scan)
    assert one == two


@pytest.mark.parametrize(
    ("source", "value", "expected"),
    [
        ("X = 1", "acme.weather.plugin", False),
        ("import satchel\n@satchel.hookimpl\n", "acme.weather.plugin", True),
        ("X = 1", "acme.weather.plugin:X", True),
        ("X = 1", "acme.weather.absent", True),
        ("from .helper import *", "acme.weather.plugin", True),
        ("from acme.weather.helper import *", "acme.weather.plugin", True),
        ("try:\n    from . import *\nexcept E: pass", "acme.weather.plugin", True),
        ("from .helper import satchel_tools", "acme.weather.plugin", True),
        ("from math import *", "acme.weather.plugin", False),
        ("from acmes.weather import *", "acme.weather.plugin", False),
        ("import satchel\nfrom satchel import tool", "acme.weather.plugin", False),
    ],
)
def test_an_entry_point_is_imported_only_if_it_may_have_hooks(request, source, value, expected):
    install, site, write = map(request.getfixturevalue, ("install", "site", "write"))
    files = write(site)
    (site / "acme" / "weather" / "plugin.py").write_text(source)
    install(site, points=f"[satchel.plugins]\nacme = {value}\n", files=files)
    assert look(site).may_have_hooks(Limits()) is expected


def test_an_entry_point_that_is_larger_than_the_host_allows_is_imported(installed):
    result = installed()
    assert not result.may_have_hooks(Limits())
    assert result.may_have_hooks(Limits(plugin_source=3))


@pytest.mark.parametrize("line", ["@hookimpl", "from .helper import *"])
def test_the_modules_of_a_manifest_may_have_hooks_too(request, line):
    install, site, write = map(request.getfixturevalue, ("install", "site", "write"))
    files = write(site)
    install(site, points=POINTS, files=files)
    assert look(site).hook_modules() == ()
    tools = site / "acme" / "weather" / "tools.py"
    tools.write_text(f"{tools.read_text()}\n{line}\n")
    assert look(site).hook_modules() == ("acme.weather.tools",)


def test_without_a_manifest_no_module_is_asked_but_that_of_the_entry_point(installed):
    assert installed(manifest=None).hook_modules() == ()


def test_without_a_manifest_an_entry_point_is_always_imported(installed):
    assert installed(manifest=None).may_have_hooks(Limits())
