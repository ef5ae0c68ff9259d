import errno
import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.files.open_folder import OpenFolder
from satchel.files.watched_roots import PathAliases
from satchel.settings import Limits
from satchel.sources.search_roots import RootKind, search_root
from satchel.sources.skill_scan import scan_skills
from satchel.sources.skill_walk import SkillWalk

GOOD = "---\nname: {}\ndescription: Does a thing.\n---\nDo it.\n"


def odd(scan):
    return [item.code for item in scan.diagnostics]


def problems(scan):
    return [item.code for result in scan.findings.values() for item in result.diagnostics]


# ---- what is found ------------------------------------------------------------------------


def test_each_folder_with_a_skill_file_is_a_skill(tmp_path, scan, write_skill):
    write_skill(tmp_path, "b")
    write_skill(tmp_path / "area", "a")
    findings = scan(tmp_path).findings
    assert list(findings) == ["area/a", "b"]
    assert [item.manifest.name for item in findings.values()] == ["a", "b"]
    assert findings["area/a"].path == str(tmp_path / "area/a")
    assert findings["area/a"].folder_name == "a"
    assert findings["b"].path == str(tmp_path / "b")


def test_a_place_can_be_the_skill_itself(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path, "a")
    (finding,) = scan(folder).findings.values()
    assert (finding.key, finding.path, finding.folder_name) == ("", str(folder), "a")


def test_skills_inside_a_skill_are_its_files_and_no_skills(tmp_path, scan, write_skill):
    write_skill(write_skill(tmp_path, "a") / "examples", "inner")
    (finding,) = scan(tmp_path).findings.values()
    assert [file.name for file in finding.files] == ["SKILL.md", "examples/inner/SKILL.md"]
    assert finding.digest == finding.folder.digest


def test_folders_of_tools_are_not_looked_into(tmp_path, scan, write_skill):
    for name in (".git", "node_modules", ".venv", "__pycache__"):
        write_skill(tmp_path / name, "a")
    write_skill(tmp_path / ".hidden", "b")
    assert list(scan(tmp_path).findings) == [".hidden/b"]


def test_a_root_may_itself_lie_in_such_a_folder(tmp_path, scan, write_skill):
    write_skill(tmp_path / "node_modules/pack/skills", "a")
    assert list(scan(tmp_path / "node_modules/pack/skills").findings) == ["a"]


def test_skills_are_found_six_folders_deep_and_no_deeper(tmp_path, scan, write_skill):
    write_skill(tmp_path / "1/2/3/4/5", "six")
    write_skill(tmp_path / "a/2/3/4/5/6", "seven")
    result = scan(tmp_path)
    assert list(result.findings) == ["1/2/3/4/5/six"]
    assert odd(result) == ["source-too-deep"]
    assert "6 levels" in result.diagnostics[0].message


def test_more_folders_than_the_limit_are_left_out_with_a_word(tmp_path, scan, write_skill):
    for name in "abcd":
        write_skill(tmp_path, name)
    result = scan(tmp_path, find_folders=3)
    assert (list(result.findings), odd(result)) == (list("abc"), ["source-too-many"])
    assert "find_folders" in result.diagnostics[0].message
    assert odd(scan(tmp_path, find_folders=4)) == []


def test_a_missing_place_is_reported_unless_it_may_be_missing(tmp_path, scan, limits):
    from satchel.sources.search_roots import Precedence, RootKind, SearchRoot

    assert odd(scan(tmp_path / "absent")) == ["source-missing"]
    (tmp_path / "file").write_text("")
    (problem,) = scan(tmp_path / "file").diagnostics
    assert problem.message == "is not a folder"
    optional = SearchRoot(
        path=str(tmp_path / "absent"),
        holds=RootKind.SKILLS,
        scope=Precedence.USER,
        source="~/x",
        optional=True,
    )
    assert odd(scan_skills(optional, limits)) == []


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_a_file_that_is_nearly_named_right_is_reported(tmp_path, scan, name):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_text(GOOD.format("a"))
    result = scan(tmp_path)
    assert (dict(result.findings), odd(result)) == ({}, ["skill-file-case"])
    assert result.diagnostics[0].where.path == str(tmp_path / "a" / name)


# ---- what is in the way -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("folder", "is a folder"),
        ("fifo", "is not a regular file; it is never read"),
        ("zero", "is a link to '/dev/zero', outside the folder you named; it is not followed"),
        (
            "environ",
            "is a link to '/proc/self/environ', outside the folder you named; it is not followed",
        ),
        ("dangling", "is a link to 'nowhere', which does not exist"),
    ],
)
def test_a_skill_file_that_is_no_file_is_reported_and_never_read(
    tmp_path, scan, write_skill, kind, why
):
    path = tmp_path / "bad/SKILL.md"
    path.parent.mkdir()
    {
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "environ": lambda: path.symlink_to("/proc/self/environ"),
        "dangling": lambda: path.symlink_to("nowhere"),
    }[kind]()
    write_skill(tmp_path, "good")
    caught = []
    thread = threading.Thread(target=lambda: caught.append(scan(tmp_path)), daemon=True)
    thread.start()
    thread.join(60)
    (result,) = caught
    (problem,) = result.findings["bad"].diagnostics
    assert problem in result.findings["bad"].problems
    assert [it.code for it in result.findings["bad"].problems if it.message == why] == [
        problem.code
    ]
    assert (problem.code, problem.message) == ("skill-unreadable", why)
    assert result.findings["bad"].manifest is None
    assert result.findings["good"].manifest is not None


def test_a_skill_file_that_cannot_be_used_says_why(tmp_path, scan, write_skill):
    write_skill(tmp_path, "a", text="no frontmatter")
    result = scan(tmp_path)
    assert problems(result) == ["skill-no-frontmatter"]


def test_a_skill_file_is_judged_by_its_own_limit(tmp_path, scan, write_skill):
    write_skill(tmp_path, "a", body="x" * 1_000)
    assert problems(scan(tmp_path, resource=10)) == []
    assert problems(scan(tmp_path, resource=10, skill_file=500)) == ["skill-too-large"]


def test_more_files_than_the_limit_cost_the_skill_nothing_else(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path, "a")
    for at in range(5):
        (folder / f"file-{at}").write_text("")
    (finding,) = scan(tmp_path, files_per_skill=3).findings.values()
    assert finding.manifest is not None
    assert [item.code for item in finding.folder.diagnostics] == ["source-too-many"]


def test_a_name_that_is_not_utf8_is_reported(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path, "a")
    os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")
    (folder / os.fsdecode(b"file\xff")).write_text("")
    result = scan(tmp_path)
    assert odd(result) == ["source-name-not-utf8"]
    assert r"bad\\xff" in result.diagnostics[0].message
    assert [file.name for file in result.findings["a"].files] == ["SKILL.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_listed_is_reported(tmp_path, scan, write_skill):
    write_skill(tmp_path, "good")
    (tmp_path / "closed").mkdir(mode=0)
    result = scan(tmp_path)
    assert (list(result.findings), odd(result)) == (["good"], ["source-unreadable"])


# ---- links --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["x/a", "x"])
def test_a_skill_that_is_also_reached_by_a_link_is_served_from_its_own_folder(
    tmp_path, scan, write_skill, target
):
    write_skill(tmp_path / "x", "a")
    link = tmp_path / "link"
    link.symlink_to(target)
    result = scan(tmp_path)
    assert (list(result.findings), odd(result)) == (["x/a"], [])
    assert result.links == {(str(link), str((tmp_path / target).resolve()))}
    assert list(scan(tmp_path, result, {str(link)}).findings) == ["x/a"]


def test_a_folder_link_to_a_skipped_folder_inside_is_followed(tmp_path, scan, write_skill):
    write_skill(tmp_path / "node_modules", "a")
    (tmp_path / "link").symlink_to("node_modules/a")
    result = scan(tmp_path)
    assert list(result.findings) == ["link"]
    assert result.findings["link"].manifest.name == "a"


def test_a_folder_link_to_no_skill_that_leaves_the_place_is_not_followed(
    tmp_path, scan, write_skill
):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to(write_skill(tmp_path / "area", "a").parent)
    result = scan(tmp_path / "root")
    assert (dict(result.findings), odd(result)) == ({}, ["source-link-outside"])


def test_loops_of_links_end(tmp_path, scan, write_skill):
    write_skill(tmp_path / "x", "a")
    (tmp_path / "x/up").symlink_to("..")
    (tmp_path / "y").mkdir()
    (tmp_path / "y/x").symlink_to("../x")
    (tmp_path / "self").symlink_to("self")
    result = scan(tmp_path)
    assert list(result.findings) == ["x/a"]
    # A link to itself leads to nothing.
    assert set(odd(result)) == {"source-link-loop", "source-link-broken"}


def test_a_link_to_nothing_is_reported_with_what_it_says(tmp_path, scan):
    (tmp_path / "x").symlink_to("/nowhere/at all")
    ((problem,),) = scan(tmp_path).diagnostics_by_key.values()
    assert problem.code == "source-link-broken"
    assert problem.message == "is a link to '/nowhere/at all', which does not exist"


def test_a_link_to_itself_is_reported_as_that(tmp_path, scan):
    (tmp_path / "x").symlink_to("x")
    ((problem,),) = scan(tmp_path).diagnostics_by_key.values()
    assert problem.message == "is a link to 'x', which leads back to itself"


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (["ios"], ("has a skill inside; the model reads it only as files of this one", "a/ios")),
        (["parts/b", "parts/c"], ("has 2 skills inside; the model reads them only", "a/parts")),
    ],
)
def test_skills_inside_a_skill_are_reported_once_with_the_folder_to_name(
    tmp_path, scan, write_skill, inner, message
):
    start, holder = message
    outer = write_skill(tmp_path, "a")
    for name in inner:
        write_skill(outer, name)
    findings = scan(tmp_path).findings
    (problem,) = findings["a"].problems
    assert list(findings) == ["a"]
    assert problem.code == "skill-inside-skill"
    assert problem.message.startswith(start)
    assert str(tmp_path / holder) in problem.fix
    assert len(scan(tmp_path / holder).findings) == len(inner)


def test_the_folders_to_name_together_bring_every_skill_inside(tmp_path, scan, write_skill):
    outer = write_skill(tmp_path, "a")
    inner = ["debugging", "setup", "scaling", "scaling/shards", "parts/b", "parts/c"]
    for name in inner:
        write_skill(outer, name)
    (problem,) = scan(tmp_path).findings["a"].problems
    folders = [
        outer / name for name in ("debugging", "parts", "scaling", "scaling/shards", "setup")
    ]
    assert f"name each of {', '.join(map(str, folders))} as" in problem.fix
    served = {item.path for folder in folders for item in scan(folder).findings.values()}
    assert served == {str(outer / name) for name in inner}


def test_a_skill_that_lies_directly_among_many_others_is_to_move(tmp_path, scan, write_skill):
    outer = write_skill(tmp_path, "skills")
    for number in range(20):
        write_skill(outer, f"inner-{number}")
    (problem,) = scan(tmp_path).findings["skills"].problems
    assert "move SKILL.md and its own files into a new folder beside them" in problem.fix
    assert len(problem.fix) < 200


def test_a_root_that_is_a_link_is_searched(tmp_path, scan, write_skill):
    write_skill(tmp_path / "real", "a")
    (tmp_path / "root").symlink_to("real")
    (finding,) = scan(tmp_path / "root").findings.values()
    assert finding.path == str(tmp_path / "root/a")


@pytest.mark.parametrize("inside", [".", "area"])
def test_mounted_configuration_is_read_through_its_links_once(tmp_path, scan, inside):
    """
    Kubernetes mounts `..2026_01/`, `..data -> ..2026_01`, and a link for each name below it.
    """
    root = tmp_path / inside
    (root / "..2026_01/a").mkdir(parents=True)
    (root / "..2026_01/a/SKILL.md").write_text(GOOD.format("a"))
    (root / "..data").symlink_to("..2026_01")
    (root / "a").symlink_to("..data/a")
    first = scan(tmp_path)
    assert [finding.manifest.name for finding in first.findings.values()] == ["a"]

    (root / "..2026_02/a").mkdir(parents=True)
    (root / "..2026_02/a/SKILL.md").write_text(GOOD.format("a").replace("thing", "new thing"))
    (root / "..new").symlink_to("..2026_02")
    (root / "..new").replace(root / "..data")
    second = scan(tmp_path, first, {str(root / "..data")})
    (finding,) = second.findings.values()
    assert finding.manifest.description == "Does a new thing."
    assert first.links != second.links


def test_a_skill_that_is_mounted_file_by_file_holds_each_file_once(tmp_path, scan):
    folder = tmp_path / "a"
    (folder / "..2026_01").mkdir(parents=True)
    (folder / "..2026_01/SKILL.md").write_text(GOOD.format("a"))
    (folder / "..data").symlink_to("..2026_01")
    (folder / "SKILL.md").symlink_to("..data/SKILL.md")
    result = scan(tmp_path)
    (finding,) = result.findings.values()
    assert [file.name for file in finding.files] == ["SKILL.md"]
    assert [link for link, _ in result.links] == [str(folder / "SKILL.md")]


# ---- looking again ------------------------------------------------------------------------


def test_a_skill_that_did_not_change_is_neither_read_nor_judged_again(
    tmp_path, scan, write_skill, later, reads
):
    write_skill(tmp_path, "a")
    later(3)
    first = scan(tmp_path)
    second = scan(tmp_path, first)
    assert reads == ["SKILL.md"]
    assert second.findings["a"] is first.findings["a"]


def test_another_file_of_a_skill_is_no_reason_to_judge_its_text_again(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path, "a")
    first = scan(tmp_path)
    (folder / "more.txt").write_text("x")
    second = scan(tmp_path, first, {str(folder / "more.txt")})
    assert second.findings["a"].manifest is first.findings["a"].manifest
    assert second.findings["a"].digest != first.findings["a"].digest


def test_only_what_is_dirty_is_looked_at(tmp_path, scan, write_skill, reads):
    for name in ("a", "b"):
        write_skill(tmp_path, name)
    first = scan(tmp_path)
    reads.clear()
    scan(tmp_path, first, {str(tmp_path / "b/SKILL.md")})
    assert reads == ["SKILL.md"]


def test_what_is_dirty_elsewhere_is_none_of_this_place(tmp_path, scan, write_skill):
    write_skill(tmp_path / "root", "a")
    first = scan(tmp_path / "root")
    assert scan(tmp_path / "root", first, {str(tmp_path / "root-2/a"), "/x"}) is first


@pytest.mark.parametrize("above", [".", ".."])
def test_a_dirty_folder_above_means_everything(tmp_path, scan, write_skill, above):
    root = tmp_path / "root"
    write_skill(root, "a")
    first = scan(root)
    write_skill(root, "b")
    second = scan(root, first, {os.path.normpath(root / above)})
    assert list(second.findings) == ["a", "b"]


def test_as_many_folders_as_the_limit_are_not_cut(tmp_path, scan, write_skill):
    for name in "abc":
        write_skill(tmp_path, name)
    assert not scan(tmp_path, find_folders=3).cut
    assert scan(tmp_path, find_folders=2).cut


def test_a_scan_that_was_cut_short_is_taken_again(tmp_path, scan, write_skill):
    for name in "abc":
        write_skill(tmp_path, name)
    first = scan(tmp_path, find_folders=2)
    shutil.rmtree(tmp_path / "a")
    second = scan(tmp_path, first, {str(tmp_path / "a")}, find_folders=2)
    assert (list(second.findings), odd(second)) == (["b", "c"], [])


def test_a_place_that_grows_beyond_the_limit_is_cut_like_a_fresh_one(tmp_path, scan, write_skill):
    write_skill(tmp_path, "b")
    first = scan(tmp_path, find_folders=1)
    write_skill(tmp_path, "a")
    second = scan(tmp_path, first, {str(tmp_path / "a")}, find_folders=1)
    assert seen(second) == seen(scan(tmp_path, find_folders=1))
    assert odd(second) == ["source-too-many"]


def test_an_unreadable_skill_that_is_unreadable_in_another_way_says_so(tmp_path, scan):
    path = tmp_path / "a/SKILL.md"
    path.parent.mkdir()
    os.mkfifo(path)
    first = scan(tmp_path)
    path.unlink()
    path.mkdir()
    assert seen(scan(tmp_path, first, {str(path)})) == seen(scan(tmp_path))


def test_a_change_behind_a_link_is_a_change_of_the_skill(tmp_path, scan):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/text.md").write_text(GOOD.format("a"))
    (tmp_path / "a").mkdir()
    (tmp_path / "a/SKILL.md").symlink_to("../shared/text.md")
    first = scan(tmp_path)
    (tmp_path / "shared/text.md").write_text("broken")
    second = scan(tmp_path, first, {str(tmp_path / "shared/text.md")})
    assert problems(second) == ["skill-no-frontmatter"]


def test_what_a_dangling_link_was_waiting_for_is_found(tmp_path, scan, write_skill):
    (tmp_path / "link").symlink_to("..later")
    first = scan(tmp_path)
    write_skill(tmp_path, "..later")
    second = scan(tmp_path, first, {str(tmp_path / "..later")})
    assert list(second.findings) == ["link"]


# ---- a partial look equals a whole one ----------------------------------------------------

NAMES = ["a", "b", "SKILL.md", "skill.md", "node_modules", "..data"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, st.sampled_from(["good", "broken", ""])),
    st.tuples(st.just("skill"), PATHS, st.sampled_from(["good", "other", "broken"])),
    st.tuples(st.just("folder"), PATHS, st.just("")),
    st.tuples(st.just("fifo"), PATHS, st.just("")),
    st.tuples(st.just("link"), PATHS, PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("remove"), PATHS, st.just("")),
)
TEXTS = {"good": GOOD.format("a"), "other": GOOD.format("b"), "broken": "---\nname: [", "": ""}


def take(root: Path, step) -> set[str]:
    """Change the tree, and return the paths that an honest watcher would tell of."""
    kind, name, detail = step
    path = root / name
    dirty = {str(path)}
    try:
        if kind == "skill":
            # Only the topmost new folder is told of: events inside it may be lost.
            top = next((part for part in reversed(path.parents) if not part.exists()), path)
            is_new = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
            written = write(path / "SKILL.md", TEXTS[detail])
            dirty = {str(top) if is_new else written}
        elif kind == "write":
            dirty.add(write(path, TEXTS[detail]))
        elif kind == "folder":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to(os.path.relpath(root / detail, path.parent))
        elif kind == "move":
            path.rename(root / detail)
            dirty.add(str(root / detail))
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError:
        pass  # Such a step cannot be taken here; that it was told of must do no harm.
    # What happens behind a link is told of by its real path alone.
    return {
        os.path.join(os.path.realpath(os.path.dirname(item)), os.path.basename(item))
        for item in dirty
    }


def write(path: Path, text: str) -> str:
    """Write a file, through a link if there is one, and return where it really is."""
    # O_NONBLOCK: a pipe without a reader is an error, not a wait.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK
    with open(os.open(path, flags, 0o644), "w") as file:
        file.write(text)
    return os.path.realpath(path)


def seen(scan):
    findings = {
        key: (finding.manifest, finding.diagnostics, finding.folder.diagnostics, finding.digest)
        for key, finding in scan.findings.items()
    }
    return findings, scan.diagnostics, scan.walked, scan.links, scan.cut


@given(
    st.lists(STEPS, max_size=8),
    st.lists(st.lists(STEPS, min_size=1, max_size=3), max_size=5),
    st.sampled_from(["no links", "links", "links, reported by all names"]),
)
def test_a_scan_of_what_is_dirty_finds_what_a_full_scan_finds(
    tmp_path_factory, scan, start, batches, linked
):
    """
    Places without links are a third of the cases: with one, most looks are whole ones.
    """

    def taken(steps):
        allowed = (step for step in steps if linked != "no links" or step[0] != "link")
        return set().union(*(take(root, step) for step in allowed))

    root = tmp_path_factory.mktemp("tree").resolve()
    limits = {"find_depth": 3, "find_folders": 6}
    try:
        taken(start)
        live = scan(root, **limits)
        for batch in batches:
            dirty = frozenset(taken(batch))
            if linked.endswith("names"):  # as a watch does
                dirty = PathAliases((str(root),), live.links).of(dirty)
            live = scan(root, live, dirty, **limits)
            assert seen(live) == seen(scan(root, **limits))
    finally:
        shutil.rmtree(root)


# ---- what is kept, and what is looked at ------------------------------------------------------


def test_the_bytes_of_a_skill_are_not_kept_beside_its_body(tmp_path, scan, write_skill):
    write_skill(tmp_path, "a")
    (finding,) = scan(tmp_path).findings.values()
    assert [file.data for file in finding.files] == [None]
    assert finding.manifest.body


def test_a_body_is_compressed_when_a_later_scan_finds_it_unchanged(tmp_path, scan, write_skill):
    write_skill(tmp_path, "a")
    first = scan(tmp_path)
    manifest = first.findings["a"].manifest
    body, kept = manifest.body, vars(manifest)["body"]
    second = scan(tmp_path, before=first)
    assert second.findings["a"] is first.findings["a"]
    assert vars(manifest)["body"] != kept
    assert manifest.body == body


def test_an_edit_of_a_skill_does_not_list_the_folder_above(tmp_path, scan, write_skill, listed):
    write_skill(tmp_path, "a")
    write_skill(tmp_path, "b")
    first = scan(tmp_path)
    listed.clear()
    file = tmp_path / "a/SKILL.md"
    file.write_text(GOOD.format("a") + "More.\n")
    second = scan(tmp_path, before=first, dirty=[str(file)])
    assert listed == [str(tmp_path / "a")]
    assert "More." in second.findings["a"].manifest.body
    assert second.findings["b"] is first.findings["b"]
    assert list(second.findings) == ["a", "b"]


def test_an_edit_beside_a_link_lists_only_the_edited_skill(tmp_path, scan, write_skill, listed):
    for name in ("root/a", "root/..b", "elsewhere"):
        write_skill(tmp_path, name)
    root = tmp_path / "root"
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "second").symlink_to("..b")
    first = scan(root)
    listed.clear()
    (root / "a/SKILL.md").write_text(GOOD.format("a") + "More.\n")
    second = scan(root, before=first, dirty=[str(root / "a/SKILL.md")])
    assert listed == [str(root / "a")]
    assert "More." in second.findings["a"].manifest.body
    (root / "..b/SKILL.md").write_text(GOOD.format("b") + "More.\n")
    third = scan(root, before=second, dirty=[str(root / "..b/SKILL.md")])
    assert "More." in third.findings["second"].manifest.body


def test_an_edit_of_a_skill_with_a_link_lists_only_the_skill(tmp_path, scan, write_skill, listed):
    for name in ("a", "own"):
        write_skill(tmp_path, name)
    (tmp_path / "aa").symlink_to("own")
    first = scan(tmp_path)
    listed.clear()
    (tmp_path / "own/SKILL.md").write_text(GOOD.format("own") + "More.\n")
    second = scan(tmp_path, before=first, dirty=[str(tmp_path / "own"), str(tmp_path / "aa")])
    assert (list(second.findings), set(listed)) == (["a", "own"], {str(tmp_path / "own")})
    assert "More." in second.findings["own"].manifest.body


def test_a_new_link_lists_only_where_it_leads(tmp_path, scan, write_skill, listed):
    for name in ("root/a", "b", "elsewhere"):
        write_skill(tmp_path, name)
    root = tmp_path / "root"
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    first = scan(root)
    listed.clear()
    (root / "b").symlink_to(tmp_path / "b")
    second = scan(root, before=first, dirty=[str(root / "b")])
    assert (list(second.findings), listed) == (["a", "linked", "b"], [str(tmp_path / "b")])


@pytest.mark.parametrize("target", ["", "other"])
def test_a_link_that_is_removed_or_leads_elsewhere_lists_only_where_it_leads(
    tmp_path, scan, write_skill, listed, target
):
    for name in ("root/a", "elsewhere", "other"):
        write_skill(tmp_path, name)
    root, link = tmp_path / "root", tmp_path / "root/linked"
    link.symlink_to(tmp_path / "elsewhere")
    first = scan(root)
    listed.clear()
    link.unlink()
    if target:
        link.symlink_to(tmp_path / target)
    second = scan(root, before=first, dirty=[str(link)])
    assert listed == ([str(tmp_path / "other")] if target else [])
    assert second.findings == scan(root).findings
    assert second.links == scan(root).links


def test_a_removed_skill_is_gone_without_a_scan_of_the_folder_above(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path, "a")
    write_skill(tmp_path, "b")
    first = scan(tmp_path)
    shutil.rmtree(folder)
    assert list(scan(tmp_path, before=first, dirty=[str(folder)]).findings) == ["b"]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_a_dirty_skill_that_cannot_be_looked_at_is_not_gone(
    tmp_path, scan, write_skill, monkeypatch, number
):
    write_skill(tmp_path, "deep/a")
    write_skill(tmp_path, "b")
    first = scan(tmp_path)
    os.utime(tmp_path / "deep/a/SKILL.md")

    def fail(_folder, name, *_how):
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(OpenFolder, "enter", fail)
    dirty = {str(tmp_path / "deep/a/SKILL.md")}
    second = scan(tmp_path, first, dirty)
    assert sorted(second.findings) == ["b", "deep/a"]
    assert odd(second) == ["source-unreadable"]


def test_a_skill_that_became_a_folder_of_skills_is_searched(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path, "a")
    first = scan(tmp_path)
    (folder / "SKILL.md").unlink()
    write_skill(folder, "inner")
    second = scan(tmp_path, before=first, dirty=[str(folder)])
    assert list(second.findings) == ["a/inner"]
    assert second.walked == {"", "a"}


# ---- stamps instead of reading ------------------------------------------------------------


def test_only_the_skill_file_is_read_and_others_are_listed(tmp_path, scan, write_skill, reads):
    folder = write_skill(tmp_path, "a")
    (folder / "data.csv").write_bytes(b"x" * 100)
    findings = scan(tmp_path).findings["a"]
    assert reads == ["SKILL.md"]
    assert [(file.name, file.size) for file in findings.files][1] == ("data.csv", 100)


def test_a_settled_skill_is_neither_listed_nor_read_again(
    tmp_path, scan, write_skill, later, listed
):
    (write_skill(tmp_path, "a") / "sub").mkdir()
    later(60)
    first = scan(tmp_path)
    listed.clear()
    assert scan(tmp_path, first).findings["a"] is first.findings["a"]
    assert listed == [str(tmp_path)]


def test_a_skill_that_is_gone_does_not_stay_beside_one_of_its_name_that_is_new(
    tmp_path, write_skill
):
    folder = write_skill(tmp_path, "a")
    write_skill(tmp_path, "b")
    root = search_root(str(tmp_path), RootKind.SKILLS)
    first = scan_skills(root, Limits(), settle=60)
    folder.rename(tmp_path / "c")
    shutil.rmtree(tmp_path / "b")
    second = scan_skills(root, Limits(), first, settle=60)
    assert list(second.findings) == ["c", "b"]
    assert list(second.missing) == ["b"]


CHANGES = {
    "edit": lambda folder: (folder / "SKILL.md").write_text(GOOD.format("a") + "More.\n"),
    "edit of another file": lambda folder: (folder / "sub/x.txt").write_text("2"),
    "another file": lambda folder: (folder / "new.txt").write_text("1"),
    "another file below": lambda folder: (folder / "sub/new.txt").write_text("1"),
    "a folder": lambda folder: (folder / "more").mkdir(),
    "a removal": lambda folder: (folder / "sub/x.txt").unlink(),
    "a removal of all": shutil.rmtree,
    "a rename": lambda folder: (folder / "sub/x.txt").rename(folder / "sub/y.txt"),
    "a swap": lambda folder: os.replace(folder / "sub/x.txt", folder / "y.txt"),
    "a link": lambda folder: (
        (folder / "sub").rename(folder.parent / "s") and (folder / "sub").symlink_to("../s")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_of_a_settled_skill_is_seen(tmp_path, scan, write_skill, later, change):
    folder = write_skill(tmp_path, "a")
    (folder / "sub").mkdir()
    (folder / "sub/x.txt").write_text("1")
    later(60)
    first = scan(tmp_path)
    assert first.findings["a"].folder.folders
    change(folder)
    second = scan(tmp_path, first)
    assert second.findings == scan(tmp_path).findings != first.findings


# ---- skills that are gone for a moment ------------------------------------------------------


def test_a_skill_that_returns_while_others_are_scanned_is_never_missing(
    tmp_path, scan, write_skill, monkeypatch
):
    folder = write_skill(tmp_path / "root", "a")
    write_skill(tmp_path / "root", "b")
    first = scan(tmp_path / "root")
    folder.rename(tmp_path / "away")
    walk = SkillWalk.everything

    def returns_after(self):
        result = walk(self)
        (tmp_path / "away").rename(folder)
        return result

    monkeypatch.setattr(SkillWalk, "everything", returns_after)
    second = scan_skills(first.root, Limits(), first, None, 1000.0)
    assert second.findings["a"] is first.findings["a"]
    assert second.missing.keys() == {"a"}


def test_a_refused_skill_is_not_waited_for(tmp_path, scan, write_skill):
    folder = write_skill(tmp_path / "root/deep", "a")
    first = scan(tmp_path / "root")
    folder.rename(tmp_path / "away")
    folder.symlink_to(tmp_path / "away")
    second = scan_skills(first.root, Limits(), first, None, 1000.0)
    assert (dict(second.findings), odd(second)) == ({}, ["source-link-outside"])
