"""The table of an MCP server in satchel.toml."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from satchel.formats.mcp_json import HEADER_NAME, HEADER_VALUE
from satchel.formats.table_model import LIST, TABLE, TEXT, Expected, TableModel, table_schema


def _one_or_more(**item: Any) -> Any:
    item = {"type": "string", **item}
    return WithJsonSchema({"anyOf": [{"type": "array", "items": item}, item]})


_HEADER = f"^(?:{HEADER_NAME.pattern})$"

URL = r"[Hh][Tt][Tt][Pp][Ss]?://[^\s#]+"
"""The pattern of an address, for editors."""

HEADERS = {
    "type": "object",
    "propertyNames": {"pattern": _HEADER},
    "additionalProperties": {"type": "string", "pattern": f"^(?:{HEADER_VALUE.pattern})$"},
}
"""The schema of HTTP headers."""

_Filled = Annotated[str, Field(min_length=1)]
_ArgumentName = Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,64}$")]  # as model APIs need it
_ASLIST = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
_Switch = Annotated[bool, Expected("must be true or false")]
_Text = Annotated[str, TEXT]
_Texts = Annotated[list[str], _ASLIST, _one_or_more(), LIST]
_Names = Annotated[dict[_Filled, _Filled], Expected("must map names of tools to text")]
_Seconds = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | None,
    Expected("must be a number of seconds above 0, not {!r}"),
]


class OAuthTable(TableModel):
    """The table `oauth` of a server."""

    client_id: _Text = Field(
        "", description="The client to log in as; without one, it is registered."
    )
    client_secret: _Text = Field("", description="Its secret; ${NAME} stands for a variable.")
    issuer: _Text = Field("", description="The authorization server that gave the secret.")
    scopes: _Texts = Field([], description="Scopes to ask for, beside those that the server names.")
    redirect: _Text = Field("", description="The registered redirect address on this machine.")
    grant: Annotated[
        Literal["authorization-code", "client-credentials"],
        Expected("must be authorization-code or client-credentials, not {!r}"),
    ] = Field("authorization-code", description="How to get tokens.")


class ServerTable(TableModel):
    """A server; it has either a command or a URL."""

    command: Annotated[str, Expected('must be a string, with args = ["..."] beside it')] = Field(
        "",
        description="The program of a local server.",
        json_schema_extra={"pattern": r"\S"},
    )
    args: Annotated[list[str], LIST] = Field([], description="Its arguments.")
    env: Annotated[dict[str, str], TABLE] = Field(
        {}, description="Its environment variables; ${NAME} stands for one of yours."
    )
    cwd: _Text = Field("", description="Its working folder.")
    env_file: _Text = Field(
        "", description="A file with more variables, NAME=value in each line; env wins."
    )
    url: _Text = Field(
        "",
        description="The address of a remote server.",
        json_schema_extra={"pattern": f"^(?:{URL})$"},
    )
    headers: Annotated[dict[str, str], WithJsonSchema(HEADERS), TABLE] = Field(
        {}, description="Headers of each request; ${NAME} stands for a variable."
    )
    transport: Annotated[
        Literal["http", "streamable-http", "sse"] | None,
        Expected("is {!r}, not one of http, streamable-http, sse"),
    ] = Field(None, description="The protocol of a remote server; without it, both are tried.")
    group: _Texts = Field([], description="The tool groups that its tools are in.")
    enable: Annotated[_Texts | None, LIST] = Field(
        None, description="Patterns of the tools to use."
    )
    disable: _Texts = Field([], description="Patterns of the tools not to use.")
    timeout: _Seconds = Field(None, description="Seconds that a call may take.")
    pin: Annotated[
        Literal["hold", "warn", "off"], Expected("must be hold, warn or off, not {!r}")
    ] = Field("hold", description="What happens when a tool changes.")
    oauth: Annotated[
        dict[str, Any] | None,
        WithJsonSchema(table_schema(OAuthTable)),
        Expected("must be a table"),
    ] = None
    active: Annotated[bool | None, Expected("must be true or false")] = Field(
        None,
        description="Whether its group is active in new sessions; false: not served unless named.",
    )
    startup_timeout: _Seconds = Field(
        None, description="Seconds that it may take to start or to be reached."
    )
    protocol: Annotated[Literal["auto", "legacy"], Expected("must be auto or legacy, not {!r}")] = (
        Field("auto", description="legacy: it is spoken to in the protocol up to 2025-11-25.")
    )
    lazy: _Switch = Field(False, description="Whether its first call starts it.")
    prefix: _Text = Field("", description="Text in front of the names of its tools.")
    rename: _Names = Field({}, description="Other names, by the name of the tool.")
    rename_arguments: Annotated[
        dict[str, dict[_Filled, _ArgumentName]],
        Expected(
            "must map names of tools to tables of argument names, of at most 64 ASCII letters, "
            "digits, '_', '.' and '-'"
        ),
    ] = Field({}, description="Other names for arguments, by tool and argument.")
    descriptions: _Names = Field({}, description="Other descriptions, by the name of the tool.")
    roots: Annotated[list[_Filled], _ASLIST, _one_or_more(minLength=1), LIST] = Field(
        [], description="Folders that it may ask for."
    )
    max_calls: Annotated[
        Annotated[int, Field(gt=0)] | None, Expected("must be a whole number above 0, not {!r}")
    ] = Field(None, description="How many calls may run at once.")
    forward_headers: Annotated[list[str], _ASLIST, _one_or_more(pattern=_HEADER), LIST] = Field(
        [], description="Headers of the caller's HTTP request that are sent on."
    )
