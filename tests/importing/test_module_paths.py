import pytest

from satchel.importing.module_paths import ModuleBase, edited_bases, locate, parents, path_lines


def names(result):
    return [(item.name, item.path) for item in result]


def test_a_module_is_found_with_the_packages_it_is_in(tmp_path):
    package = tmp_path / "acme" / "weather"
    package.mkdir(parents=True)
    (package / "plugin.py").write_text("")
    result = locate("acme.weather.plugin", [ModuleBase("", str(tmp_path))])
    assert names(result) == [
        ("acme.weather.plugin", str(package / "plugin")),
        ("acme.weather", str(package)),
        ("acme", str(tmp_path / "acme")),
    ]
    assert [item.file for item in result] == [str(package / "plugin.py"), "", ""]


def test_a_table_of_modules_knows_only_what_it_maps(tmp_path):
    package = tmp_path / "src" / "weather"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    base = ModuleBase("acme.weather", str(package))
    (item,) = locate("acme.weather", [base])
    assert (item.name, item.path, item.is_regular_package) == (
        "acme.weather",
        str(package),
        True,
    )
    assert locate("acme", [base]) == ()
    assert locate("acme.weather2", [base]) == ()


def test_a_module_that_is_nowhere_has_no_place(tmp_path):
    assert (
        locate("acme", [ModuleBase("", str(tmp_path)), ModuleBase("acme", str(tmp_path / "gone"))])
        == ()
    )
    assert parents("", ModuleBase("", "/site")) == ()


@pytest.mark.parametrize("form", ["acme", "acme.py", "acme/__init__.py"])
def test_a_finder_may_write_a_module_in_each_way(tmp_path, form):
    (tmp_path / "__editable___acme_finder.py").write_text(f"MAPPING = {{'acme': '/work/{form}'}}")
    files = ["__editable___acme_finder.py", "acme-1.0.dist-info/RECORD"]
    assert edited_bases(str(tmp_path), files) == (ModuleBase("acme", "/work/acme"),)


def test_a_path_file_adds_folders_and_its_code_is_not_run(tmp_path):
    file = tmp_path / "acme.pth"
    file.write_text("# comment\n\nimport sys; sys.exit()\nimport\tos\nsrc\n/work/../src \n")
    assert [*path_lines(str(file))] == [str(tmp_path / "src"), "/src"]
    assert edited_bases(str(tmp_path), ["acme.pth", "gone.pth", "sub/other.pth"]) == (
        ModuleBase("", str(tmp_path / "src")),
        ModuleBase("", "/src"),
    )
