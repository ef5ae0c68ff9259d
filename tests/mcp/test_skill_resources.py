"""Skills as resources and as entries of the extension."""

import asyncio
import hashlib
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from satchel import Satchel
from satchel.groups.group_activation import Activation, view_of
from satchel.mcp.skill_resources import (
    SkillEntryCache,
    find_file,
    list_folder,
    read_file,
    uri_of,
    without_folders,
)
from satchel.mcp_servers.listed_skills import MOST_FILES
from satchel.settings import Limits
from satchel.sources.skill_files import IN_FOLDER


def view(app):
    return view_of(app.catalog, Activation())


@pytest.fixture
def folder(tmp_path, write_skill):
    folder = write_skill(tmp_path / "skills", "pdf")
    (folder / "references").mkdir()
    (folder / "references" / "guide one.md").write_text("Guide\r\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    return folder


@pytest.fixture
def app(folder):
    return Satchel(skills=[folder.parent])


def test_addresses_are_made_of_the_name_and_the_path():
    assert uri_of("pdf") == "skill://pdf/SKILL.md"
    assert uri_of("pdf", "") == "skill://pdf"
    assert uri_of("My skill", "a b/c#d.md") == "skill://My%20skill/a%20b/c%23d.md"


@pytest.mark.parametrize("path", ["SKILL.md", "references/guide one.md"])
def test_an_address_leads_back_to_what_it_was_made_for(app, path):
    skill, found_path = find_file(uri_of("pdf", path), view(app))
    assert (skill.name, found_path) == ("pdf", path)


@pytest.mark.parametrize("uri", ["skill://other/SKILL.md", "file:///etc/passwd", "skill:", ""])
def test_other_addresses_lead_nowhere(app, uri):
    assert find_file(uri, view(app)) is None


@pytest.mark.parametrize("path", ["../secret", "references", "", "no.md", "./SKILL.md", "%2e%2e/x"])
def test_only_files_that_the_skill_lists_are_files(app, path):
    assert find_file(f"skill://pdf/{path}", view(app)) is None


def test_a_text_is_read_byte_by_byte(app, folder):
    uri = uri_of("pdf", "references/guide one.md")
    content = asyncio.run(read_file(uri, *find_file(uri, view(app)), Limits()))
    assert content == {"uri": uri, "mimeType": "text/markdown", "text": "Guide\r\n"}


def test_what_is_no_text_is_read_as_a_blob(app):
    uri = "skill://pdf/logo.png"
    content = asyncio.run(read_file(uri, *find_file(uri, view(app)), Limits()))
    assert content["mimeType"] == "image/png"
    assert content["blob"] == "iVBORw0KGgoA"


def test_a_folder_names_what_lies_directly_in_it(app):
    assert list_folder("skill://pdf", view(app)) == [
        {"uri": "skill://pdf/SKILL.md", "name": "SKILL.md", "mimeType": "text/markdown"},
        {"uri": "skill://pdf/logo.png", "name": "logo.png"},
        {"uri": "skill://pdf/references", "name": "references", "mimeType": "inode/directory"},
    ]


def test_an_entry_names_every_file_with_the_digest_of_its_bytes(app, folder):
    (entry,) = SkillEntryCache(Limits()).listed(view(app).skills)
    assert entry["uri"] == "skill://pdf/SKILL.md"
    assert entry["frontmatter"] == {"name": "pdf", "description": "Does a thing."}
    paths = ["SKILL.md", "logo.png", "references/guide one.md"]
    assert sorted(entry["resources"], key=lambda file: file["uri"]) == [
        {
            "uri": uri_of("pdf", path),
            "digest": "sha256:" + hashlib.sha256((folder / path).read_bytes()).hexdigest(),
            "size": (folder / path).stat().st_size,
        }
        for path in paths
    ]


def test_an_entry_is_of_what_a_client_would_read_now(app, folder):
    manifests = SkillEntryCache(Limits())
    manifests.listed(view(app).skills)
    (folder / "logo.png").write_bytes(b"other")
    app.refresh()
    (entry,) = manifests.listed(view(app).skills)
    digests = {file["uri"]: file["digest"] for file in entry["resources"]}
    assert digests["skill://pdf/logo.png"] == "sha256:" + hashlib.sha256(b"other").hexdigest()


def test_files_are_read_once_while_they_do_not_change(app, monkeypatch):
    monkeypatch.setattr("satchel.files.file_reader.RACY_SECONDS", -1)
    manifests = SkillEntryCache(Limits())
    first = manifests.listed(view(app).skills)
    reads = []
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda *args, **options: reads.append(args[0]) or real(*args, **options)
    )
    assert manifests.listed(view(app).skills) == first
    assert not [path for path in reads if "logo" in str(path)]


def test_files_may_be_forgotten_while_a_thread_lists_them(tmp_path, write_skill, monkeypatch):
    for number in range(30):
        folder = write_skill(tmp_path, f"skill-{number}")
        for name in "abcdefgh":
            (folder / f"{name}.md").write_text(name)
    skills = view(Satchel(skills=[tmp_path])).skills
    manifests, before = SkillEntryCache(Limits()), sys.getswitchinterval()
    listing = threading.Thread(target=manifests.listed, args=(skills,))
    sys.setswitchinterval(1e-6)
    try:
        listing.start()
        while listing.is_alive():
            manifests.forget_all_but(skills)
    finally:
        sys.setswitchinterval(before)
        listing.join()


def test_one_folder_in_a_text_is_not_taken_for_another():
    def skill(name, path):
        return SimpleNamespace(name=name, path=path, access=IN_FOLDER)

    skills = [skill("short", "/s/pdf"), skill("long", "/s/pdf-forms"), skill("odd", "/s/a & b")]
    text = "read /s/pdf-forms/SKILL.md, /s/pdf/SKILL.md, /s/a & b/x and <l>/s/a &amp; b/x</l>"
    assert without_folders(text, skills) == (
        "read skill://long/SKILL.md, skill://short/SKILL.md, skill://odd/x and <l>skill://odd/x</l>"
    )


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: Not A Name\ndescription: D.\n---\nBody\n",
        "---\nname: other\ndescription: D: with a colon\n---\nBody\n",
        "---\nname: 5\ndescription: D.\n---\nBody\n",
        "---\ndescription: D.\n---\nBody\n",
        "---\nname: pdf\ndescription: 5\n---\nBody\n",
    ],
)
def test_a_skill_that_breaks_the_format_is_a_resource_but_no_entry(tmp_path, write_skill, text):
    app = Satchel(skills=[write_skill(tmp_path, "pdf", text=text)])
    assert len(view(app).skills) == 1
    assert SkillEntryCache(Limits()).listed(view(app).skills) == []


def test_a_skill_with_more_files_than_a_client_takes_is_no_entry(app, folder):
    for number in range(MOST_FILES):
        (folder / f"{number}.txt").write_text("x")
    app.refresh()
    assert SkillEntryCache(Limits()).listed(view(app).skills) == []


def test_a_skill_with_a_file_that_is_too_large_to_be_served_is_no_entry(app):
    assert SkillEntryCache(Limits(resource=5)).listed(view(app).skills) == []
