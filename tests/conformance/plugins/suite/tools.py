"""The fixtures of the conformance suite, with the names that the suite uses."""

import asyncio
import json
from base64 import b64decode
from pathlib import Path
from typing import ClassVar

from satchel import (
    Audio,
    Image,
    McpPrompt,
    McpResource,
    Resource,
    Text,
    Tool,
    ToolContext,
    ToolError,
    hookimpl,
    tool,
)

PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SOUND = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")


# ---- contents -------------------------------------------------------------------------------


@tool
def test_simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> Image:
    """Return an image."""
    return Image(PIXEL)


@tool
def test_audio_content() -> Audio:
    """Return a recording."""
    return Audio(SOUND)


@tool
def test_embedded_resource() -> Resource:
    """Return a document."""
    text = "This is an embedded resource content."
    return Resource("test://embedded-resource", text, "text/plain")


@tool
def test_multiple_content_types() -> list:
    """Return blocks of several kinds."""
    data = json.dumps({"test": "data", "value": 123})
    return [
        Text("Multiple content types test:"),
        Image(PIXEL),
        Resource("test://mixed-content-resource", data, "application/json"),
    ]


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


class SchemaTool(Tool):
    """Shows that a schema keeps all of its keywords."""

    name = "json_schema_2020_12_tool"
    description = "Tool with JSON Schema 2020-12 features"
    parameters: ClassVar = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }

    async def execute(self, **arguments: object) -> str:
        """Return the arguments."""
        return json.dumps(arguments)


schema_tool = SchemaTool()


class HeaderTool(Tool):
    """Has an argument that a proxy may read in a header."""

    name = "test_custom_headers"
    description = "Tool whose argument is mirrored in a header"
    parameters: ClassVar = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }

    async def execute(self, **arguments: object) -> str:
        """Return the arguments."""
        return json.dumps(arguments)


header_tool = HeaderTool()


# ---- while it runs --------------------------------------------------------------------------


@tool
async def test_tool_with_logging(context: ToolContext) -> str:
    """Log what it does."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.get_metadata("mcp").log("info", line)
        await asyncio.sleep(0.05)
    return "Tool with logging executed successfully"


@tool
async def test_logging_tool(context: ToolContext) -> str:
    """Log one line."""
    await context.get_metadata("mcp").log("info", "a line")
    return "logged"


@tool
async def test_tool_with_progress(context: ToolContext) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        message = f"Completed step {done} of 100"
        await context.get_metadata("mcp").progress(done, 100, message)
        await asyncio.sleep(0.05)
    return str(context.get_metadata("mcp").meta.get("progress_token", ""))


# ---- questions ------------------------------------------------------------------------------


def form(message, **properties):
    """Return a question to the user."""
    schema = {"type": "object", "properties": properties, "required": []}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sampling(text, most=100):
    """Return a question to the client's model."""
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    params = {"messages": messages, "maxTokens": most}
    return {"method": "sampling/createMessage", "params": params}


ROOTS = {"method": "roots/list", "params": {}}
NAME = {"type": "string"}


async def ask(context, **questions):
    """Ask the client, and return the answers."""
    return await context.get_metadata("mcp").ask(questions)


def describe(label, answer):
    """Return the user's decision and the content of the form."""
    content = json.dumps(answer.get("content", {}))
    return f"{label}: action={answer['action']}, content={content}"


@tool
async def test_sampling(prompt: str, context: ToolContext) -> str:
    """Ask the client's model."""
    answers = await ask(context, question=sampling(prompt))
    return f"LLM response: {answers['question']['content']['text']}"


@tool
async def test_elicitation(message: str, context: ToolContext) -> str:
    """Ask the user."""
    question = form(message, response={"type": "string", "description": "User's response"})
    answers = await ask(context, question=question)
    return describe("User response", answers["question"])


@tool
async def test_elicitation_sep1034_defaults(context: ToolContext) -> str:
    """Ask the user, with defaults."""
    question = form(
        "Please review and update the form fields with defaults",
        name={"type": "string", "description": "User name", "default": "John Doe"},
        age={"type": "integer", "description": "User age", "default": 30},
        score={"type": "number", "description": "User score", "default": 95.5},
        status={
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "description": "Verification status", "default": True},
    )
    answers = await ask(context, question=question)
    return describe("Elicitation completed", answers["question"])


def options(kind, *labels):
    """Return the choices of a titled enum."""
    return [
        {"const": f"value{number}", "title": f"{label} {kind}"}
        for number, label in enumerate(labels, 1)
    ]


@tool
async def test_elicitation_sep1330_enums(context: ToolContext) -> str:
    """Ask the user to choose, with each kind of enum."""
    plain = ["option1", "option2", "option3"]
    labels = ("First", "Second", "Third")
    question = form(
        "Please select options from the enum fields",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": options("Option", *labels)},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": plain},
        },
        titledMulti={
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"anyOf": options("Choice", *labels)},
        },
    )
    answers = await ask(context, question=question)
    return describe("Elicitation completed", answers["question"])


@tool
async def test_input_required_result_elicitation(context: ToolContext) -> str:
    """Ask for a name."""
    answers = await ask(context, user_name=form("What is your name?", name=NAME))
    return f"Hello, {answers['user_name']['content']['name']}!"


@tool
async def test_streaming_elicitation(context: ToolContext) -> str:
    """Ask for a name, too."""
    answers = await ask(context, user_name=form("What is your name?", name=NAME))
    return f"Hello, {answers['user_name']['content']['name']}!"


@tool
async def test_input_required_result_sampling(context: ToolContext) -> str:
    """Ask the client's model."""
    question = sampling("What is the capital of France?")
    answers = await ask(context, capital_question=question)
    return answers["capital_question"]["content"]["text"]


@tool
async def test_missing_capability(context: ToolContext) -> str:
    """Ask the client's model, even if the client does not support it."""
    answers = await ask(context, question=sampling("Hello?"))
    return answers["question"]["content"]["text"]


@tool
async def test_input_required_result_list_roots(context: ToolContext) -> str:
    """Ask for the roots."""
    answers = await ask(context, client_roots=ROOTS)
    return json.dumps(answers["client_roots"]["roots"])


@tool
async def test_input_required_result_request_state(context: ToolContext) -> str:
    """Ask for a confirmation, and check that the state came back."""
    await ask(context, confirm=form("Please confirm", ok={"type": "boolean"}))
    return "state-ok"


@tool
async def test_input_required_result_tampered_state(context: ToolContext) -> str:
    """Ask for a confirmation; a changed state is refused before it arrives here."""
    await ask(context, confirm=form("Please confirm", ok={"type": "boolean"}))
    return "state-ok"


@tool
async def test_input_required_result_multiple_inputs(context: ToolContext) -> str:
    """Ask for three things at once."""
    answers = await ask(
        context,
        user_name=form("What is your name?", name=NAME),
        greeting=sampling("Generate a greeting", 50),
        client_roots=ROOTS,
    )
    return json.dumps(answers)


@tool
async def test_input_required_result_multi_round(context: ToolContext) -> str:
    """Ask for one thing after the other."""
    first = await ask(context, step1=form("Step 1: What is your name?", name=NAME))
    second = await ask(context, step2=form("Step 2: What is your favorite color?", color=NAME))
    return f"{first['step1']['content']['name']} likes {second['step2']['content']['color']}"


@tool
async def test_input_required_result_capabilities(context: ToolContext) -> str:
    """Ask only what the client can answer."""
    capabilities = context.get_metadata("mcp").capabilities
    questions = {}
    if "elicitation" in capabilities:
        questions["user_name"] = form("What is your name?", name=NAME)
    if "sampling" in capabilities:
        questions["greeting"] = sampling("Generate a greeting")
    return json.dumps(await ask(context, **questions))


# ---- lists that change ----------------------------------------------------------------------


HERE = Path(__file__).parent
ANOTHER = (
    "from satchel import tool\n\n@tool\ndef {0}() -> str:\n    'Come later.'\n    return '{0}'\n"
)


def next_name(folder, stem):
    """Return an unused name."""
    return next(f"{stem}{n}" for n in range(1_000) if not list(folder.glob(f"*{stem}{n}*")))


@tool
def test_trigger_tool_change() -> str:
    """Write another plugin beside this one."""
    name = next_name(HERE.parent, "later")
    folder = HERE.parent / name
    folder.mkdir()
    (folder / "tools.py").write_text(ANOTHER.format(name))
    (folder / "toolkit.yaml").write_text(f"name: {name}\nactive: true\n")
    return name


@tool
def test_trigger_prompt_change() -> str:
    """Write another skill, which is also a prompt."""
    skills = HERE.parents[1] / "skills"
    name = next_name(skills, "later")
    (skills / name).mkdir()
    text = f"---\nname: {name}\ndescription: Comes later.\n---\nDo it.\n"
    (skills / name / "SKILL.md").write_text(text)
    return name


# ---- prompts and resources ------------------------------------------------------------------


def test_simple_prompt() -> str:
    """A simple prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with required arguments.

    Args:
        arg1: First test argument.
        arg2: Second test argument.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list:  # noqa: N803 - the suite's name
    """A prompt that includes an embedded resource."""
    return [
        Resource(resourceUri, "Embedded resource content for testing.", "text/plain"),
        Text("Please process the embedded resource above."),
    ]


def test_prompt_with_image() -> list:
    """A prompt that includes an image."""
    return [Image(PIXEL), Text("Please analyze the image above.")]


async def test_input_required_result_prompt(context: ToolContext) -> str:
    """A prompt that asks the user first."""
    question = form("What context should the prompt use?", context=NAME)
    answers = await ask(context, user_context=question)
    return f"Use this context: {answers['user_context']['content']['context']}"


def static_text() -> str:
    """A static text resource for testing."""
    return "This is the content of the static text resource."


def static_binary() -> Image:
    """A static binary resource for testing."""
    return Image(PIXEL)


def template(id: str) -> dict:  # noqa: A002 - the suite's name
    """A family of resources."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def watched_resource() -> str:
    """A resource that can be subscribed to."""
    return "Watched resource content"


def completed(_argument: str, begun: str) -> list[str]:
    """Complete an argument."""
    return [word for word in ("paris", "park", "party") if word.startswith(begun)]


@hookimpl
def satchel_mcp() -> list:
    """Offer the prompts and resources of the suite."""
    return [
        McpPrompt(test_simple_prompt),
        McpPrompt(test_prompt_with_arguments, complete=completed),
        McpPrompt(test_prompt_with_embedded_resource),
        McpPrompt(test_prompt_with_image),
        McpPrompt(test_input_required_result_prompt),
        McpResource("test://static-text", static_text, mime_type="text/plain"),
        McpResource("test://static-binary", static_binary, mime_type="image/png"),
        McpResource("test://template/{id}/data", template, mime_type="application/json"),
        McpResource("test://watched-resource", watched_resource, mime_type="text/plain"),
    ]
