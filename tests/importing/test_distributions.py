import os
import sys

import pytest

from satchel.files.file_reader import Stamp, stamped
from satchel.importing import distributions
from satchel.importing.distributions import (
    installed_folders,
    normalized,
    scan_distributions,
)


@pytest.fixture
def parsed(monkeypatch):
    """The paths of the metadata folders that are looked into from now on."""
    real, seen = distributions._findings, []
    monkeypatch.setattr(
        distributions,
        "_findings",
        lambda info: (seen.append(os.path.basename(info)), real(info))[1],
    )
    return seen


def test_an_entry_point_is_found_without_importing(install, site):
    info = install(site, acme_plugin="raise SystemExit", files=("acme/data.txt", '"odd, name"'))
    (finding,) = scan_distributions([str(site)]).findings
    assert (finding.name, finding.value) == ("acme", "acme_plugin")
    assert (finding.distribution, finding.version, finding.summary) == (
        "acme",
        "1.0",
        "Sums up.",
    )
    assert (finding.path, finding.files) == (
        str(info),
        ("acme_plugin.py", "acme/data.txt", "odd, name"),
    )


def test_each_entry_point_of_the_group_counts_and_no_other(install, site):
    points = (
        "[console_scripts]\nrun = acme:main\n\n"
        "[satchel.plugins]\n# a comment\nB = b:Plugin\na = a\n"
        "[satchel.plugins_of_tomorrow]\nc = c\n"
    )
    install(site, points=points)
    findings = scan_distributions([str(site)]).findings
    assert [(item.name, item.value) for item in findings] == [("B", "b:Plugin"), ("a", "a")]


def test_a_distribution_without_plugins_is_not_parsed(install, site):
    info = install(site, points="[console_scripts]\nrun = x:y\n")
    (info / "METADATA").unlink()
    scan = scan_distributions([str(site)])
    assert (scan.findings, scan.diagnostics) == ((), ())


def test_an_entry_point_is_found_behind_very_many_others(install, site):
    others = "".join(f"name{number} = module{number}\n" for number in range(5_000))
    install(site, points=f"[others]\n{others}[satchel.plugins]\nacme = x\n")
    assert [item.name for item in scan_distributions([str(site)]).findings] == ["acme"]


def test_a_group_that_only_begins_like_that_of_satchel_is_not_its_own(install, site):
    install(site, points="[satchel.plugins.more]\nrun = x:y\n")
    assert scan_distributions([str(site)]).findings == ()


def test_a_distribution_without_entry_points_is_nothing_to_us(install, site):
    (install(site) / "entry_points.txt").unlink()
    scan = scan_distributions([str(site)])
    assert (scan.findings, scan.diagnostics, scan.awaited) == ((), (), ())


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("entry_points.txt", b"satchel.plugins\n"),
        ("entry_points.txt", b"[satchel.plugins]\nno value\n"),
        ("entry_points.txt", b"[satchel.plugins]\n\xff = x\n"),
        ("METADATA", None),
        ("METADATA", b"Name: \xff\n"),
    ],
)
def test_damaged_metadata_costs_only_its_own_distribution(install, site, codes, file, content):
    info = install(site, "broken")
    install(site, "healthy", "[satchel.plugins]\nhealthy = h\n")
    (info / file).write_bytes(content) if content is not None else (info / file).unlink()
    scan = scan_distributions([str(site)])
    assert [item.name for item in scan.findings] == ["healthy"]
    assert codes(scan.diagnostics) == ["plugin-unreadable"]
    assert scan.diagnostics[0].where.path == str(info)


def test_metadata_that_is_a_folder_costs_only_its_own_distribution(install, site, codes):
    info = install(site, "broken")
    (info / "METADATA").unlink()
    (info / "METADATA").mkdir()
    other = install(site, "other")
    (other / "entry_points.txt").unlink()
    (other / "entry_points.txt").mkdir()
    install(site, "healthy", "[satchel.plugins]\nhealthy = h\n")
    scan = scan_distributions([str(site)])
    assert [item.name for item in scan.findings] == ["healthy"]
    assert codes(scan.diagnostics) == ["plugin-unreadable"]


def test_metadata_without_a_name_is_named_after_its_folder(install, site):
    (install(site, "acme-tools") / "METADATA").write_text("Metadata-Version: 2.1\n")
    (finding,) = scan_distributions([str(site)]).findings
    assert (finding.distribution, finding.version, finding.summary) == ("acme_tools", "", "")


def test_an_installation_under_way_is_awaited(install, site):
    info = install(site, record=False)
    scan = scan_distributions([str(site)])
    assert (scan.findings, scan.awaited) == ((), (str(info / "RECORD"),))
    (info / "RECORD").write_text("acme_plugin.py,,\n")
    scan = scan_distributions([str(site)], scan)
    assert ([item.name for item in scan.findings], scan.awaited) == (["acme"], ())


def test_a_distribution_that_never_had_a_record_counts_once_it_is_old(install, site, later):
    install(site, record=False)
    later(11)
    scan = scan_distributions([str(site)])
    assert ([item.files for item in scan.findings], scan.awaited) == ([()], ())


def test_a_metadata_folder_that_vanishes_while_it_is_looked_at_is_nothing(tmp_path):
    assert not distributions._is_installing(str(tmp_path / "gone.dist-info"))


def test_a_folder_that_did_not_change_is_not_listed_again(install, site, later, parsed):
    install(site)
    later(3)
    first = scan_distributions([str(site)])
    second = scan_distributions([str(site)], first)
    assert parsed == ["acme-1.0.dist-info"]
    assert second.findings == first.findings


def test_a_folder_that_changed_just_now_is_listed_again(install, site, parsed):
    """
    Two installations within one tick of the clock leave the same stamp.
    """
    install(site)
    first = scan_distributions([str(site)])
    scan_distributions([str(site)], first)
    assert parsed == ["acme-1.0.dist-info"] * 2


def test_only_the_folder_that_changed_is_listed_again(install, tmp_path, later, parsed):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        install(folder, folder.name, f"[satchel.plugins]\n{folder.name} = x\n")
    later(3)
    first = scan_distributions(map(str, folders))
    parsed.clear()
    install(folders[1], "three", "[satchel.plugins]\nthree = x\n")
    second = scan_distributions(map(str, folders), first)
    assert parsed == ["three-1.0.dist-info", "two-1.0.dist-info"]
    assert [item.name for item in second.findings] == ["one", "three", "two"]


def test_what_was_uninstalled_is_gone(install, site, later):
    info = install(site)
    later(3)
    first = scan_distributions([str(site)])
    for path in info.iterdir():
        path.unlink()
    info.rmdir()
    assert scan_distributions([str(site)], first).findings == ()


def test_of_a_distribution_in_two_folders_the_one_that_imports_counts(install, tmp_path):
    install(tmp_path / "first", "Acme.Tools", version="2.0")
    install(tmp_path / "second", "acme-tools", version="1.0")
    scan = scan_distributions([str(tmp_path / "first"), str(tmp_path / "second")])
    assert [item.version for item in scan.findings] == ["2.0"]


@pytest.mark.parametrize(("written", "counts"), [((2, 1), "1.9"), ((1, 2), "1.10")])
def test_of_two_metadata_folders_of_one_distribution_the_last_installed_counts(
    install, site, written, counts
):
    for version, seconds in zip(("1.9", "1.10"), written, strict=True):
        os.utime(install(site, version=version) / "RECORD", (seconds, seconds))
    assert [item.version for item in scan_distributions([str(site)]).findings] == [counts]


def test_of_two_that_were_installed_in_one_moment_the_higher_version_counts(install, site):
    for version in ("1.9", "1.10"):
        os.utime(install(site, version=version) / "RECORD", (1, 1))
    assert [item.version for item in scan_distributions([str(site)]).findings] == ["1.10"]


def test_what_pip_could_not_remove_is_not_installed(install, site):
    install(site).rename(site / "~cme-1.0.dist-info")
    scan = scan_distributions([str(site)])
    assert (scan.findings, scan.diagnostics) == ((), ())


def test_a_distribution_hides_another_version_of_it_in_a_later_folder(install, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    (install(first, "Acme_Tools", version="2.0") / "entry_points.txt").unlink()
    install(second, "acme-tools", version="1.0")
    assert scan_distributions([str(first), str(second)]).findings == ()
    (finding,) = scan_distributions([str(second), str(first)]).findings
    assert finding.version == "1.0"


def test_no_section_of_the_entry_points_adds_to_another(install, site):
    install(site, points="[DEFAULT]\nevil = os\n[satchel.plugins]\nacme = acme_plugin\n")
    assert [item.name for item in scan_distributions([str(site)]).findings] == ["acme"]


def test_two_distributions_can_offer_one_name(install, site):
    install(site, "one")
    install(site, "two")
    findings = scan_distributions([str(site)]).findings
    assert [(item.name, item.distribution) for item in findings] == [
        ("acme", "one"),
        ("acme", "two"),
    ]


def test_the_digest_changes_with_the_metadata_and_the_record(install, site):
    digests = set()
    for parts in ({}, {"files": ("new.py",)}, {"points": "[satchel.plugins]\nacme = other\n"}):
        install(site, **parts)
        digests.add(scan_distributions([str(site)]).findings[0].digest)
    assert len(digests) == 3


def test_a_folder_that_is_missing_holds_nothing_and_has_a_stamp(tmp_path):
    folder = str(tmp_path / "absent")
    scan = scan_distributions([folder])
    assert (scan.findings, scan.stamps) == ((), ((folder, Stamp()),))


def test_stamps_say_whether_something_was_installed(install, site):
    scan = scan_distributions([str(site)])
    assert stamped([str(site)]) == scan.stamps
    os.utime(site, (1, 1))
    assert stamped([str(site)]) != scan.stamps


def test_only_folders_of_the_module_path_are_searched_each_once(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "file.zip").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "a", str(tmp_path / "a"), str(tmp_path / "file.zip")])
    assert installed_folders() == (str(tmp_path / "a"),)


@pytest.mark.parametrize("name", ["Acme_Tools", "acme.tools", "acme--tools", "ACME-._tools"])
def test_names_of_distributions_are_compared_as_pep_503_says(name):
    assert normalized(name) == "acme-tools"
