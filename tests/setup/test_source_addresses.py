"""What a source may be, and what is refused before git sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import SatchelError
from satchel.setup.source_addresses import read_address


def test_github_is_a_repository_with_a_folder_and_a_revision():
    result = read_address("github:acme/skills/pdf/forms@v2")
    assert (result.kind, result.location) == ("git", "https://github.com/acme/skills.git")
    assert (result.subdirectory, result.rev, result.name) == ("pdf/forms", "v2", "forms")
    assert read_address("github:acme/skills.git").location == "https://github.com/acme/skills.git"


def test_an_address_of_git_has_a_revision_and_a_folder():
    result = read_address("git+ssh://git@example.org:22/a/b.git@feature/x#subdirectory=./s//t")
    assert result.location == "ssh://git@example.org:22/a/b.git"
    assert (result.rev, result.subdirectory) == ("feature/x", "s/t")
    assert read_address("git+https://example.org/a/b").name == "b"


def test_a_folder_and_an_archive_are_found_on_disk(tmp_path):
    (tmp_path / "skills.tar.gz").touch()
    assert read_address(str(tmp_path)).kind == "folder"
    result = read_address(str(tmp_path / "skills.tar.gz"))
    assert (result.kind, result.name) == ("archive", "skills")
    digest = "a" * 64
    result = read_address(f"https://example.org/x.zip#sha256={digest}")
    assert (result.kind, result.sha256) == ("archive", digest)


def test_the_beginning_of_a_commit_is_replaced_by_the_whole():
    commit = "74dd4c1d" * 5
    for text in ("git+https://example.org/a@74DD4c1#subdirectory=b", "github:a/b/c#@74dd4c1d"):
        result = read_address(text).pinned(commit)
        assert result == read_address(result.text)
        assert result.rev == commit
    for text in ("github:a/b@74d", "github:a/b@main", "github:a/b"):
        assert read_address(text).pinned(commit) == read_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "missing",
        "git+ext::sh -c id",
        "git+http://example.org/x",
        "git+git://example.org/x",
        "git+ssh://-oProxyCommand=id/x",
        "git+ssh://-oProxyCommand=id@example.org/x",
        "git+ssh://example.org/-x",
        "git+file://--upload-pack=id",
        "git+https://example.org/x@--upload-pack=id",
        "git+https://example.org/x@a..b",
        "git+https://example.org/x@HEAD:evil",
        "git+https://example.org/x@v1^{commit}",
        "git+https://example.org/x#subdirectory=../y",
        "git+https://example.org/x#egg=x",
        "git+https://example.org/x\n",
        "git+https://exa mple.org/x",
        "git+https://example.org:port/x",
        "github:acme",
        "github:acme/..",
        "github:-acme/x",
        "github:acme/x/../../y",
        "git@example.org:acme/x",
        "https://example.org/page.html",
        "https://example.org/x.zip#",
        "https://example.org/x.zip#sha256=",
        "https://example.org/x.zip#sha256=aa",
        f"https://example.org/x.zip#SHA256={'a' * 64}",
        f"https://example.org/x.zip#sha512={'a' * 128}",
        "ftp://example.org/x.zip",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(SatchelError):
        read_address(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ftp://example.org/x.zip", "this kind of address is not supported"),
        ("git@example.org:acme/x", "this kind of address is not supported"),
        ("missing", "does not exist"),
        ("http://example.org/x.zip", r"'http' are not used \(use https://\)"),
        ("git+file:///srv/a b.git", r"has a space in it \(write %20 for it\)"),
        ("git+https://example.org/\u0436x", r"has .\u0436. in it \(write %D0%B6 for it\)"),
        (__file__, "is neither a folder nor an archive"),
    ],
)
def test_what_is_refused_says_why(text, message):
    with pytest.raises(SatchelError, match=message):
        read_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "git+https://me:hunter2@example.org/x",
        "https://me:hunter2@example.org/x.zip",
        "git+https://hunter2@example.org/x",
        "git+https://acme:hunter2@example.org/acme/x",
        "git+https://hunter2@example.org/x-hunter2/hunter2.git",
        "git+https://hunter2@example.org/x@v1#subdirectory=a/hunter2",
        "https://hunter2@example.org/x.zip?/hunter2",
    ],
)
def test_a_password_or_token_is_refused_and_not_repeated(text):
    with pytest.raises(SatchelError, match="has a password or token") as caught:
        read_address(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "github:hunter2@acme/x",
        "github:acme/x?token=hunter2",
        "hunter2@example.org/x",
        "me:hunter2@example.org/x",
        "https:/me:hunter2@example.org/x",
        "HTTPS://hunter2@example.org/x",
        "https://example.org/x.zip?token=hunter2",
        "https://example.org/x.zip#token=hunter2",
    ],
)
def test_what_may_be_a_token_is_not_repeated(text):
    with pytest.raises(SatchelError) as caught:
        read_address(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("git+https://acme@dev.azure.com/acme/p/_git/x", "git+https://dev.azure.com/acme/p/_git/x"),
        ("git+https://acme@h.org:80/x/acme@v1#subdirectory=a", None),
        ("https://acme@h.org/acme/x.zip", None),
    ],
)
def test_a_user_name_that_is_a_part_of_the_path_is_no_secret_and_left_out(text, plain):
    plain = plain or text.replace("acme@", "", 1)
    assert read_address(text) == read_address(plain)
    assert "acme@" not in read_address(text).location


@given(st.text(max_size=40), st.sampled_from(["git+https://h/", "git+ssh://", "github:a/", "git+"]))
def test_what_is_accepted_can_be_no_option_of_git(rest, start):
    try:
        result = read_address(start + rest)
    except SatchelError:
        return
    assert result.location.startswith(("https://", "ssh://", "file:///"))
    assert not result.rev.startswith("-")
    assert ".." not in result.subdirectory.split("/")
    host = result.location.partition("://")[2].partition("/")[0]
    assert not host.startswith("-")
    assert "@-" not in host
