"""The file of tokens."""

import os

import pytest

from satchel.errors import SatchelError
from satchel.mcp.bearer_tokens import BearerTokens

ONE, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tokens"

    def write(text, mode=0o600):
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return write


def test_a_bearer_is_known_by_any_of_the_tokens(file):
    tokens = BearerTokens(file(f"# ours\n{ONE}\n\n  {OTHER}  # theirs\n"))
    assert tokens.bearer(ONE).groups is None
    assert tokens.bearer(OTHER).digest != tokens.bearer(ONE).digest
    for wrong in ("", ONE[:-1], f"{ONE} ", "# ours", "c" * 32, "\ud800"):
        assert tokens.bearer(wrong) is None


def test_behind_a_token_stand_its_groups(file):
    assert BearerTokens(file(f"{ONE} maps web\n")).bearer(ONE).groups == {"maps", "web"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o700 | 0o010])
def test_a_file_that_others_may_read_is_refused(file, mode):
    with pytest.raises(SatchelError, match="chmod 600"):
        BearerTokens(file(ONE, mode))


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o444, 0o644])
def test_a_secret_that_root_mounted_is_read_whatever_its_mode(file, monkeypatch, mode):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert BearerTokens(file(ONE, mode)).bearer(ONE)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_secret_that_others_may_write_is_refused(file, monkeypatch, mode):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SatchelError, match="others may change the token file"):
        BearerTokens(file(ONE, mode))


@pytest.mark.parametrize("text", ["", "# nothing\n", "short\n"])
def test_a_file_without_a_token_that_is_worth_it_is_refused(file, text):
    with pytest.raises(SatchelError, match="openssl rand"):
        BearerTokens(file(text))


def test_a_file_that_windows_wrote_is_read(file):
    assert BearerTokens(file(f"\ufeff{ONE}\r\n")).bearer(ONE)


def test_a_file_is_read_whole_or_not_at_all(file):
    with pytest.raises(SatchelError, match="bytes"):
        BearerTokens(file(f"{ONE}\n" * 10_000))


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        with pytest.raises(SatchelError, match="token file"):
            BearerTokens(str(path))


def test_errors_do_not_contain_the_token(file):
    with pytest.raises(SatchelError) as refused:
        BearerTokens(file("tooshort\n"))
    assert "tooshort" not in str(refused.value)


def test_a_token_that_is_deleted_counts_no_more(file):
    tokens = BearerTokens(file(f"{ONE}\n{OTHER}\n"))
    file(f"{OTHER}\n")
    assert tokens.bearer(ONE) is None
    assert tokens.bearer(OTHER)


def test_no_one_is_let_in_once_others_may_read_the_file(file):
    tokens = BearerTokens(file(ONE))
    path = file(ONE, 0o644)
    assert tokens.bearer(ONE) is None
    os.chmod(path, 0o600)
    assert tokens.bearer(ONE)


def test_no_one_is_let_in_once_the_file_is_gone(file):
    path = file(ONE)
    tokens = BearerTokens(path)
    os.unlink(path)
    assert tokens.bearer(ONE) is None


def test_who_was_let_in_counts_while_the_file_says_the_same(file):
    tokens = BearerTokens(file(f"{ONE} maps\n{OTHER}\n"))
    one, other = tokens.bearer(ONE), tokens.bearer(OTHER)
    assert tokens.counts(one)
    file(f"{ONE} maps web\n{OTHER}\n")
    assert [tokens.counts(one), tokens.counts(other)] == [False, True]
