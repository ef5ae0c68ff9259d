"""The counts are those of real tokenizers, the largest of cl100k, o200k and that of Claude 2."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.prompt.skill_listing import render_skills
from satchel.prompt.skill_prompt import SkillPrompt
from satchel.prompt.token_estimate import about_tokens

PROSE = """\
When a task matches the description of a skill, read the skill's SKILL.md first and follow it; \
paths in it are relative to its folder."""
BLOCK = """\
<available_skills>
  <skill>
    <name>pdf</name>
    <description>Reads PDFs.</description>
    <location>/skills/pdf/SKILL.md</location>
  </skill>
</available_skills>"""
CODE = """\
def _largest(least: int, most: int) -> int | None:
    return None if most < least else [x ** 2 for x in (least, most)][-1]
"""
COUNTED = [
    (PROSE, 32),
    ("- **Never** call `geocode` twice for one place (see `docs/maps.md`, step 3).", 24),
    (BLOCK, 51),
    ("  <skill><name>skill-00012</name></skill>\n  <skill><name>k8s-rbac-lint</name></skill>", 33),
    (CODE, 42),
    ("for(let i=0;i<n;i++){a[i]=b[i]^(i%256);}", 28),
    ('{"name": "pdf", "arguments": {"pages": [1, 2, 3], "ocr": false}}', 26),
    ("技能是针对特定任务的说明。请先阅读该技能的说明文件。", 24),
    ("スキルは特定の作業のための手順書です。まず読み込んでください。", 34),
    ("스킬은 특정 작업을 위한 지침입니다. 작업이 설명과 일치하면 먼저 스킬을 불러오십시오.", 57),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_a_tokenizer_counts_no_more_and_not_a_lot_less(text, tokens):
    assert tokens <= about_tokens(text) <= 3 * tokens


def test_nothing_takes_no_tokens_and_anything_takes_one():
    assert about_tokens("") == 0
    assert about_tokens("a") == about_tokens(" ") == 1
    assert about_tokens("\ud800") >= 1


@pytest.mark.parametrize(
    ("text", "tokens"), [("four", 1), ("abcdefgh", 2), ("IDs", 3), ("技", 2), ("技能说", 6)]
)
def test_letters_other_characters_and_other_alphabets_are_counted_by_the_rule(text, tokens):
    assert about_tokens(text) == tokens


@given(st.text(), st.text())
def test_a_longer_text_takes_no_fewer_tokens(first, second):
    assert about_tokens(first) <= about_tokens(first + second)
    assert about_tokens(first + second) <= about_tokens(first) + about_tokens(second)


def test_it_can_measure_a_skill_prompt():
    lines = [
        SimpleNamespace(name=f"s{at}", description="Reads tables. " * 30, folder="/s", scope=0)
        for at in range(20)
    ]
    prompt = render_skills(lines, SkillPrompt(budget=1_500, measure=about_tokens)).text
    assert 1_400 < about_tokens(prompt) <= 1_500
