import os
import time

import pytest

from satchel.files import watched_roots
from satchel.files.watched_roots import LinkTargets, PathAliases


def test_a_path_below_a_linked_root_is_reported_by_all_its_names(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = str(tmp_path / "real"), str(tmp_path / "link")
    aliases = PathAliases((real, link), frozenset())
    for reported in (real, link):
        paths = aliases.of(frozenset({reported + "/a/SKILL.md"}))
        assert paths == {real + "/a/SKILL.md", link + "/a/SKILL.md"}
    assert aliases.of(None) is None
    outside = frozenset({"/elsewhere/a"})
    assert aliases.of(outside) == outside


@pytest.fixture
def linked(tmp_path):
    """Two folders of skills; the second has a link to a skill of the first, and one to all."""
    (tmp_path / "one/own").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    links = {tmp_path / "two/skill": tmp_path / "one/own", tmp_path / "two/all": tmp_path / "one"}
    for link, target in links.items():
        link.symlink_to(target)
    pairs = frozenset((str(link), str(target)) for link, target in links.items())
    return PathAliases((str(tmp_path / "one"), str(tmp_path / "two")), pairs)


@pytest.mark.parametrize("reported", ["one/own/a", "two/skill/a", "two/all/own/a"])
def test_a_path_below_a_link_or_its_target_is_reported_by_all_its_names(linked, tmp_path, reported):
    names = ("one/own/a", "two/skill/a", "two/all/own/a")
    paths = linked.of(frozenset({str(tmp_path / reported)}))
    assert paths == {str(tmp_path / name) for name in names}


def test_a_folder_above_the_target_of_a_link_is_reported_with_the_link(linked, tmp_path):
    paths = linked.of(frozenset({str(tmp_path)}))
    assert paths >= {str(tmp_path), str(tmp_path / "two/skill"), str(tmp_path / "two/all")}


def test_another_path_has_one_name(linked, tmp_path):
    paths = frozenset({str(tmp_path / "two/other/a")})
    assert linked.of(paths) == paths


def test_a_link_through_another_one_of_the_same_name_is_compared(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name / "pdf").mkdir(parents=True)
    (tmp_path / "pdf").symlink_to("first/pdf")
    (tmp_path / "skills").mkdir()
    link = tmp_path / "skills/pdf"
    link.symlink_to("../pdf")
    links = frozenset({(str(link), str(tmp_path / "first/pdf"))})
    monkeypatch.setattr(watched_roots, "_SHARE", 1e9)  # compare each time
    targets = LinkTargets((str(tmp_path / "skills"),), links)
    assert targets.moved() == frozenset()
    (tmp_path / "pdf").unlink()
    (tmp_path / "pdf").symlink_to("second/pdf")
    assert targets.moved() == {str(link)}


@pytest.mark.parametrize("replaced", ["a", "a/b", "a/b/pdf"])
def test_a_link_is_reported_while_a_folder_above_its_target_is_replaced(tmp_path, replaced):
    target, root, link = tmp_path / "a/b/pdf", tmp_path / "skills", tmp_path / "skills/pdf"
    target.mkdir(parents=True)
    root.mkdir()
    link.symlink_to(target)
    links = frozenset({(str(link), str(target))})
    before = LinkTargets((str(root),), links)
    (tmp_path / "other").mkdir()
    (target / "SKILL.md").touch()
    os.utime(target.parent, (1, 1))
    (tmp_path / replaced).rename(tmp_path / "old")
    gone = LinkTargets((str(root),), links)
    assert before.moved() == {str(link)}
    target.mkdir(parents=True)
    assert gone.moved() == {str(link)}


def test_links_within_the_roots_are_not_compared(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to("own")
    links = frozenset({(str(tmp_path / "link"), str(tmp_path / "own"))})
    targets = LinkTargets((str(tmp_path),), links)
    (tmp_path / "own").rmdir()
    assert targets.moved() == frozenset()  # the system reports it


def test_links_are_compared_rarely_if_that_takes_long(tmp_path, monkeypatch):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to("target")
    links = frozenset({(str(tmp_path / "link"), str(tmp_path / "target"))})
    monkeypatch.setattr(watched_roots, "_SHARE", 1e-9)
    targets = LinkTargets((), links)
    assert targets.moved() == frozenset()
    (tmp_path / "target").rename(tmp_path / "other")
    assert targets.moved() == frozenset()  # not compared again so soon
    monkeypatch.setattr(time, "monotonic", lambda: 1e18)
    assert targets.moved() == {str(tmp_path / "link")}
