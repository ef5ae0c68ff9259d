"""The digest of a folder: what counts, and which file is the first that changed."""

import hashlib
import json
import os
import subprocess

import pytest

from satchel.files.file_reader import UnreadableFileError
from satchel.settings import Limits
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root
from satchel.sources.skill_scan import scan_skills
from satchel.trust.tree_digest import (
    changed_file,
    digest_of_finding,
    folder_digest,
    read_digests,
    tree_digest,
)

SHA256SUM = "find . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum"


@pytest.fixture
def folder(tmp_path, write_files):
    texts = {"b.txt": "b", "a/c.txt": "c", "é.md": "e", "A.txt": "a"}
    return write_files(tmp_path / "unit", texts)


def test_it_is_what_sha256sum_prints(folder):
    line = ["/bin/sh", "-c", SHA256SUM]
    printed = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert folder_digest(str(folder)) == f"sha256:{printed.split()[0]}"


def test_the_order_of_the_files_does_not_count_and_names_do():
    files = [("a", "1"), ("b", "2")]
    assert tree_digest(files) == tree_digest(reversed(files))
    assert tree_digest(files) != tree_digest([("a", "2"), ("b", "1")])
    assert tree_digest(files) != tree_digest([("a", "1"), ("c", "2")])


def test_modes_times_and_compiled_files_do_not_count(folder):
    before = folder_digest(str(folder))
    (folder / "b.txt").chmod(0o755)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_bytes(b"x")
    assert folder_digest(str(folder)) == before
    (folder / "b.txt").write_text("B")
    assert folder_digest(str(folder)) != before


def changed(folder, before):
    return changed_file(before, str(folder), str(folder), "")


def test_nothing_changed_in_a_folder_that_is_as_it_was(folder):
    assert changed(folder, read_digests(str(folder))) == ""


@pytest.mark.parametrize("name", ["b.txt", "a/c.txt", "a/new.txt"])
def test_the_file_that_changed_or_is_new_is_named(folder, name):
    before = read_digests(str(folder))
    (folder / name).write_text("changed")
    assert changed(folder, before) == name


def test_a_file_that_is_gone_is_named(folder):
    before = read_digests(str(folder))
    (folder / "é.md").unlink()
    assert changed(folder, before) == "é.md"


def test_a_folder_that_is_gone_is_a_problem(folder):
    before = read_digests(str(folder))
    folder.rename(folder.with_name("moved"))
    assert "its folder cannot be listed" in changed(folder, before).text


def test_a_large_file_counts_to_its_end(tmp_path):
    content = bytearray(3 * 1024 * 1024)
    (tmp_path / "large").write_bytes(content)
    before = read_digests(str(tmp_path))
    assert before == {"large": hashlib.sha256(content).hexdigest()}
    content[-1] = 1
    (tmp_path / "large").write_bytes(content)
    assert read_digests(str(tmp_path)) != before


@pytest.mark.parametrize(("args", "counts"), [(["-m", "pkg"], True), (["server.js"], False)])
def test_compiled_files_count_if_a_server_could_run_them(tmp_path, write_files, args, counts):
    server = {"command": "sh" if counts else "node", "args": args}
    write_files(
        tmp_path / "plugins/bundle",
        {
            ".claude-plugin/plugin.json": '{"name": "bundle"}',
            ".mcp.json": json.dumps({"mcpServers": {"a": server}}),
            "pkg/a.py": "",
            "pkg/__pycache__/a.cpython-311.pyc": "1",
        },
    )

    def digest():
        root = search_root(tmp_path / "plugins", RootKind.PLUGINS)
        (finding,) = scan_plugins(root, Limits()).findings.values()
        return digest_of_finding(finding, "")

    before = digest()
    (tmp_path / "plugins/bundle/pkg/__pycache__/a.cpython-311.pyc").write_text("2")
    assert (digest() != before) is counts


@pytest.mark.parametrize("name", ["node_modules/a.js", ".venv/x.pth", "env/pyvenv.cfg", "n.env"])
@pytest.mark.parametrize(
    ("other", "counts"),
    [
        ({".mcp.json": '{"mcpServers": {"a": {"command": "node", "args": ["s.js"]}}}'}, True),
        ({"skills/pdf/SKILL.md": "", "skills/pdf/scripts/a.py": ""}, True),
        ({".mcp.json": '{"mcpServers": {"a": {"url": "https://example.com/mcp"}}}'}, False),
    ],
)
def test_all_files_of_a_plugin_count_if_its_servers_or_scripts_could_use_them(
    tmp_path, write_files, name, other, counts
):
    folder = tmp_path / "plugins/a"
    write_files(folder, {".claude-plugin/plugin.json": '{"name": "a"}', name: "1", **other})

    def digest():
        root = search_root(tmp_path / "plugins", RootKind.PLUGINS)
        return digest_of_finding(scan_plugins(root, Limits()).findings["a"], "")

    before = digest()
    (folder / name).write_text("2")
    assert (digest() != before) is (counts or name == "n.env")


@pytest.mark.parametrize(
    ("manifest", "counts"),
    [(".claude-plugin/plugin.json", False), ("toolkit.yaml", True)],
)
def test_a_link_to_a_sibling_counts_only_in_a_plugin_that_may_leave_its_folder(
    tmp_path, write_files, manifest, counts
):
    content = '{"name": "a"}' if manifest.endswith("json") else "description: d\n"
    write_files(tmp_path / "plugins", {f"a/{manifest}": content, "b/y.txt": "y"})
    root = search_root(tmp_path / "plugins", RootKind.PLUGINS)

    def digest():
        return digest_of_finding(scan_plugins(root, Limits()).findings["a"], "")

    before = digest()
    (tmp_path / "plugins/a/x.txt").symlink_to("../b/y.txt")
    assert (digest() != before) is counts


def skill_digest(folder):
    root = search_root(folder.parent, RootKind.SKILLS)
    return digest_of_finding(scan_skills(root, Limits()).findings[folder.name], "")


@pytest.mark.parametrize("folder", ["plugins/a", "skills/pdf"])
@pytest.mark.parametrize("script", ["", "scripts/a.py"])
def test_the_lock_file_itself_does_not_count(tmp_path, write_files, folder, script):
    plain = {".claude-plugin/plugin.json": '{"name": "a"}', "SKILL.md": "", script or "a.txt": ""}
    write_files(tmp_path / folder, {**plain, "more/my.lock": "1"})
    root = search_root((tmp_path / folder).parent, RootKind(folder.partition("/")[0]))
    (tmp_path / "linked").symlink_to(folder)

    def digest(lock):
        scan = (scan_plugins if root.holds is RootKind.PLUGINS else scan_skills)(root, Limits())
        (finding,) = scan.findings.values()
        return digest_of_finding(finding, str(lock))

    lock, other = tmp_path / "linked/my.lock", tmp_path / "my.lock"
    before = digest(lock)
    assert before == digest(other)
    (tmp_path / folder / "my.lock").touch()
    assert (digest(lock), digest(other) != before) == (before, True)
    (tmp_path / folder / "more/my.lock").write_text("2")
    assert digest(lock) != before


@pytest.fixture
def skill(tmp_path, write_skill, write_files):
    folder = write_skill(tmp_path / "skills", "pdf")
    return write_files(folder, {"guide.md": "g", "scripts/run.py": "x = 1\n", "docs/a.md": "a"})


def test_a_skill_with_scripts_has_the_digest_of_what_is_served(skill):
    (skill / ".git").mkdir()
    (skill / ".git/index").touch()
    (skill / "scripts/__pycache__").mkdir()
    (skill / "scripts/__pycache__/run.cpython-311.pyc").touch()
    line = ["/bin/sh", "-c", SHA256SUM.replace("find . ", "find . -not -path '*/[._][g_]*' ")]
    printed = subprocess.run(line, cwd=skill, check=True, capture_output=True, text=True).stdout
    assert skill_digest(skill) == f"sha256:{printed.split()[0]}"


def test_a_link_of_a_skill_counts_by_its_text_and_what_is_there_once(skill):
    digests = {skill_digest(skill)}
    (skill / "scripts/docs").symlink_to("../docs")
    digests.add(skill_digest(skill))
    (skill / "docs/b.md").touch()
    digests.add(skill_digest(skill))
    (skill / "scripts/docs").unlink()
    (skill / "scripts/docs").symlink_to("../docs/../docs")
    assert len({*digests, skill_digest(skill)}) == 4


@pytest.mark.parametrize("name", ["lib/pyvenv.cfg", "n.env", "a.env/x", "/".join(["d"] * 30)])
def test_what_is_not_served_of_a_skill_counts_if_it_has_scripts(skill, name):
    before = skill_digest(skill)
    (skill / name).parent.mkdir(exist_ok=True, parents=True)
    (skill / name).touch()
    assert skill_digest(skill) != before
    (skill / "scripts/run.py").unlink()
    before = skill_digest(skill)
    (skill / name).write_text("x")
    assert skill_digest(skill) == before


def test_a_skill_that_kubernetes_mounts_has_the_digest_of_its_files(skill):
    before = skill_digest(skill)
    (skill / "..2026").mkdir()
    (skill / "..data").symlink_to("..2026")
    for name in ("SKILL.md", "guide.md", "scripts", "docs"):
        (skill / name).rename(skill / "..2026" / name)
        (skill / name).symlink_to(f"..data/{name}")
    assert skill_digest(skill) == before
    (skill / "scripts/new.py").touch()
    assert skill_digest(skill) != before
    (skill / "scripts/new.py").unlink()
    (skill / "guide.md").unlink()  # a mount has a link to each file
    assert skill_digest(skill) != before


def test_a_skill_that_cannot_be_compared_has_no_digest(skill):
    os.mkfifo(skill / "pipe")
    with pytest.raises(UnreadableFileError, match="pipe cannot be read"):
        skill_digest(skill)
