"""Repositories, good and hostile, are fetched: their files come, and nothing of them runs."""

import os
import subprocess
from pathlib import Path

import pytest

from satchel.errors import SatchelError
from satchel.setup.git_fetch import fetch_commit
from satchel.setup.source_addresses import read_address

ME = ("-c", "user.name=Me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    line = ["git", *ME, "-C", str(folder), *arguments]
    done = subprocess.run(line, check=True, capture_output=True, input=stdin)
    return done.stdout.decode().strip()


@pytest.fixture
def work(tmp_path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


@pytest.fixture
def commit(work):
    """Commit files, and return the commit."""

    def commit(**files: str) -> str:
        for name, text in files.items():
            path = work / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, newline="")
        git(work, "add", "-A")
        git(work, "commit", "-q", "-m", "a change")
        return git(work, "rev-parse", "HEAD")

    return commit


@pytest.fixture
def fetch(tmp_path, work):
    """Fetch from a bare clone; return the commit, the files and the notes."""

    def fetch(rest: str = "", url: str = "") -> tuple[str, dict[str, str], tuple[str, ...]]:
        bare, target = tmp_path / "bare.git", tmp_path / os.urandom(4).hex()
        if not bare.exists():
            git(tmp_path, "clone", "-q", "--bare", str(work), str(bare))
        commit, notes = fetch_commit(read_address(url or f"git+file://{bare}{rest}"), str(target))
        files = {
            path.relative_to(target).as_posix(): path.read_bytes().decode()
            for path in target.rglob("*")
            if path.is_file()
        }
        return commit, files, notes

    return fetch


def test_a_branch_a_tag_a_commit_and_the_beginning_of_one_are_found(work, commit, fetch):
    first = commit(a="1")
    git(work, "tag", "v1")
    second = commit(a="2")
    git(work, "branch", "feature/x")
    for rev in ("@v1", f"@{first}", f"@{first[:10]}"):
        assert fetch(rev)[:2] == (first, {"a": "1"})
    for rev in ("", "@main", "@feature/x", f"@{second}"):
        assert fetch(rev)[:2] == (second, {"a": "2"})


def test_an_unknown_revision_and_an_unknown_folder_are_errors_that_leave_nothing(
    commit, fetch, tmp_path
):
    commit(a="1")
    with pytest.raises(SatchelError, match="has no branch, tag or commit 'nope'") as caught:
        fetch("@nope")
    assert caught.value.where == f"git+file://{tmp_path}/bare.git@nope"
    with pytest.raises(SatchelError, match="has no branch, tag or commit 'aaaa"):
        fetch(f"@{'a' * 40}")
    with pytest.raises(SatchelError, match="has no folder 'missing'"):
        fetch("#subdirectory=missing")


def test_a_branch_that_is_named_like_a_commit_does_not_stand_for_it(work, commit, fetch):
    digest = commit(a="1")
    commit(a="2")
    git(work, "branch", digest)
    git(work, "branch", digest[:8])
    git(work, "tag", digest[:10])
    for rev in (digest, digest[:8], digest[:10], digest.upper()):
        assert fetch(f"@{rev}")[:2] == (digest, {"a": "1"})


def test_a_tag_that_begins_no_commit_may_look_like_one(work, commit, fetch):
    digest = commit(a="1")
    git(work, "tag", "20240101")
    assert fetch("@20240101")[0] == digest


def test_a_folder_is_taken_with_its_bytes_and_its_executables(work, commit, fetch, tmp_path):
    commit(**{".gitattributes": "* text eol=crlf export-ignore\n", "s__x": "a\nb\r\n", "t": "no"})
    (work / "s/run").write_text("#!/bin/sh\n")
    (work / "s/run").chmod(0o755)
    commit()
    _, files, _ = fetch("#subdirectory=s")
    assert files == {"s/x": "a\nb\n", "s/run": "#!/bin/sh\n"}
    (run,) = (path for path in tmp_path.rglob("s/run") if work not in path.parents)
    assert os.access(run, os.X_OK)


def test_nothing_of_a_hostile_repository_runs(work, commit, tmp_path, fetch):
    mark = tmp_path / "was-run"
    commit(**{".gitattributes": "* filter=evil diff=evil\n", "a": "1"})
    hooks = work / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    names = ("post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction")
    for name in (*names, "fsmonitor-watchman", "post-merge", "proc-receive"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.askPass", "core.pager", "core.editor"),
        *("uploadpack.packObjectsHook", "credential.helper", "filter.evil.smudge"),
        *("filter.evil.process", "diff.external", "core.alternateRefsCommand"),
    ):
        git(work, "config", key, f"touch {mark}")
    assert fetch(url=f"git+file://{work}")[1]["a"] == "1"
    assert not mark.exists()


def test_the_users_own_configuration_and_environment_start_nothing(
    commit, fetch, tmp_path, monkeypatch
):
    commit(a="1")
    mark, home = tmp_path / "was-run", tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[core]\n fsmonitor = touch {mark}\n[url "ext::touch {mark}"]\n insteadOf = "file://"\n'
    )
    fetch()  # makes the bare clone
    monkeypatch.setenv("HOME", str(home))
    for name in ("GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_PROXY_COMMAND"):
        monkeypatch.setenv(name, f"touch {mark}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch {mark}")
    assert fetch()[1] == {"a": "1"}
    assert not mark.exists()


def test_a_submodule_and_a_link_that_leads_out_are_left_out_and_named(work, commit, fetch):
    commit(a="1", d__b="2")
    (work / "z").write_text("3")
    (work / "inside").symlink_to("d/b")
    (work / "d/outside").symlink_to("../../etc/passwd")
    (work / "absolute").symlink_to("/etc/passwd")
    head = git(work, "rev-parse", "HEAD")
    git(work, "add", "-A")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{head},module")
    git(work, "commit", "-q", "-m", "links")
    _, files, notes = fetch()
    assert files == {"a": "1", "d/b": "2", "inside": "2", "z": "3"}
    assert notes == ("left out the submodule module",)


def test_of_a_folder_what_its_links_lead_to_comes_too_and_nothing_else(work, commit, fetch):
    commit(s__x="1", LICENSE="2", shared__deep__m="3", other="4", t__y="5")
    (work / "s/licence").symlink_to("../LICENSE")
    (work / "s/lib").symlink_to("../through/deep")
    (work / "through").symlink_to("shared")
    (work / "shared/deep/more").symlink_to("../../t")
    (work / "s/everything").symlink_to("..")
    (work / "s/loop").symlink_to("loop")
    commit()
    _, files, notes = fetch("#subdirectory=s")
    written = {name for name in files if not name.startswith(("s/everything", "s/lib/", "through"))}
    assert written == {"s/x", "s/licence", "LICENSE", "shared/deep/m", "t/y"}
    assert files["s/licence"] == "2"
    assert notes == ()


def tree(work: Path, *entries: tuple[str, str, bytes]) -> str:
    """Write a tree that git itself would not, and return its name."""
    data = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(item) for mode, item, name in entries
    )
    line = ("hash-object", "-t", "tree", "-w", "--stdin", "--literally")
    return git(work, *line, stdin=data)


@pytest.mark.parametrize("name", [b"..", b"a\\b", b"a\nb", b"C:x"])
def test_a_name_that_leads_out_is_refused(work, commit, fetch, name, tmp_path):
    commit(a="1")
    blob = git(work, "hash-object", "-w", "--stdin", stdin=b"evil")
    inner = tree(work, ("100644", blob, b"evil"))
    top = tree(work, ("40000", inner, name))
    created = git(work, "commit-tree", top, "-m", "evil")
    git(work, "update-ref", "refs/heads/main", created)
    with pytest.raises(SatchelError):
        fetch(url=f"git+file://{work}")
    assert not [path for path in tmp_path.rglob("evil") if ".git" not in path.parts]


def test_nothing_is_written_through_a_link(work, commit, fetch, tmp_path):
    commit(a="1")
    outside = tmp_path / "outside"
    outside.mkdir()
    blob = git(work, "hash-object", "-w", "--stdin", stdin=b"evil")
    link = git(work, "hash-object", "-w", "--stdin", stdin=b"d")
    inner = tree(work, ("100644", blob, b"evil"))
    top = tree(work, ("120000", link, b"x"), ("40000", inner, b"x"), ("40000", inner, b"d"))
    created = git(work, "commit-tree", top, "-m", "evil")
    git(work, "update-ref", "refs/heads/main", created)
    with pytest.raises(SatchelError, match="twice"):
        fetch(url=f"git+file://{work}")


def test_without_git_the_error_says_so(commit, fetch, monkeypatch):
    commit(a="1")
    fetch()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SatchelError, match=r"cannot run git.*install git"):
        fetch()
