"""A server that has more than tools: `gifted.py [INSTRUCTIONS]`, on stdio.

It has prompts, resources and instructions; its tools ask for input, for a message of a model and
for roots, and write log lines.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata

NAMES = {"pick": "elicitation/create", "think": "sampling/createMessage", "look": "roots/list"}
PARAMS = {
    "pick": {
        "message": "Which colour?",
        "mode": "form",
        "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}},
    },
    "think": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Think."}}],
        "maxTokens": 5,
    },
    "look": {},
}
LINES = {"mutter": ("warning", {"said": "hm"}), "leak": ("error", [os.environ.get("KEY", "")])}
QUESTIONS = {
    "pick": (types.ElicitRequest, types.ElicitResult),
    "think": (types.CreateMessageRequest, types.CreateMessageResult),
    "look": (types.ListRootsRequest, types.ListRootsResult),
}


async def list_tools(ctx, params):
    tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in (*NAMES, *LINES)]
    return types.ListToolsResult(tools=tools)


def said(value):
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(value))])


async def call_tool(ctx, params):
    if params.name in LINES:
        level, data = LINES[params.name]
        logged = types.LoggingMessageNotificationParams(level=level, data=data, logger="inner")
        note = types.LoggingMessageNotification(params=logged)
        await ctx.session.send_notification(note, ctx.request_id)
        return said("muttered")
    kind, answer = QUESTIONS[params.name]
    question = {"method": NAMES[params.name], "params": PARAMS[params.name]}
    request = kind.model_validate(question, by_name=False)
    if ctx.protocol_version >= "2026":
        given = params.input_responses
        if given is None:
            return types.InputRequiredResult(input_requests={"q": request}, request_state="kept")
        assert params.request_state == "kept"
        return said(given["q"].model_dump(by_alias=True, mode="json", exclude_none=True))
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        result = await ctx.session.send_request(request, answer, metadata=metadata)
    except Exception as problem:
        return said({"refused": str(problem)})
    return said(result.model_dump(by_alias=True, mode="json", exclude_none=True))


async def list_prompts(ctx, params):
    arguments = [
        types.PromptArgument(name="name", description="Whom.", required=True),
        types.PromptArgument(name="tone"),
    ]
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name="greet_them", description="Greet <b>", arguments=arguments),
            types.Prompt(name="dialog", title="A dialog"),
            types.Prompt(name="hid\u200bden"),
        ]
    )


async def get_prompt(ctx, params):
    if params.name == "dialog":
        messages = [("user", "Hello."), ("assistant", "Good day.")]
    else:
        messages = [("user", f"Greet: {json.dumps(params.arguments, sort_keys=True)} $1")]
    return types.GetPromptResult(
        messages=[
            types.PromptMessage(role=role, content=types.TextContent(text=text))
            for role, text in messages
        ]
    )


async def list_resources(ctx, params):
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="note://today", name="today", mime_type="text/plain"),
            types.Resource(uri="note://picture", name="picture"),
            types.Resource(uri="skill://elsewhere/SKILL.md", name="posing"),
        ]
    )


async def list_templates(ctx, params):
    template = types.ResourceTemplate(uri_template="day://{date}/notes/{+path}", name="day")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx, params):
    if params.uri == "note://picture":
        content = types.BlobResourceContents(uri=params.uri, blob="AAEC", mime_type="image/png")
    else:
        text = f"{os.environ.get('WHO', 'gifted')} {params.uri}"
        content = types.TextResourceContents(uri=params.uri, text=text)
    return types.ReadResourceResult(contents=[content])


async def main():
    text = Path(sys.argv[1]).read_text() if sys.argv[1:] else None
    server = Server(
        "gifted",
        instructions=text,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    asyncio.run(main())
