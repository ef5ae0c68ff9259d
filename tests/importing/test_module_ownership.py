from types import ModuleType

import pytest

from satchel.importing.distributions import DistributionFinding
from satchel.importing.module_ownership import VERSION, ModuleOwnership, lies_at, places
from satchel.importing.module_paths import LocatedModule


def made(name="acme", file=None, **names):
    module = ModuleType(name)
    vars(module).update(names)
    if file:
        module.__file__ = str(file)
    return module


def found(site, *files, value="acme.p"):
    return DistributionFinding(
        name="acme",
        value=value,
        distribution="Acme",
        version="1",
        summary="",
        path=f"{site}/acme-1.dist-info",
        digest="",
        files=files,
    )


def test_a_folder_that_is_a_link_is_the_folder_it_leads_to(tmp_path):
    (tmp_path / "site" / "acme").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "site")
    module = made(file=tmp_path / "site" / "acme" / "p.py")
    assert lies_at(module, str(tmp_path / "link" / "acme" / "p"))
    assert lies_at(module, str(tmp_path / "link" / "acme"))
    assert not lies_at(module, str(tmp_path / "link" / "acme" / "q"))


def test_where_a_module_lies_is_reported_without_running_its_code():
    class Path:
        def __iter__(self):
            raise SystemExit

    assert places(made(__path__=Path())) == []
    assert places(made(__path__=["a", 5, "b"])) == ["a", "b"]
    assert places(5) == []


@pytest.mark.parametrize(
    ("file", "is_owned"),
    [
        ("acme/p.py", True),
        ("acme/fast.abi3.so", True),
        ("acme/other.py", False),
        ("../elsewhere/acme/p.py", True),
    ],
)
def test_a_distribution_owns_what_its_record_lists(tmp_path, file, is_owned):
    owner = ModuleOwnership(found(tmp_path, "acme/p.py", "acme/fast.abi3.so", "acme/x-y.py"), None)
    name = f"acme.{file.rsplit('/', 1)[1].partition('.')[0]}"
    assert owner.owns(name, made(name, tmp_path / file)) is is_owned


@pytest.mark.parametrize("name", ["json", "json.decoder", "satchel", "satchel.names"])
def test_the_standard_library_and_satchel_are_never_owned(tmp_path, name):
    file = name.replace(".", "/") + ".py"
    assert not ModuleOwnership(found(tmp_path, file), None).owns(name, made(name, tmp_path / file))


def test_what_is_marked_by_another_distribution_is_its_own(tmp_path):
    owner = ModuleOwnership(found(tmp_path, "acme/p.py"), None)
    for mark, is_owned in {"acme": True, "other": False}.items():
        module = made("acme.p", tmp_path / "acme" / "p.py", **{VERSION: (mark, "1")})
        assert owner.owns("acme.p", module) is is_owned


def test_without_a_record_the_outermost_package_with_code_is_owned(tmp_path):
    for name in ("one", "two"):
        (tmp_path / "space" / name).mkdir(parents=True)
        (tmp_path / "space" / name / "__init__.py").write_text("")
    owner = ModuleOwnership(found(tmp_path, value="space.one.p"), None)
    owned = [
        n for n in ("space", "space.one", "space.one.p", "space.two") if owner.owns(n, made(n))
    ]
    assert owned == ["space.one", "space.one.p"]


def test_of_what_is_edited_only_that_package_is_owned(tmp_path):
    owner = ModuleOwnership(
        found(tmp_path, "_acme.pth"), LocatedModule("acme", str(tmp_path / "w" / "acme"))
    )
    for file, is_owned in {"w/acme/p.py": True, "other/acme/p.py": False}.items():
        assert owner.owns("acme.p", made("acme.p", tmp_path / file)) is is_owned
