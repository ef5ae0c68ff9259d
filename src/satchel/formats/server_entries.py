"""Read the servers in a `.mcp.json`, and in the manifests of other clients.

Reading is lenient, because the formats belong to other clients. A field that has a meaning here is
used under each client's name for it. All other fields are named.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import Any

from satchel.formats.frozen_values import frozen
from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonPath, JsonValue, json_type_name, without_comments
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.read_result import ReadResult, quoted
from satchel.names import near_misses
from satchel.settings import Limits

_CONTAINERS = ("mcpServers", "servers", "context_servers", "mcp", "mcp_servers")
"""Keys below which clients have their servers: most, VS Code, Zed, opencode and Codex."""
_IN_SECONDS = "context_servers"
"""The key of the client that gives the time limit of a call in seconds."""

_TRANSPORTS = {
    **dict.fromkeys(("http", "streamable-http", "streamableHttp", "remote"), "streamable-http"),
    "sse": "sse",
}
_LOCAL = ("stdio", "local")
_SECRETS = ("clientSecret", "client_secret", "CLIENT_SECRET")
_LOOPBACK = ("http://localhost:", "http://127.0.0.1:")

_ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}|(?<!\$)\{env:([A-Za-z_]\w*)\}")
_FOREIGN = re.compile(
    r"\$\{(/|pathSeparator|workspaceFolderBasename|workspaceFolder|userHome|CLAUDE_PROJECT_DIR"
    r"|(?:input|command|config|file|workspaceFolder):[^}]*)\}"
)
_SEPARATORS = MappingProxyType({"/": "/", "pathSeparator": "/"})

_OTHERS_FIX = "Remove them, unless another client uses them."
_INVALID_FIX = "Fix or remove it."
_FOREIGN_FIX = "Write ${NAME} in its place, and set that environment variable."
_ISSUER_FIX = (
    "declare the server in satchel.toml, with client-secret and its issuer in [mcp.NAME.oauth]"
)


class _InvalidServerError(Exception):
    """A server cannot be used; the message follows "server NAME has"."""

    def __init__(self, message: str, fix: str = _INVALID_FIX) -> None:
        super().__init__(message)
        self.fix = fix


class _Entry:
    """The fields of one server. What is never taken from it is not used."""

    def __init__(self, values: Mapping[str, JsonValue]) -> None:
        self.values = values
        self._taken = {"description", "$schema"}
        self._nested: dict[str, _Entry] = {}

    def take(self, kind: Any, *names: str) -> Any:
        """Return the first field of these names that has a value of this type, or `None`."""
        for name in names:
            value = self.values.get(name)
            if value is not None and isinstance(value, kind):
                self._taken.add(name)
                return value
        return None

    def take_nested(self, *names: str) -> "_Entry":
        """Return the first of these fields that is an object, as an entry of its own."""
        name = next((name for name in names if self.take(dict, name)), "")
        nested = self._nested[name] = _Entry(self.values.get(name) or {})  # type: ignore[arg-type]
        return nested

    @property
    def unused(self) -> list[str]:
        """Return the fields that were not taken, sorted; one without a value says nothing."""
        field_names = {name for name, value in self.values.items() if value is not None}
        inner = (f"{name}.{key}" for name, entry in self._nested.items() for key in entry.unused)
        return sorted([*(field_names - self._taken), *inner])


_OF_GEMINI = ("authProviderType", "targetAudience", "targetServiceAccount", "trust")
"""Fields with a meaning for Gemini CLI only."""


def read_claude_servers(
    data: bytes, path: str, limits: Limits, folders: Mapping[str, str] | None = None
) -> ReadResult[tuple[McpServerManifest, ...]]:
    """Read a `.mcp.json`; the servers may be below a key of any client, or at the top level.

    Comments and last commas are allowed, as VS Code writes them. `folders` are the values of
    placeholders such as `workspaceFolder`.
    """

    def read(top: JsonFields) -> tuple[McpServerManifest, ...] | None:
        servers, at = _container(top.values)
        if not isinstance(servers, Mapping):
            message = f"'mcpServers' is {json_type_name(servers)}, not an object"
            top.report("mcp-invalid", "mcpServers", message, "Write an object.")
            return None
        if at and (others := [key for key in top.values if key not in {at[0], "$schema"}]):
            message = f"not used: {', '.join(map(quoted, others))}"
            top.report("plugin-field-unknown", others[0], message, _OTHERS_FIX)
        return tuple(read_entries(servers, at, top, folders))

    return read_object(without_comments(data), path, "mcp-invalid", limits, read)


def _container(values: Mapping[str, JsonValue]) -> tuple[JsonValue, JsonPath]:
    """Return the servers of a file, and below which keys they are."""
    if "mcpServers" in values:
        return values["mcpServers"], ("mcpServers",)
    for key in _CONTAINERS:
        inner = values.get(key)
        if isinstance(inner, dict) and all(isinstance(item, dict) for item in inner.values()):
            servers, at = _container(inner)
            return servers, (key, *at)
    return dict(values), ()


def read_entries(
    servers: Mapping[str, JsonValue],
    at: JsonPath,
    top: JsonFields,
    folders: Mapping[str, str] | None = None,
) -> Iterable[McpServerManifest]:
    """Yield the servers that can be used; the others, and fields that are not used, are reported.

    `at` is where they are in the document of `top`.
    """
    add = top.collector.add
    unit = 1 if _IN_SECONDS in at else 1000
    for name, value in servers.items():
        line = top.document.line((*at, name))
        entry = _Entry(_filled(value, folders or {}) if isinstance(value, dict) else {})
        try:
            if _is_disabled(entry):
                off = f"server {quoted(name)} is disabled in this file"
                add("mcp-disabled", off, "Remove 'disabled' to use it.", line)
                continue
            server = _server(name, entry, unit)
        except _InvalidServerError as fault:
            add("mcp-server-invalid", f"server {quoted(name)} has {fault}", fault.fix, line)
            continue
        if not server.is_local and _has_secret(entry):
            ignored = f"the 'clientSecret' of server {quoted(name)} is not used"
            add("mcp-secret-unused", ignored, _ISSUER_FIX, line)
        of_gemini = [key for key in entry.unused if key in _OF_GEMINI]
        if of_gemini:
            add("plugin-parts-ignored", _not_used(name, of_gemini), line=line)
        if "protocol" in entry.unused:
            other = f"'protocol' of server {quoted(name)} is neither auto nor legacy"
            add("plugin-field-unknown", other, "Write auto or legacy.", line)
        if unused := [key for key in entry.unused if key not in (*_OF_GEMINI, "protocol")]:
            add("plugin-field-unknown", _not_used(name, unused), _OTHERS_FIX, line)
        yield server


def _not_used(server: str, fields: Iterable[str]) -> str:
    return f"server {quoted(server)}: not used: {', '.join(map(quoted, fields))}"


def _is_disabled(entry: _Entry) -> bool:
    for name, off in (("disabled", True), ("enabled", False)):
        if entry.take(bool, name) is off:
            return True
        if name in entry.unused:
            kind = json_type_name(entry.values[name])
            raise _InvalidServerError(f"{kind} for {quoted(name)}, not true or false")
    return False


def _near_fix(entry: _Entry) -> str:
    """Return the advice for a server without a command or address: a field may be misspelled."""
    fields = ("command", "url")
    near = (near_misses(key, fields, most=1) for key in entry.unused if key not in fields)
    return next((f"did you mean {name!r}?" for (name,) in filter(None, near)), _INVALID_FIX)


def _server(name: str, entry: _Entry, unit: int) -> McpServerManifest:
    """Return a server; a time limit of the client is `unit` times its seconds."""
    command, *words = _command(entry)
    kind = entry.take(str, "type")
    transport = kind or ("stdio" if command else "http")
    table: dict[str, Any]
    if transport in _LOCAL and command:
        table = {"command": command, "args": [*words, *_args(entry)], "env": _env(entry)}
        table |= {"cwd": entry.take(str, "cwd"), "env-file": entry.take(str, "envFile")}
    elif transport in _TRANSPORTS and (url := entry.take(str, "httpUrl", "url", "serverUrl")):
        table = {"url": url, "headers": _headers(entry), "oauth": _oauth(entry)}
        # Without it, both are tried.
        table["transport"] = None if kind in {None, "remote"} else _TRANSPORTS[transport]
    elif transport in _TRANSPORTS and entry.values.get("url") == "":
        raise _InvalidServerError("an empty 'url'", "Write its address, or remove it.")
    else:
        message = "neither a command nor a URL of a known type"
        raise _InvalidServerError(message, _near_fix(entry))
    _require_known_placeholders(table)
    # A word of our own: no client has one.
    if text_of(entry.values.get("protocol")) in {"auto", "legacy"}:
        table["protocol"] = entry.take(str, "protocol")
    enable, disable = _tool_choice(entry)
    table |= {"disable": disable, **_time_limits(entry, unit)}
    # No tools is a choice, too.
    chosen = {} if enable is None else {"enable": enable}
    used = {key: value for key, value in table.items() if value}
    return McpServerManifest(name=name, of_claude=True, table=frozen(used | chosen))


def _command(entry: _Entry) -> list[str]:
    """Return the command and the arguments that are in one list with it, as in opencode."""
    words = listed(entry.take(list | str, "command"))
    return [_as_text("command", word) for word in words] or [""]


def _args(entry: _Entry) -> Iterable[str]:
    arguments = entry.take(object, "args")
    if not isinstance(arguments, list | None):
        raise _InvalidServerError(f"{json_type_name(arguments)} for 'args', not a list")
    return (_as_text("args", item) for item in arguments or ())


def _env(entry: _Entry) -> dict[str, str]:
    """Return the variables of a program, with those that Codex passes on by their names."""
    passed = entry.take(list, "env_vars") or []
    names = [item.get("name") if isinstance(item, dict) else item for item in passed]
    variables = _pairs(entry, "env", "environment")
    return {name: f"${{{name}}}" for name in texts_in(names)} | {**variables}


def _headers(entry: _Entry) -> dict[str, str]:
    """Return the headers of requests, with those whose values are variables, as in Codex."""
    headers = {**_pairs(entry, "headers", "http_headers")}
    headers |= {name: f"${{{text}}}" for name, text in _pairs(entry, "env_http_headers").items()}
    if token := entry.take(str, "bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return headers


def _oauth(entry: _Entry) -> dict[str, Any]:
    """Return as which OAuth client to log in, without its secret."""
    fields = entry.take_nested("oauth", "auth")
    redirect = text_of(fields.values.get("redirectUri"))  # the word of Gemini CLI
    redirect = fields.take(str, "redirectUri") if redirect.startswith(_LOOPBACK) else ""
    if port := fields.take(float, "callbackPort"):  # as every number in JSON
        redirect = f"http://localhost:{port:.0f}/callback"
    scopes = listed(fields.take(list | str, "scopes", "scope") or entry.take(list, "scopes"))
    fields.take(str, *_SECRETS)
    values = {
        "client-id": fields.take(str, "clientId", "client_id", "CLIENT_ID"),
        "redirect": redirect,
        "scopes": [scope for text in texts_in(scopes) for scope in text.split()],
    }
    return {key: value for key, value in values.items() if value}


def _has_secret(entry: _Entry) -> bool:
    """Return whether a server has a client secret, which is not used: no format names an issuer."""
    logins = (entry.values.get(name) for name in ("oauth", "auth"))
    return any(login.get(key) for login in logins if isinstance(login, dict) for key in _SECRETS)


def _tool_choice(entry: _Entry) -> tuple[list[str] | None, list[str]]:
    """Return which tools to use, and which not; what is after a `(` is for Gemini CLI only."""
    enabled = entry.take(list | str, "includeTools", "enabledTools", "enabled_tools", "tools")
    disabled = entry.take(list | str, "excludeTools", "disabledTools", "disabled_tools")
    enable, disable = (
        [name.partition("(")[0] for name in texts_in(listed(names))]
        for names in (enabled, disabled)
    )
    return None if enabled is None else enable, disable


def _time_limits(entry: _Entry, unit: int) -> dict[str, Any]:
    """Return how many seconds a call and the start may take."""
    both = entry.take_nested("timeout")
    calls = {"timeout": unit, "tool_timeout_sec": 1}
    starts = {"startup_timeout_sec": 1, "startup_timeout_ms": 1000}
    return {
        "timeout": _seconds(entry, calls) or _seconds(both, {"request": 1000}),
        "startup-timeout": _seconds(entry, starts) or _seconds(both, {"startup": 1000}),
    }


def _seconds(entry: _Entry, units: Mapping[str, int]) -> float | None:
    """Return the first valid time limit; `units` are how many of its units make a second.

    Less than a second is not used: it was written for a client that counts in seconds.
    """
    for name, unit in units.items():
        value = entry.values.get(name)
        if isinstance(value, float) and 1 <= value / unit < inf:
            entry.take(float, name)
            return value / unit
    return None


def _filled(value: JsonValue, folders: Mapping[str, str]) -> Any:
    """Return a value with the placeholders of editors in our form, `${NAME}`, or filled in."""
    values = {**_SEPARATORS, **folders}

    def filled(text: str) -> str:
        text = _ENVIRONMENT.sub(lambda match: f"${{{match[1] or match[2]}}}", text)
        return _FOREIGN.sub(lambda match: values.get(match[1], match[0]), text)

    return with_texts(value, filled)


def with_texts(value: Any, changed: Callable[[str], str]) -> Any:
    """Return a JSON value with each text changed."""
    match value:
        case str():
            return changed(value)
        case list():
            return [with_texts(item, changed) for item in value]
        case dict():
            return {key: with_texts(item, changed) for key, item in value.items()}
    return value


def _require_known_placeholders(table: Mapping[str, Any]) -> None:
    # Each text alone: a placeholder that nothing closes must not reach into the next one.
    for placeholder in filter(None, map(_FOREIGN.search, _all_texts(table))):
        message = f"the placeholder {quoted(placeholder[0])}, which only its own client can fill in"
        raise _InvalidServerError(message, _FOREIGN_FIX)


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        yield from chain.from_iterable(map(_all_texts, value))


def text_of(value: JsonValue) -> str:
    """Return a text, `""` for any other value."""
    return value if isinstance(value, str) else ""


def listed(value: Any) -> list[JsonValue]:
    """Return a list as it is, and any other value in a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def texts_in(values: Iterable[JsonValue]) -> list[str]:
    """Return the texts among some values."""
    return [item for item in values if isinstance(item, str)]


def _pairs(entry: _Entry, *names: str) -> Mapping[str, str]:
    name = next((name for name in names if entry.values.get(name)), names[0])
    value = entry.take(object, name) or {}
    if not isinstance(value, dict):
        raise _InvalidServerError(f"{json_type_name(value)} for {quoted(name)}, not an object")
    items = {key: item for key, item in value.items() if item is not None}
    return {key: _as_text(name, item) for key, item in items.items()}


def _as_text(key: str, value: JsonValue) -> str:
    """Convert a value to text: processes and requests take nothing else."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value) if value.is_integer() else value)
    raise _InvalidServerError(f"{json_type_name(value)} among its {quoted(key)}, not text")
