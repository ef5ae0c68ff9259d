"""`replay`: a recorded conversation against edited folders."""

import asyncio
import json

import pytest

from satchel import Recording, Satchel, ToolCall


@pytest.fixture
def talk(here, write_skill):
    write_skill(here / "skills", "pdf", description="Converts PDF files to text.")
    session, recording = Satchel(skills=["skills"]).session(), Recording()
    call = ToolCall(name="load_skill", arguments={"name": "pdf"}, id="1")
    recording.add_step(step := session.step())
    recording.add_calls([call], asyncio.run(step.execute([call])))
    recording.save("talk.jsonl")
    return ("talk.jsonl", "--skills", "skills")


def test_an_unchanged_folder_gives_no_difference(run, talk):
    result = run("replay", *talk)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "2 entries, 0 differences" in result.stderr


def test_an_edit_is_printed_with_its_lines_and_ends_with_1(run, talk, here, write_skill):
    write_skill(here / "skills", "pdf", description="Reads PDF files.")
    result = run("replay", *talk)
    assert result.exit_code == 1
    assert result.stdout.startswith("0: prompt: the prompt is different\n--- recorded\n+++ now\n")
    assert "+    <description>Reads PDF files.</description>" in result.stdout
    records = json.loads(run("replay", *talk, "--json").stdout)
    assert [list(item) for item in records] == [["entry", "kind", "message", "diff"]]


def test_a_file_that_is_no_recording_is_refused(run, talk, here):
    (here / "talk.jsonl").write_text("{}")
    result = run("replay", *talk)
    assert result.exit_code == 1
    assert "line 1 of the recording cannot be read" in result.stderr
    assert run("replay", "nothing.jsonl").exit_code == 2


def test_a_skill_that_broke_is_named_beside_the_differences(run, talk, here):
    (here / "skills" / "pdf" / "SKILL.md").write_text("---\nname: [pdf\n---\n")
    result = run("replay", *talk)
    assert result.exit_code == 1
    assert "1 error" in result.stderr


def test_a_binary_file_is_refused_in_one_line(run, here):
    (here / "bin").write_bytes(b"\xff\xfe")
    result = run("replay", "bin")
    assert result.exit_code == 1
    assert "line 1 of the recording cannot be read: it is not UTF-8" in result.stderr
