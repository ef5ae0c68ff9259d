"""The digest of a folder: which files it counts, and which it leaves out."""

import hashlib
import json

import pytest

from satchel.settings import Limits
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root
from satchel.trust.tree_digest import changed_file, digest_of_finding, folder_digest, read_digests


def test_it_is_the_digest_of_all_paths_and_digests_without_caches(tmp_path, write_files):
    write_files(tmp_path, {"b.txt": "2", "a/c.txt": "1"})
    lines = (
        f"{hashlib.sha256(content).hexdigest()}  {name}\0".encode()
        for name, content in (("a/c.txt", b"1"), ("b.txt", b"2"))
    )
    expected = f"sha256:{hashlib.sha256(b''.join(lines)).hexdigest()}"
    assert folder_digest(str(tmp_path)) == expected
    write_files(tmp_path, {"a/__pycache__/c.pyc": "x"})
    assert folder_digest(str(tmp_path)) == expected


def test_a_large_file_counts_to_its_end(tmp_path):
    content = bytearray(3 * 1024 * 1024)
    (tmp_path / "large").write_bytes(content)
    before = read_digests(str(tmp_path))
    assert before == {"large": hashlib.sha256(content).hexdigest()}
    content[-1] = 1
    (tmp_path / "large").write_bytes(content)
    assert read_digests(str(tmp_path)) != before


@pytest.mark.parametrize(("args", "counts"), [(["-m", "pkg"], True), (["server.py"], False)])
def test_compiled_files_count_if_a_server_could_run_them(tmp_path, write_files, args, counts):
    server = {"command": "sh" if counts else "node", "args": args}
    write_files(
        tmp_path / "plugins/bundle",
        {
            ".claude-plugin/plugin.json": '{"name": "bundle"}',
            ".mcp.json": json.dumps({"mcpServers": {"a": server}}),
            "pkg/__pycache__/a.pyc": "1",
        },
    )

    def digest():
        root = search_root(tmp_path / "plugins", RootKind.PLUGINS)
        (finding,) = scan_plugins(root, Limits()).findings.values()
        return digest_of_finding(finding)

    before = digest()
    (tmp_path / "plugins/bundle/pkg/__pycache__/a.pyc").write_text("2")
    assert (digest() != before) is counts


def test_the_first_changed_new_or_lost_file_is_named(tmp_path, write_files):
    write_files(tmp_path, {"a.py": "1", "b.md": "1"})
    folder = str(tmp_path)
    before = read_digests(folder)
    assert changed_file(before, folder, folder) == ""
    write_files(tmp_path, {"b.md": "2", "c.py": "1"})
    assert changed_file(before, folder, folder) == "b.md"
    assert changed_file(before, folder, folder, lambda name: name.endswith(".py")) == "c.py"
    (tmp_path / "a.py").unlink()
    assert changed_file(before, folder, folder) == "a.py"


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
        return digest_of_finding(scan_plugins(root, Limits()).findings["a"])

    before = digest()
    (tmp_path / "plugins/a/x.txt").symlink_to("../b/y.txt")
    assert (digest() != before) is counts
