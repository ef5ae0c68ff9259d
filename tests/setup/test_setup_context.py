"""What a setup can do with its context."""

import hashlib
import io
import stat
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from satchel.errors import DefinitionError, SatchelError
from satchel.files.state_files import data_folder
from satchel.formats.config_fields import ConfigField
from satchel.setup import SetupContext

FIELDS = (
    ConfigField(name="api_key", type="secret"),
    ConfigField(name="Retries", type="integer", default=2, max=9),
    ConfigField(name="model", type="path", required=False, must_exist=True),
    ConfigField(name="fast", type="boolean", required=False),
)


@pytest.fixture
def declared(ctx):
    return replace(ctx, fields=FIELDS)


@pytest.fixture
def file(config_folder):
    return config_folder / "plugins/demo.env"


# ---- asking -------------------------------------------------------------------------------


def test_a_question_is_answered(ctx, someone):
    person = someone("Ada", "", "s3")
    assert ctx.interactive
    assert ctx.ask("Name?") == "Ada"
    assert ctx.ask("Town?", default="Oslo") == "Oslo"
    assert ctx.ask("Key?", secret=True, default="old") == "s3"
    assert person.asked == [("Name?", False), ("Town? [Oslo]", False), ("Key?", True)]


def test_only_a_choice_is_an_answer(ctx, someone):
    person = someone("x", "", "b")
    assert ctx.ask("Which?", choices=["a", "b"]) == "b"
    assert person.told == ["Please answer with one of: a, b."]
    with pytest.raises(DefinitionError, match="not one of its choices"):
        ctx.ask("Which?", choices=["a"], default="z")


def test_yes_and_no_are_understood(ctx, someone):
    someone("Yes", "n", "what", "y", "", "")
    assert [ctx.confirm("Sure?") for _ in range(3)] == [True, False, True]
    assert ctx.confirm("Sure?", default=False) is False
    assert ctx.confirm("Sure?", default=True) is True


def test_where_no_one_is_the_default_is_the_answer(ctx, person):
    assert not ctx.interactive
    assert ctx.ask("Town?", default="Oslo") == "Oslo"
    assert ctx.confirm("Sure?", default=True) is True
    for ask in (ctx.ask, ctx.confirm):
        with pytest.raises(SatchelError, match=r"cannot ask 'Sure\?' without a terminal.*--set"):
            ask("Sure?")
    assert person.asked == []


def test_what_is_said_is_printed(ctx, person):
    ctx.say("hello")
    ctx.say(Path("x"))
    assert person.told == ["hello", "x"]


# ---- the configuration --------------------------------------------------------------------


def test_values_are_read_of_their_types_wherever_they_come_from(declared, monkeypatch):
    assert declared.get("retries") == declared.get("RETRIES") == 2
    assert declared.get("api_key") is None
    assert declared.get("api_key", "none") == "none"
    monkeypatch.setenv("SATCHEL_DEMO_RETRIES", "5")
    assert declared.get("Retries") == 5


def test_values_are_written_for_their_owner_alone(declared, file):
    declared.set("api_key", "s3cr3t")
    declared.set("retries", 3)
    declared.set("fast", value=True)
    declared.set("model", declared.data)
    assert file.read_text() == f"API_KEY=s3cr3t\nRETRIES=3\nFAST=true\nMODEL={declared.data}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert declared.get("fast") is True


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("retries", "many-canary", "'Retries' is not a whole number"),
        ("retries", 10, "'Retries' is too large; allowed is|at most 9"),
        ("model", "nowhere-canary", "an existing path"),
        ("retrys", 1, "no field 'retrys' is declared .did you mean retries"),
        ("api_key", "", "counts as not set"),
        ("api_key", None, "counts as not set"),
        ("api_key", b"canary", "'api_key' is a bytes"),
        ("api_key", ["canary"], "'api_key' is a list"),
    ],
)
def test_what_is_not_allowed_is_refused_and_never_quoted(declared, file, key, value, message):
    with pytest.raises(DefinitionError, match=message) as caught:
        declared.set(key, value)
    assert "canary" not in str(caught.value)
    assert not file.exists()


def test_who_declares_nothing_may_set_any_key(ctx, file):
    ctx.set("anything", "x y")
    assert file.read_text() == "ANYTHING='x y'\n"
    with pytest.raises(DefinitionError, match="is not a valid key"):
        ctx.set("a b", 1)


# ---- files --------------------------------------------------------------------------------


def test_the_data_has_a_folder_of_its_own_that_can_be_moved(ctx, data, monkeypatch, tmp_path):
    assert not data.exists()
    assert ctx.data == data
    assert data.is_dir()
    monkeypatch.delenv("SATCHEL_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder("demo").startswith(str(tmp_path))
    assert data_folder("demo").endswith("/satchel/plugins/demo")


def test_a_download_gets_its_name_below_the_data(ctx, server, data, person):
    server.body = b"model"
    digest = hashlib.sha256(b"model").hexdigest()
    assert ctx.download(server.url, sha256=digest) == data / "model.bin"
    assert ctx.download(f"{server.url}?x=/y", "deep/er.bin") == data / "deep/er.bin"
    assert (data / "deep/er.bin").read_bytes() == b"model"
    assert person.progressed[-1] == ("er.bin", 5, 5)
    assert ctx.download(server.url, ctx.folder / "in.bin").read_bytes() == b"model"


def test_an_archive_is_taken_apart_below_the_data(ctx, data):
    archive = ctx.data / "words.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("a")
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    assert ctx.extract(archive) == data / "words"
    assert ctx.extract("words.tar.gz", to="more/words") == data / "more/words"
    assert (data / "more/words/a").read_text() == "x"
    with pytest.raises(SatchelError, match="cannot extract"):
        ctx.extract("gone.zip")


def test_an_archive_whose_name_has_no_ending_asks_for_another_one(ctx, data):
    (ctx.data / "model").write_bytes(b"x")
    with pytest.raises(SatchelError, match="give to= another folder"):
        ctx.extract("model")
    assert (data / "model").read_bytes() == b"x"


@pytest.mark.parametrize("to", ["..", ".", "../other/x", "/etc/x", "a/../..", "link/x"])
def test_nothing_is_written_outside_the_folders_of_the_plugin(ctx, to, server, tmp_path):
    (ctx.data / "link").symlink_to(tmp_path)
    for fetch in (lambda: ctx.download(server.url, to), lambda: ctx.extract("x.zip", to)):
        with pytest.raises(DefinitionError, match="is not a path inside the data"):
            fetch()
    assert server.requests == []


@pytest.mark.parametrize("path", ["", "/", "/files/", "/files/..", "/files/%2e%2e", "/a/%2F.."])
def test_an_address_without_a_name_asks_for_one(ctx, path):
    with pytest.raises(DefinitionError, match="give to="):
        ctx.download(f"http://127.0.0.1:1{path}")


@pytest.mark.parametrize("url", ["http://[::1/x", "ftp://x/y", "http://me:pw@x/y"])
def test_an_address_that_is_not_asked_is_reported(ctx, url):
    with pytest.raises(DefinitionError, match=r"must not contain|must begin with http") as caught:
        ctx.download(url)
    assert "pw" not in str(caught.value)


def test_a_context_cannot_be_changed_and_names_no_person(ctx):
    with pytest.raises(AttributeError):
        ctx.plugin = "other"
    assert "person" not in repr(ctx)
    assert isinstance(ctx, SetupContext)
