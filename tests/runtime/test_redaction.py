import os
from types import SimpleNamespace

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.runtime.redaction import redacted


@pytest.mark.parametrize(
    "injected",
    [
        "hunter22",
        pydantic.SecretStr("hunter22"),
        ["a", "hunter22"],
        ("hunter22",),
        {"hunter22"},
        frozenset({"hunter22"}),
        {"deep": [{"er": "hunter22"}]},
        b"hunter22",
        pydantic.SecretBytes(b"hunter22"),
    ],
)
def test_no_value_that_a_host_injects_is_reported(injected):
    assert redacted("it is hunter22!", {"k": injected}) == "it is [redacted]!"


def test_the_longest_value_goes_first():
    assert redacted("abcdefgh", {"a": "abcd", "b": "abcdefgh"}) == "[redacted]"


@pytest.mark.parametrize("value", ["abc", "", None, 1, SimpleNamespace(x="x")])
def test_what_is_short_or_no_text_is_left_alone(value):
    assert redacted("abc 1 None", {"k": value}) == "abc 1 None"


@pytest.mark.parametrize(
    "name", ["API_KEY", "github_token", "MY_SECRET", "DB_PASSWORD", "AWS_CREDENTIALS", "HTTP_AUTH"]
)
def test_no_value_of_the_environment_that_is_called_a_secret_is_reported(name, monkeypatch):
    monkeypatch.setenv(name, "s3cr3t-value")
    assert redacted("with s3cr3t-value.", {}) == "with [redacted]."


def test_other_values_of_the_environment_are_reported(monkeypatch):
    monkeypatch.setenv("COLOUR", "ultramarine")
    monkeypatch.setenv("KEY", "abc")
    assert redacted("ultramarine abc", {}) == "ultramarine abc"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api_key=abc123", "api_key=[redacted]"),
        ("API-KEY: abc123, and", "API-KEY: [redacted], and"),
        ("apikey='abc 123' x", "apikey='[redacted]' x"),
        ('"access_key": "abc 123"}', '"access_key": "[redacted]"}'),
        ('{"token": "abc"}', '{"token": "[redacted]"}'),
        ("client_secret = abc;", "client_secret = [redacted];"),
        ("password=p@ss&x", "password=[redacted]"),
        ("passwd: x", "passwd: [redacted]"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ("authorization: basic abc==", "authorization: basic [redacted]"),
        ("Authorization: abc", "Authorization: [redacted]"),
        ("no tokens here", "no tokens here"),
    ],
)
def test_what_looks_like_a_secret_is_not_reported(text, message):
    assert redacted(text, {}) == message


def test_folders_are_reported_as_short_as_a_person_writes_them(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    text = f"{tmp_path}/work/a.py and {tmp_path}/b.py"
    assert redacted(text, {}) == "./a.py and ~/b.py"


def test_the_root_is_no_folder_to_hide(monkeypatch):
    monkeypatch.setenv("HOME", "/")
    monkeypatch.chdir("/")
    assert redacted("/a/b", {}) == "/a/b"


def test_a_folder_that_is_gone_hides_nothing(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert redacted("text", {}) == "text"
    monkeypatch.undo()
    assert os.getcwd()


@given(st.text(min_size=4).filter(lambda text: text not in "[redacted]"), st.text(), st.text())
def test_a_secret_is_nowhere_whatever_stands_around_it(secret, before, after):
    if secret not in before + after:
        assert secret not in redacted(f"{before} {secret} {after}", {"k": secret}).replace(
            "[redacted]", ""
        )
