"""Values that a person types for a plugin's fields, as the plugin's file keeps them."""

import os
from pathlib import Path

import pytest

from satchel.errors import DefinitionError
from satchel.formats.config_fields import ConfigField
from satchel.setup.field_values import as_text, field_of

FIELDS = (
    ConfigField(name="RETRIES", type="integer", max=9),
    ConfigField(name="API_KEY", type="secret"),
    ConfigField(name="ROOT", type="path"),
)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("retries", 3, "3"),
        ("RETRIES", "3", "3"),
        ("api_key", "hush", "hush"),
        ("root", "~/data", "~/data"),
    ],
)
def test_a_valid_value_is_a_text(key, value, text):
    assert as_text(FIELDS, key, value) == text


def test_a_path_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for value in ("data", Path("data"), tmp_path / "data"):
        assert as_text(FIELDS, "root", value) == os.path.join(os.getcwd(), "data")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("retires", "3", "no field 'retires' is declared"),
        ("retries", "12", "the value of 'RETRIES'"),
        ("api_key", "", "is empty, which counts as not set"),
        ("api_key", None, "is empty"),
        ("api_key", ["s3cret"], "is a list, which cannot be stored"),
    ],
)
def test_an_invalid_value_is_refused_without_showing_it(key, value, message):
    with pytest.raises(DefinitionError, match=message) as caught:
        as_text(FIELDS, key, value)
    assert "s3cret" not in str(caught.value)


def test_a_near_miss_is_named():
    with pytest.raises(DefinitionError) as caught:
        as_text(FIELDS, "retires", "3")
    assert "did you mean retries" in str(caught.value)


def test_without_declared_fields_any_valid_key_is_taken():
    assert as_text((), "anything", True) == "true"
    with pytest.raises(DefinitionError, match="is not a valid key"):
        as_text((), "a b", "x")


def test_a_field_is_found_in_any_case():
    assert field_of(FIELDS, "api_KEY") is FIELDS[1]
    assert field_of(FIELDS, "none") is None
