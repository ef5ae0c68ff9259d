"""What is shown and written of the source of a skill or plugin."""

import pytest

from satchel.formats.source_text import masked_source


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/home/me/skills@2?x#y",
        "./a://b@c",
        "github:acme/skills/pdf/forms@v2",
        "git+https://h.example/a/b.git@feature/x#subdirectory=a/b",
        "git+ssh://git@h.example:22/a/b.git@v1",
        "git+file:///srv/a",
        "git+https://[::1]:80/a",
        f"https://h.example/x.zip#sha256={'a' * 64} sha256:abc",
        "git+https://h.example/a 74dd4c1d",
    ],
)
def test_a_source_without_a_secret_stays(text):
    assert masked_source(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git+https://X@h.example/a@v1 74dd4c1d", "git+https://***@h.example/a@v1 74dd4c1d"),
        ("git+https://me:X@h.example:80/a", "git+https://***:***@h.example:80/a"),
        ("https://me:X#y?X@h.example/a.zip", "https://***:***@h.example/a.zip"),
        ("https://me:X/X@h.example/a.zip", "https://***"),
        ("https://h.example/a.zip?token=X 74d", "https://h.example/a.zip?*** 74d"),
        ("https://h.example/a.zip?token=X#sha256=a", "https://h.example/a.zip?***#sha256=a"),
        ("https://h.example/a.zip#token=X", "https://h.example/a.zip#***"),
        ("git+https://h.example/a#subdirectory=b&t=X", "git+https://h.example/a#***"),
        ("git+ssh://me:X@h.example/a", "git+ssh://***:***@h.example/a"),
        ("acme @ git+https://X@h.example/a", "acme @ git+https://***@h.example/a"),
        ("HTTPS://X@h.example/a", "HTTPS://***@h.example/a"),
        ("git+https://acme@h.example/acme/b", "git+https://h.example/acme/b"),
    ],
)
def test_what_may_be_a_password_or_token_is_masked(text, shown):
    assert masked_source(text) == shown
    assert masked_source(shown) == shown


def test_a_long_text_takes_no_time():
    for part in ("a@", "a:", "/a", "a?", "#a", " "):
        assert masked_source(f"https://{part * 100_000}")
