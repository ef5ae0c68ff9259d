"""While somebody swaps links, reading never leaves the root, and never raises."""

import os
import shutil
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from satchel.errors import ToolError
from satchel.files.file_reader import UnreadableFileError, real_path
from satchel.files.open_folder import read_inside
from satchel.settings import Limits
from satchel.sources.plugin_formats import PluginFormat, policy_of
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import (
    Precedence,
    RootKind,
    SearchRoot,
    conventional_roots,
    skills_of_plugin,
)
from satchel.sources.skill_scan import scan_skills

SECRET = "stolen-text"
TIMES = [100, pytest.param(5_000, marks=pytest.mark.slow)]
INSIDE = "---\nname: a\ndescription: Inside.\n---\nGood.\n"
OUTSIDE = f"---\nname: a\ndescription: {SECRET}\n---\n{SECRET}\n"


@contextmanager
def swapping(path, outside):
    """Swap `path` with a link to `outside`, and back, until the end."""
    kept, link, stop = f"{path}.kept", f"{path}.link", threading.Event()
    os.symlink(outside, link)

    def swap():
        while not stop.is_set():
            os.rename(path, kept)
            os.rename(link, path)
            os.rename(path, link)
            os.rename(kept, path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture(name="trees")
def _trees(tmp_path):
    for root, text in (("root", INSIDE), ("outside", OUTSIDE)):
        folder = tmp_path / root / "a" / "refs"
        folder.mkdir(parents=True)
        (folder.parent / "SKILL.md").write_text(text)
        (folder / "guide.md").write_text(text)
    return tmp_path / "root", tmp_path / "outside"


def texts(scan):
    for finding in scan.findings.values():
        assert all(file.data is None for file in finding.files)
        if finding.manifest is not None:
            yield finding.manifest.description
            yield finding.manifest.body


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("swapped", ["a/SKILL.md", "a/refs", "a"])
def test_nothing_outside_is_served(trees, swapped, times):
    root, outside = trees
    searched = SearchRoot(
        path=str(root), holds=RootKind.SKILLS, scope=Precedence.EXPLICIT, source="root"
    )
    served = set()
    with swapping(root / swapped, outside / swapped):
        for _ in range(times):
            served.update(texts(scan_skills(searched, Limits())))
    assert not any(SECRET in text for text in served)
    # What a scan meets between two swaps is luck on a busy machine; at rest it is not.
    assert "Inside." in texts(scan_skills(searched, Limits()))


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("swapped", ["a/refs/guide.md", "a/refs", "a"])
def test_no_file_outside_is_read_by_its_path(trees, swapped, times):
    root, outside = trees
    path, bounds = str(root / "a/refs/guide.md"), real_path(str(root))
    read = set()
    with swapping(root / swapped, outside / swapped):
        for _ in range(times):
            try:
                read.add(read_inside(path, 1_000, bounds)[0])
            except UnreadableFileError as error:
                read.add(str(error))
    assert OUTSIDE.encode() not in read
    assert read_inside(path, 1_000, bounds)[0] == INSIDE.encode()


# ---- links of the user's own -----------------------------------------------------------------


def user_root(path):
    return SearchRoot(
        path=str(path),
        holds=RootKind.SKILLS,
        scope=Precedence.USER,
        source="~/skills",
        follows_links_out=True,
    )


def test_a_users_link_directly_in_a_root_leads_to_a_skill_anywhere(trees, tmp_path):
    root, outside = trees
    os.symlink(outside / "a", root / "b")
    scan = scan_skills(user_root(root), Limits())
    assert list(scan.findings) == ["a", "b"]
    assert not scan.diagnostics
    findings = scan.findings["b"]
    assert findings.reader.read("refs/guide.md", Limits()).data == OUTSIDE.encode()
    assert scan_skills(user_root(root), Limits(), scan, frozenset()).findings["b"] is findings


def test_links_in_such_a_skill_stay_inside_it(trees, tmp_path):
    root, outside = trees
    (tmp_path / "secret").write_text(SECRET)
    os.symlink(tmp_path / "secret", outside / "a/secret.md")
    os.symlink(outside / "a", root / "b")
    findings = scan_skills(user_root(root), Limits()).findings["b"]
    assert [item.code for item in findings.folder.diagnostics] == ["source-link-outside"]
    assert [file.name for file in findings.files] == ["SKILL.md", "refs/guide.md"]


def test_a_retargeted_link_is_another_skill(trees, tmp_path):
    root, outside = trees
    os.symlink(outside / "a", root / "b")
    before = scan_skills(user_root(root), Limits())
    shutil.copytree(outside / "a", tmp_path / "copy", copy_function=shutil.copy2)
    (root / "b").unlink()
    os.symlink(tmp_path / "copy", root / "b")
    findings = scan_skills(user_root(root), Limits(), before, {str(root / "b")}).findings["b"]
    assert findings.reader.read("SKILL.md", Limits()).data == OUTSIDE.encode()
    assert findings.target == str((tmp_path / "copy").resolve())


@pytest.mark.parametrize("link", ["deep/b", "many"])
def test_deeper_links_and_links_to_many_skills_stay_inside(trees, link):
    root, outside = trees
    (root / "deep").mkdir()
    os.symlink(outside / "a" if link == "deep/b" else outside, root / link)
    scan = scan_skills(user_root(root), Limits())
    assert list(scan.findings) == ["a"]
    assert [item.code for item in scan.diagnostics] == ["source-link-outside"]


# ---- the folder of a project -----------------------------------------------------------------


def project_files(folder, text):
    """Write a project with a skill, a script and a plugin that have a text."""
    skill, plugin = folder / ".agents/skills/a", folder / "plugins/p"
    (skill / "refs").mkdir(parents=True)
    plugin.mkdir(parents=True)
    (skill / "SKILL.md").write_text(text)
    (skill / "refs/guide.md").write_text(text)
    (plugin / "toolkit.yaml").write_text(f"name: p\ndescription: {text.split()[-1]}\n")
    (plugin / "tools.py").write_text(f"# {text.split()[-1]}\n")


def read_project(roots, limits):
    """Scan all roots of a project, and return every text that is read."""
    for root in roots:
        if root.holds is RootKind.SKILLS:
            scan = scan_skills(root, limits)
            yield from texts(scan)
            for item in scan.findings.values():
                for name in ("SKILL.md", "refs/guide.md"):
                    with suppress(ToolError):
                        yield item.reader.read(name, limits).data.decode()
        else:
            for plugin in scan_plugins(root, limits).findings.values():
                yield plugin.manifest.description if plugin.manifest else ""
                yield from (data.decode() for data in plugin.sources.values())


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize(
    "swapped", ["", ".agents", ".agents/skills", ".agents/skills/a", "plugins", "plugins/p"]
)
def test_nothing_outside_is_read_while_a_folder_of_a_project_is_swapped(tmp_path, swapped, times):
    project, outside = tmp_path / "project", tmp_path / "outside"
    project_files(project, INSIDE)
    project_files(outside, OUTSIDE)
    roots = [root for root in conventional_roots(project) if root.within]
    read = set()
    with swapping(project / swapped, outside / swapped):
        for _ in range(times):
            read.update(read_project(roots, Limits()))
    assert not any(SECRET in text for text in read)
    at_rest = set(read_project(roots, Limits()))
    assert {INSIDE, "Inside.", "Good."} <= at_rest
    assert not any(SECRET in text for text in at_rest)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("policy", [PluginFormat.TOOLKIT, PluginFormat.CLAUDE])
@pytest.mark.parametrize("swapped", ["plugins/p", "plugins/p/skills"])
def test_skills_of_a_projects_plugin_stay_in_the_project(tmp_path, policy, swapped, times):
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder, text in ((project, INSIDE), (outside, OUTSIDE)):
        (folder / "plugins/p/skills/a/refs").mkdir(parents=True)
        (folder / "plugins/p/skills/a/SKILL.md").write_text(text)
        (folder / "plugins/p/skills/a/refs/guide.md").write_text(text)
    plugin = str(project / "plugins/p")
    root = skills_of_plugin(f"{plugin}/skills", plugin, policy_of(policy))
    root = replace(root, within=root.within or str(project), project=str(project))
    read = set()
    with swapping(project / swapped, outside / swapped):
        for _ in range(times):
            read.update(read_project([root], Limits()))
    assert not any(SECRET in text for text in read)
    assert {INSIDE, "Inside."} <= set(read_project([root], Limits()))


def test_a_project_may_be_named_by_a_link(tmp_path):
    project_files(tmp_path / "project", INSIDE)
    os.symlink("project", tmp_path / "link")
    roots = [root for root in conventional_roots(tmp_path / "link") if root.within]
    assert {INSIDE, "Inside.", "Good."} <= set(read_project(roots, Limits()))
