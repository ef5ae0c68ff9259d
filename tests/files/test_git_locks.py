import os

from satchel.files.git_locks import git_locks


def test_the_lock_of_a_worktree_is_found_where_its_git_file_points(tmp_path):
    root = tmp_path / "worktree" / "skills"
    root.mkdir(parents=True)
    (tmp_path / "main.git").mkdir()
    (root.parent / ".git").write_text("gitdir: ../main.git\n")
    (lock,) = git_locks((str(root),))
    assert os.path.realpath(lock) == str(tmp_path / "main.git" / "index.lock")
    (root.parent / ".git").unlink()
    os.mkfifo(root.parent / ".git")
    assert git_locks((str(root),)) == set()
