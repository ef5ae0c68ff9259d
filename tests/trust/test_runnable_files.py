"""All files of a skill are compared, whatever of it is served."""

import os
from socket import AF_UNIX, socket

import pytest

from satchel.files.file_reader import digest_of
from satchel.trust import runnable_files as module
from satchel.trust.runnable_files import CodeReader, link_digest, runnable_files

DEEP = "/".join(["deep"] * 30)
X = digest_of(b"x")


@pytest.fixture
def skill(tmp_path, write_files):
    return write_files(tmp_path / "project/skill", {"scripts/run.py": "x"})


def read(skill, **options):
    options = {"with_skill_texts": True, **options}
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
        ("../n.env", "n.env"),
        ("../.git/x", ".git/x"),
        ("../lib", "lib/b.py"),
        ("../../folder", "../folder/b.py"),
    ],
)
def test_a_link_inside_the_project_counts_by_its_text_and_what_is_there(
    skill, write_files, target, name
):
    texts = {"skill/n.env", "skill/.git/x", "skill/lib/b.py", "folder/b.py"}
    write_files(skill.parent, dict.fromkeys(texts, "x"))
    before = digests(skill)
    (skill / "scripts/a").symlink_to(target)
    assert digests(skill) == {**before, "scripts/a": link_digest(target), name: X}


def test_a_link_to_a_file_outside_counts_with_that_file(skill, write_files):
    write_files(skill.parent, {"shared/run": "x", "shared/json.py": "x"})
    (skill / "scripts/go").symlink_to("../../shared/run")
    assert digests(skill).keys() == {"scripts/run.py", "scripts/go", "../shared/run"}


def test_links_that_lead_through_very_many_folders_are_a_problem(skill, monkeypatch):
    monkeypatch.setattr(module, "_MOST_STEPS", 50)
    (skill / "a").symlink_to("scripts/../" * 30 + "scripts/run.py")
    assert "too many folders" in read(skill)[1].text


@pytest.mark.parametrize(
    ("declared", "counts"),
    [
        ("sh .git/x", True),
        ("git -C.git", True),
        ("--dir=.GIT", True),
        ("https://h.example/a.git", False),
        (".github/x .gitignore", False),
    ],
)
def test_git_counts_if_its_folder_is_declared(skill, write_files, declared, counts):
    write_files(skill, {".git/x": "x"})
    assert (".git/x" in read(skill, declared=declared)[0]) is counts


def test_markdown_of_a_skill_counts_in_scripts_and_behind_links(skill, write_files):
    names = {"SKILL.md", "a.md", "lib/a.md", "docs/a.md", "more/scripts/a.md"}
    write_files(skill, {**dict.fromkeys(names, "x"), "scripts/deep/a.md": "x"})
    (skill / "b.md").symlink_to("a.md")
    (skill / "c.sh").symlink_to("a.md")
    (skill / "scripts/docs").symlink_to("../docs")
    files, _ = read(skill, with_skill_texts=False)
    markdown = {name for name in files if name.endswith(".md")}
    assert markdown == {"a.md", "b.md", "docs/a.md", "more/scripts/a.md", "scripts/deep/a.md"}


def test_a_name_that_is_declared_counts_as_any_system_finds_it(skill, write_files):
    write_files(skill, {"SKILL.md": "x", "r\u0065\u0301.md": "x", ".git/x": "x"})
    files, _ = read(skill, with_skill_texts=False, declared="sh SKILLS/X/R\u00c9.MD .GIT/x")
    assert files.keys() == {"scripts/run.py", "r\u0065\u0301.md", ".git/x"}


@pytest.mark.parametrize("target", ["../../../out.py", "missing", ".."])
def test_a_link_that_is_not_followed_counts_by_its_text(skill, tmp_path, target):
    (tmp_path / "out.py").write_text("x")
    (skill / "scripts/a").symlink_to(target)
    assert digests(skill) == {"scripts/run.py": X, "scripts/a": link_digest(target)}


@pytest.mark.parametrize(
    "target", ["/proc/self/cwd/run.py", "/dev/fd/3", "a", "../../../in/skill/b"]
)
def test_a_link_that_leads_elsewhere_for_another_program_is_a_problem(skill, target):
    (skill.parent.parent / "in").symlink_to(skill.parent)
    (skill / "b").write_text("x")
    (skill / "scripts/a").symlink_to(target)
    assert "is a link" in read(skill)[1].text


@pytest.mark.parametrize("target", ["../__pycache__", "../__pycache__/a.cpython-311.pyc"])
def test_all_compiled_files_count_where_a_link_leads(skill, write_files, target):
    caches = {f"__pycache__/{name}.cpython-311.pyc" for name in "ab"}
    write_files(skill, {"a.py": "x", "b.py": "x", **dict.fromkeys(caches, "x")})
    assert not caches & digests(skill).keys()
    (skill / "scripts/lib").symlink_to(target)
    assert caches <= digests(skill).keys()


def test_a_compiled_file_that_could_be_imported_without_its_source_counts(skill, write_files):
    write_files(skill, {"a.py": "x", "__pycache__/a.pyc": "x", "b.cpython-311.pyc": "x"})
    assert {"__pycache__/a.pyc", "b.cpython-311.pyc"} <= digests(skill).keys()


def test_texts_are_shown_and_those_of_env_files_never(skill, write_files):
    write_files(skill, {"n.env": "secret", "a.env/x": "secret"})
    for name, target in {"b": "../n.env", "c": "../a.env", "d": "../../skill/n.env"}.items():
        (skill / "scripts" / name).symlink_to(target)
    files, problem = read(skill, reader=CodeReader(with_text=True))
    assert problem is None
    assert files["scripts/run.py"].text == "x"
    assert "secret" not in str(files)
    assert {name: it.digest for name, it in files.items()} == digests(skill)


def test_folders_that_are_too_deep_are_a_problem(skill, monkeypatch):
    monkeypatch.chdir(skill)
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    assert "cannot be listed: File name too long" in read(skill)[1].text


def test_files_that_are_too_large_together_are_a_problem(skill, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 10)
    (skill / "a").write_bytes(bytes(5))
    (skill / "b").write_bytes(bytes(5))
    assert "all together have more than" in read(skill)[1].text


@pytest.mark.parametrize("are_folders", [False, True])
def test_too_many_files_or_folders_are_a_problem(skill, monkeypatch, are_folders):
    monkeypatch.setattr(module, "_MOST_FILES", 8)
    for number in range(9):
        path = skill / str(number)
        path.mkdir() if are_folders else path.touch()
    assert read(skill)[1].text == "it has more than 8 files and folders"


def test_many_paths_through_links_are_read_once(skill):
    for one in range(8):
        (skill / str(one)).mkdir()
        for other in range(8):
            (skill / str(one) / str(other)).symlink_to(f"../{other}")
    assert len(digests(skill)) == 65


def test_a_file_that_cannot_be_read_is_a_problem_and_its_name_is_shown(skill):
    os.mkfifo(skill / "scripts/pipe")
    text = "scripts/pipe cannot be read: it is not a regular file"
    assert read(skill)[1].text == text
    assert read(skill, reader=CodeReader(with_text=True))[1].text == text


@pytest.mark.parametrize("name", ["conf.d/", "hooks/deep/", ""])
def test_a_new_skill_file_makes_no_folder_of_a_program_a_skill(tmp_path, write_files, name):
    new = {f"{name}old.md": "x", f"{name}SKILL.md": "x"}
    folder = write_files(tmp_path / "project", {"run.sh": "x", **new})
    files, _ = runnable_files(str(folder), str(folder), is_skill=False)
    assert new.keys() <= files.keys()


def test_markdown_of_the_skills_of_a_plugin_is_text(tmp_path, write_files):
    texts = {"skills/pdf/SKILL.md": "x", "skills/pdf/a/b.md": "x", "skills/README.md": "x"}
    folder = write_files(tmp_path / "project/plugin", {"run.sh": "x", **texts})
    files, _ = runnable_files(str(folder), str(tmp_path / "project"), is_skill=False)
    assert set(files) == {"run.sh", "skills/README.md"}


def test_units_with_one_reader_share_what_was_read(tmp_path, write_files):
    project = write_files(tmp_path / "project", {"data/big.txt": "x" * 1000})
    reader = CodeReader(with_text=True)
    read_files = []
    for name in "ab":
        skill = write_files(project / name, {"scripts/run.py": name})
        (skill / "data").symlink_to("../data")
        files, problem = runnable_files(str(skill), str(project), reader=reader)
        assert problem is None
        read_files.append(files["../data/big.txt"])
    assert read_files[0] is read_files[1]


@pytest.mark.parametrize(
    ("limit", "text"),
    [(("_MOST_FILES", 5), "the project has too many files"),
     (("_MOST_STEPS", 3), "all links of the project"),
     (("_MOST_BYTES", 9), "all together have more")],
)  # fmt: skip
def test_all_units_together_have_limits(tmp_path, write_files, monkeypatch, limit, text):
    monkeypatch.setattr(module, *limit)
    project, reader = tmp_path / "project", CodeReader()
    problems = []
    for name in "abcdefghijkl":
        skill = write_files(project / name, {"scripts/run.py": name, "x": name})
        (skill / "link").symlink_to("x")
        problems.append(runnable_files(str(skill), str(project), reader=reader)[1])
    assert problems[0] is None
    assert text in problems[-1].text


def test_a_file_that_is_too_large_is_a_problem_of_its_unit_only(tmp_path, write_files, monkeypatch):
    monkeypatch.setattr(module, "_MOST_BYTES", 9)
    reader = CodeReader()
    large = write_files(tmp_path / "large", {"x": "x" * 10})
    small = write_files(tmp_path / "small", {"x": "x"})
    assert runnable_files(str(large), str(large), reader=reader)[1] is not None
    assert runnable_files(str(small), str(small), reader=reader)[1] is None


def test_a_part_of_a_long_path_counts_more(tmp_path, write_files, monkeypatch):
    monkeypatch.setattr(module, "_MOST_STEPS", 50)
    skill = write_files(tmp_path / "skill", {f"{DEEP}/{DEEP}/{DEEP}/x": "x"})
    (skill / f"{DEEP}/{DEEP}/{DEEP}/link").symlink_to("./" * 5 + "x")
    assert runnable_files(str(skill), str(skill))[1] is None
    (skill / f"{DEEP}/{DEEP}/{DEEP}/more").symlink_to("../deep/" * 10 + "x")
    assert "too many folders" in runnable_files(str(skill), str(skill))[1].text


@pytest.mark.parametrize("text", ["make -sf.git/x.mk", "tar -xvf.git/x", "sh -euc.git/x"])
def test_git_behind_joined_options_counts(tmp_path, write_files, text):
    folder = write_files(tmp_path, {".git/x": "x"})
    assert ".git/x" in runnable_files(str(folder), str(folder), declared=text)[0]


def test_markdown_behind_a_link_is_text_if_the_link_is_named_so(tmp_path, write_files):
    project = write_files(tmp_path / "project", {"docs/a.md": "x", "docs/run.md": "x"})
    skill = write_files(project / "skill", {"SKILL.md": "x", "scripts/run.py": "x"})
    (skill / "a.md").symlink_to("../docs/a.md")
    (skill / "run.sh").symlink_to("../docs/run.md")
    (skill / "scripts/b.md").symlink_to("../../docs/b.md")
    (project / "docs/b.md").write_text("x")
    files, problem = runnable_files(str(skill), str(project))
    assert problem is None
    own = {"a.md", "run.sh", "scripts/b.md", "scripts/run.py"}
    assert set(files) == {*own, "../docs/run.md", "../docs/b.md"}
    assert "../docs/a.md" in runnable_files(str(skill), str(project), declared="a.md")[0]


def test_a_socket_cannot_run_and_a_pipe_can(skill):
    with socket(AF_UNIX) as listening:
        listening.bind(os.path.relpath(skill / "s"))
        assert set(digests(skill)) == {"scripts/run.py"}
    os.mkfifo(skill / "pipe")
    assert "pipe cannot be read" in read(skill)[1].text
