"""A server that has more than tools: `gifted.py [INSTRUCTIONS]`, on stdio.

It has prompts, resources and instructions; its tools ask for input, for a message of a model and
for roots, write log lines, and report that a resource changed. It completes arguments.
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
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.message import ServerMessageMetadata

NAMES = {"pick": "elicitation/create", "think": "sampling/createMessage", "look": "roots/list"}
PARAMS = {
    "pick": {
        "_meta": {"com.example/why": "to paint", "io.modelcontextprotocol/of": "a connection"},
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
    names = (*NAMES, *LINES, "touch", "followed", "die")
    tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]
    return types.ListToolsResult(tools=tools)


def said(value):
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(value))])


FOLLOWED = []
BUS = InMemorySubscriptionBus()
LISTEN = ListenHandler(BUS)


async def listen(ctx, params):
    uris = params.notifications.resource_subscriptions or ()
    FOLLOWED.extend(uris)
    try:
        return await LISTEN(ctx, params)
    finally:
        for uri in uris:
            FOLLOWED.remove(uri)


async def subscribe(ctx, params):
    FOLLOWED.append(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    FOLLOWED.remove(params.uri)
    return types.EmptyResult()


async def touch(ctx):
    await BUS.publish(ResourceUpdated("note://today"))
    if "note://today" in FOLLOWED and ctx.protocol_version < "2026":
        await ctx.session.send_resource_updated("note://today")


async def complete(ctx, params):
    name = getattr(params.ref, "name", None) or params.ref.uri
    arguments = (params.context.arguments if params.context else None) or {}
    values = [f"{name}/{params.argument.name}/{params.argument.value}", *arguments, "hid\u200bden"]
    return types.CompleteResult(completion=types.Completion(values=values, total=7, has_more=True))


async def call_tool(ctx, params):
    if params.name == "die":
        os._exit(3)
    if params.name == "touch":
        await touch(ctx)
    if params.name in {"touch", "followed"}:
        return said(FOLLOWED)
    if params.name in LINES:
        level, data = LINES[params.name]
        meta = {"com.example/line": data}
        logged = types.LoggingMessageNotificationParams(
            level=level, data=data, logger="inner", _meta=meta
        )
        note = types.LoggingMessageNotification(params=logged)
        await ctx.session.send_notification(note, ctx.request_id)
        return said("muttered")
    kind, answer = QUESTIONS[params.name]
    question = {"method": NAMES[params.name], "params": PARAMS[params.name]}
    request = kind.model_validate(question, by_name=False)
    if ctx.protocol_version >= "2026":
        responses = params.input_responses
        if responses is None:
            return types.InputRequiredResult(input_requests={"q": request}, request_state="kept")
        assert params.request_state == "kept"
        return said(responses["q"].model_dump(by_alias=True, mode="json", exclude_none=True))
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


LIVELY = {
    "on_completion": complete,
    "on_subscribe_resource": subscribe,
    "on_unsubscribe_resource": unsubscribe,
    "on_subscriptions_listen": listen,
}


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
        **({} if "QUIET" in os.environ else LIVELY),
    )
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    asyncio.run(main())
