"""All files of a skill are compared, whatever of it is served."""

import os

import pytest

from satchel.files.file_reader import digest_of
from satchel.trust import runnable_files as module
from satchel.trust.runnable_files import link_digest, runnable_files

DEEP = "/".join(["deep"] * 30)
X = digest_of(b"x")


@pytest.fixture
def skill(tmp_path, write_files):
    return write_files(tmp_path / "project/skill", {"scripts/run.py": "x"})


def read(skill, **options):
    return runnable_files(str(skill), str(skill.parent), **options)


def digests(skill):
    files, problem = read(skill)
    assert problem is None
    return {name: file.digest for name, file in files.items()}


@pytest.mark.parametrize(
    "name",
    [
        "scripts/json/pyvenv.cfg",
        "node_modules/a.js",
        ".venv/bin/x",
        "a.env/x.py",
        ".env",
        ".hg/x",
        "..x/y",
        DEEP,
        os.fsdecode(b"scripts/lib\xff"),
        "scripts/__pycache__/other.cpython-311.pyc",
        "guide.md",
    ],
)
def test_every_file_counts(skill, write_files, name):
    write_files(skill, {name: "x"})
    assert digests(skill) == {"scripts/run.py": X, name: X}


@pytest.mark.parametrize("name", [".git/index", ".git", "scripts/__pycache__/run.cpython-311.pyc"])
def test_git_and_what_python_compiles_again_do_not(skill, write_files, name):
    write_files(skill, {name: "x"})
    assert digests(skill) == {"scripts/run.py": X}


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("../n.env", "scripts/a"),
        ("../../other.py", "scripts/a"),
        ("../.git/x", "scripts/a"),
        ("../lib", "scripts/a/b.py"),
        ("../../folder", "scripts/a/b.py"),
    ],
)
def test_a_link_inside_the_project_counts_by_its_text_and_what_is_there(
    skill, write_files, target, name
):
    texts = {"skill/n.env", "other.py", "skill/.git/x", "skill/lib/b.py", "folder/b.py"}
    write_files(skill.parent, dict.fromkeys(texts, "x"))
    before = digests(skill)
    (skill / "scripts/a").symlink_to(target)
    text = digest_of(f"link to {target}".encode())
    assert digests(skill) == {**before, "scripts/a/": f"link:{text}", name: X}


@pytest.mark.parametrize("target", ["../../../out.py", "missing", ".."])
def test_a_link_that_is_not_followed_counts_by_its_text(skill, tmp_path, target):
    (tmp_path / "out.py").write_text("x")
    (skill / "scripts/a").symlink_to(target)
    text = digest_of(f"link to {target}".encode())
    assert digests(skill) == {"scripts/run.py": X, "scripts/a": f"link:{text}"}


@pytest.mark.parametrize(
    "target", ["/proc/self/cwd/run.py", "/dev/fd/3", "a", "../../../in/skill/b"]
)
def test_a_link_that_leads_elsewhere_for_another_program_is_a_problem(skill, target):
    (skill.parent.parent / "in").symlink_to(skill.parent)
    (skill / "b").write_text("x")
    (skill / "scripts/a").symlink_to(target)
    assert "is a link" in read(skill)[1].text


def test_a_compiled_file_behind_a_link_counts(skill, write_files):
    write_files(skill, {"helper.py": "x", "__pycache__/helper.cpython-311.pyc": "1"})
    (skill / "scripts/lib").symlink_to("../__pycache__")
    (skill / "scripts/mod.pyc").symlink_to("../__pycache__/helper.cpython-311.pyc")
    before = digests(skill)
    assert "__pycache__/helper.cpython-311.pyc" not in before
    (skill / "__pycache__/helper.cpython-311.pyc").write_text("2")
    changed = {name for name, digest in digests(skill).items() if before[name] != digest}
    assert changed == {"scripts/lib/helper.cpython-311.pyc", "scripts/mod.pyc"}


def test_texts_are_shown_and_those_of_env_files_never(skill, write_files):
    write_files(skill, {"n.env": "secret", "a.env/x": "secret"})
    for name, target in {"b": "../n.env", "c": "../a.env", "d": "../../skill/n.env"}.items():
        (skill / "scripts" / name).symlink_to(target)
    files, problem = read(skill, with_text=True)
    assert problem is None
    assert files["scripts/run.py"].text == "x"
    assert "secret" not in str(files)
    assert {name: it.digest for name, it in files.items()} == digests(skill)


def test_folders_that_are_too_deep_are_a_problem(skill):
    (skill / "/".join(["d"] * 600)).mkdir(parents=True)
    assert read(skill)[1].text == "its folders are too deep"


@pytest.mark.parametrize("are_folders", [False, True])
def test_too_many_files_or_folders_are_a_problem(skill, monkeypatch, are_folders):
    monkeypatch.setattr(module, "_MOST_FILES", 8)
    for number in range(9):
        path = skill / str(number)
        path.mkdir() if are_folders else path.touch()
    assert read(skill)[1].text == "it has more than 8 files and folders"


def test_many_paths_through_links_are_a_problem(skill, monkeypatch):
    monkeypatch.setattr(module, "_MOST_FILES", 100)
    for one in range(8):
        (skill / str(one)).mkdir()
        for other in range(8):
            (skill / str(one) / str(other)).symlink_to(f"../{other}")
    assert "more than 100" in read(skill)[1].text


def test_a_file_that_cannot_be_read_is_a_problem_and_its_name_is_shown(skill):
    os.mkfifo(skill / "scripts/pipe")
    text = "scripts/pipe cannot be read: it is not a regular file"
    assert read(skill)[1].text == text
    assert read(skill, with_text=True)[1].text == text
