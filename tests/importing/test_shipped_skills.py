import pytest

from satchel.importing.distributions import recorded_files, scan_distributions
from satchel.importing.shipped_skills import owners, shipped_skills


def ship(site, below=""):
    folder = site / below / ".agents" / "skills" / "a-skill"
    folder.mkdir(parents=True)
    return str(folder.parent)


def found_in(site):
    return {item.name: item for item in scan_distributions([str(site)]).findings}


def test_skills_beside_the_code_belong_to_the_plugin_of_their_distribution(install, site):
    skills = ship(site, "acme_pack")
    install(site, "other", "[satchel.plugins]\nother = x\n", files=("other/a.py",))
    install(site, "acme", files=("acme_pack/.agents/skills/a-skill/SKILL.md",))
    result = found_in(site)
    assert (result["acme"].skills, result["other"].skills) == ((skills,), ())


def test_a_distribution_with_skills_alone_is_a_plugin_of_its_name(install, site):
    skills = ship(site, "acme_pack")
    info = install(site, "Acme_Skills", "", files=("acme_pack/.agents/skills/a-skill/SKILL.md",))
    (item,) = found_in(site).values()
    assert (item.name, item.value, item.skills) == ("acme-skills", "", (skills,))
    assert (item.distribution, item.path) == ("Acme_Skills", str(info))


def test_skills_at_the_top_belong_to_whom_lists_them(install, site):
    skills = ship(site)
    install(site, "acme", "", files=(".agents/skills/a-skill/SKILL.md",))
    assert found_in(site)["acme"].skills == (skills,)


def test_skills_that_no_distribution_lists_have_no_owner(install, site):
    ship(site, "stray")
    install(site, "acme", "", files=("acme/a.py",))
    assert found_in(site) == {}


def test_several_plugins_of_one_distribution_do_not_bring_its_skills_twice(install, site):
    skills = ship(site, "acme")
    points = "[satchel.plugins]\none = acme.one\ntwo = acme.two\n"
    install(site, "acme", points, files=("acme/.agents/skills/a-skill/SKILL.md",))
    assert sorted(item.skills for item in found_in(site).values()) == [(), (skills,)]


@pytest.mark.parametrize("way", ["path file", "finder"])
def test_an_editable_install_ships_the_skills_of_its_packages(install, site, tmp_path, way):
    package = tmp_path / "work" / "src" / "acme"
    skills = ship(package)
    (package / "__init__.py").write_text("")
    ship(tmp_path / "work" / "src")  # the project's own, for whoever works on it
    ship(tmp_path / "work" / "src", "examples")
    if way == "finder":
        name = "__editable___acme_finder.py"
        (site / name).write_text(f"MAPPING = {{'acme': {str(package)!r}}}")
    else:
        name = "_acme.pth"
        (site / name).write_text(str(package.parent))
    install(site, "acme", "", files=(name,))
    assert found_in(site)["acme"].skills == (skills,)


def test_no_record_is_read_where_no_skills_are_shipped(site):
    assert shipped_skills(str(site), ["acme", "acme.py", "acme-1.0.dist-info"]) == ()
    assert owners((), ["info"], lambda _: pytest.fail("a RECORD was read")) == {}


def test_records_are_read_until_the_owner_is_found(install, site):
    ship(site, "zeta_pack")
    infos = [install(site, name, "") for name in ("alpha", "beta")]
    infos.append(install(site, "zeta", "", files=("zeta_pack/.agents/skills/a-skill/SKILL.md",)))
    read = []
    result = owners(
        shipped_skills(str(site), ["zeta_pack"]),
        list(map(str, infos)),
        lambda info: (read.append(info), recorded_files(info))[1],
    )
    assert (read, [*result]) == ([str(infos[2])], [str(infos[2])])
