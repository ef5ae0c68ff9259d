"""What a conversation says, in short words."""

import asyncio

from satchel import Satchel, tool

META = "reset_equipped_tools"


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
def route(start: str, end: str) -> str:
    """Find the way between two places."""
    return f"{start} to {end}"


@tool
def fetch(url: str) -> str:
    """Read a page."""
    return url


def maps_and_web(**options) -> Satchel:
    """Return `echo` in `basic`, `route` in `maps`, `fetch` in `web`; both groups are off."""
    app = Satchel(**options)
    app.create_group("maps", "Geocoding and routes.", notes="Geocode first.")
    app.create_group("web", "Reading pages.", notes="Be polite.")
    app.register_tool(echo)
    app.register_tool(route, group="maps")
    app.register_tool(fetch, group="web")
    return app


def locked(**options) -> Satchel:
    """Return those, and `vault`, which needs a key that nobody configured."""
    app = maps_and_web(**options)
    app.create_group("vault", "Secrets.", requires=["VAULT_KEY"])
    app.register_tool(echo, name="unlock", group="vault", description="Open the vault.")
    return app


def answer(place, name, /, **arguments):
    """Return the result of a call, made to a session or a step."""
    return asyncio.run(place.call(name, arguments))


def say(place, name, /, **arguments) -> str:
    """Return the text of a call that went well."""
    result = answer(place, name, **arguments)
    assert not result.is_error, result.text
    return result.text


def refused(place, name, /, **arguments) -> str:
    """Return the text of a call that went wrong."""
    result = answer(place, name, **arguments)
    assert result.is_error, result.text
    return result.text


def choose(place, /, **groups) -> str:
    """Let the model choose its groups."""
    return say(place, META, **groups)


def names(place) -> list[str]:
    """Return the names of the tools that are shown."""
    return [schema["name"] for schema in place.schemas("anthropic")]


def schema(place, name):
    """Return the schema of one tool."""
    return next(item for item in place.schemas("anthropic") if item["name"] == name)


def parameters(place, name):
    """Return the schema of the arguments of one tool."""
    return schema(place, name)["input_schema"]
