"""What plugins offer to MCP clients beside tools."""

import pytest

from satchel import DefinitionError, FunctionTool, McpPrompt, McpResource


def review(code: str, language: str = "python") -> str:
    """Review some code."""
    return f"{language}: {code}"


def entry(day: str, part: str = "") -> str:
    """What was on a day."""
    return day + part


def test_a_prompt_is_called_as_its_function_or_as_its_author_says():
    assert McpPrompt(review).name == "review"
    assert McpPrompt(review, name="check").name == "check"
    assert McpPrompt(FunctionTool(review, name="look")).name == "look"


def test_a_prompt_has_the_arguments_of_its_function():
    assert list(McpPrompt(review).tool.parameters["properties"]) == ["code", "language"]


@pytest.mark.parametrize(
    ("pattern", "uri", "parts"),
    [
        ("notes://motto", "notes://motto", {}),
        ("notes://motto", "notes://mottos", None),
        ("notes://a.b", "notes://aXb", None),
        ("notes://{day}", "notes://monday", {"day": "monday"}),
        ("notes://{day}", "notes://", None),
        ("notes://{day}", "notes://a/b", None),
        ("notes://{day}/x/{part}", "notes://a/x/b", {"day": "a", "part": "b"}),
        ("notes://{day}/x", "notes://a/y", None),
        ("notes://{day}", "notes://new%20year", {"day": "new year"}),
        ("notes://{day}", "notes://50%2525", {"day": "50%25"}),
        ("notes://{day}", "notes://..%2Fsecret", None),
        ("notes://{day}", "notes://%2e%2E", None),
        ("notes://{day}", "notes://c:%5Cx", None),
    ],
)
def test_a_resource_knows_its_addresses(pattern, uri, parts):
    assert McpResource(pattern, entry).match(uri) == parts


def test_a_resource_with_parts_that_its_function_lacks_is_refused():
    with pytest.raises(DefinitionError, match="month"):
        McpResource("notes://{day}/{month}", entry)


@pytest.mark.parametrize(
    "make",
    [
        lambda: McpPrompt(FunctionTool(review), name=5),
        lambda: McpPrompt(FunctionTool(review), name="a\ud800"),
        lambda: McpResource(5, entry),
        lambda: McpResource("x://a\ud800", entry),
        lambda: McpResource("x://a", entry, name=["a"]),
        lambda: McpResource("x://a", entry, mime_type=5),
    ],
)
def test_what_cannot_be_listed_is_refused_when_it_is_made(make):
    with pytest.raises(DefinitionError, match="without invisible characters"):
        make()


@pytest.mark.parametrize("uri", ["skill://pdf/SKILL.md", "Skill://{day}/{part}"])
def test_the_addresses_of_skills_are_those_of_skills(uri):
    with pytest.raises(DefinitionError, match="reserved for skills"):
        McpResource(uri, entry)
