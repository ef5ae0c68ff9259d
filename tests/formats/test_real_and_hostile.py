"""The readers against files by other people: honest ones, and ones made to do harm."""

import base64
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from satchel.diagnostics import Severity, has_error
from satchel.formats.skill_manifest import read_skill
from satchel.settings import Limits

LIMITS = Limits()


def read(path, root):
    return read_skill(path.read_bytes(), path.parent.name, str(path.relative_to(root)), LIMITS)


def test_every_real_skill_with_a_description_loads(shared):
    corpus = shared / "corpus"
    files = [p for p in sorted(corpus.rglob("SKILL.md")) if "quirks" not in p.parts]
    refused = [item for path in files for item in _errors(read(path, corpus))]
    assert len(files) > 500
    assert refused == []


def test_a_quirky_skill_loads_or_says_exactly_why_not(shared):
    quirks = shared / "corpus" / "quirks"
    refused = {
        path.parent.name: [(item.code, item.where.line) for item in reading.diagnostics]
        for path in sorted(quirks.rglob("SKILL.md"))
        if (reading := read(path, quirks)).value is None
    }
    assert refused == {"sample-skill": [("skill-no-frontmatter", 1)]}


def test_real_skills_need_no_repair_and_few_warnings(shared):
    corpus = shared / "corpus"
    codes = {
        item.code
        for path in corpus.rglob("SKILL.md")
        for item in read(path, corpus).diagnostics
        if item.severity is Severity.WARNING
    }
    assert codes <= {
        "skill-name-missing",
        "skill-name-shape",
        "skill-name-folder",
        "skill-description-long",
        "skill-field-type",
    }


@pytest.fixture(scope="module")
def hostile(shared, tmp_path_factory):
    """Each case with what a loader must do: load, reject or neither, built on disk."""
    make = [sys.executable, shared / "hostile" / "make.py"]
    built = tmp_path_factory.mktemp("hostile")
    subprocess.run([*make, "build", built], check=True, timeout=120)
    listed = subprocess.run([*make, "json"], check=True, timeout=120, capture_output=True)
    return built, {case["id"]: case["want"] for case in json.loads(listed.stdout)}


def test_hostile_skills_are_read_or_refused_as_they_should_be(hostile):
    built, expected = hostile
    for case, want in expected.items():
        for path in _regular_skills(built / case):
            began = time.process_time()
            reading = read(path, built)
            assert time.process_time() - began < 2, path
            if path.parent.name == "bystander" or want == "load":
                assert reading.value, reading.diagnostics
            elif want == "reject":
                assert reading.value is None, case
            assert reading.value or has_error(reading.diagnostics), path
            assert all("\x1b" not in str(item.message) for item in reading.diagnostics)


def test_naughty_strings_are_read_as_text_or_refused(shared):
    pack = json.loads((shared / "hostile" / "blns.json").read_text())
    strings = json.loads(base64.b64decode(pack["files"][0]["b64"]))
    assert len(strings) > 400
    for text in strings:
        plain = text.encode("utf-8", "surrogatepass")
        quoted = plain.replace(b"'", b"''")
        for value in (plain, b"'" + quoted + b"'"):
            data = b"---\nname: pdf\ndescription: " + value + b"\n---\nbody\n"
            reading = read_skill(data, "pdf", "SKILL.md", LIMITS)
            assert reading.value or has_error(reading.diagnostics), text
        if text.isprintable() and text.strip():
            assert reading.value.description == text.strip()


def _errors(reading):
    return [str(item) for item in reading.diagnostics if item.severity is Severity.ERROR]


def _regular_skills(root):
    for folder, _, names in os.walk(root):
        path = Path(folder) / "SKILL.md"
        if "SKILL.md" in names and stat.S_ISREG(path.lstat().st_mode):
            yield path
