"""Authorize the requests to a server, with the OAuth providers of the SDK.

Imported late: it loads the SDK. A running connection never asks a person: if it has no valid
login it reports that one is needed, and the request is answered as the server answers it.
"""

import json
import logging
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn, Protocol
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
    utils,
)
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    is_valid_client_metadata_url,
    union_scopes,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from satchel.errors import SatchelError
from satchel.files.file_reader import StampedPath
from satchel.mcp_servers.network_transports import OF_LOGIN
from satchel.mcp_servers.oauth_client import OAuthClient, may_carry_tokens
from satchel.mcp_servers.server_addresses import HttpServer, SseServer
from satchel.mcp_servers.token_store import SavedLogin, TokenStore
from satchel.tools.callables import in_thread

Flow = AsyncGenerator[httpx2.Request, httpx2.Response]

_TIMEOUT = {"connect": 10.0, "read": 30.0, "write": 10.0, "pool": 10.0}
"""Seconds for a request to an authorization server."""

_OTHERS = 1.0
"""Seconds in which another process saves the login that it renewed."""

_UNAUTHORIZED, _FORBIDDEN, _TOO_MANY, _SERVER_ERROR = 401, 403, 429, 500

_PUBLIC: Final = "none"
_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"
"""How a client proves to a token endpoint who it is."""

_PKCE: Final = "S256"
"""The method of code challenges that is used, so that a stolen code is of no use."""

CHECKS_ISSUERS = "issuers_match" in utils.__dict__
"""Whether the SDK compares the issuer with a configured one; those before 2.2 do not."""

_ENDPOINTS: Final = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
)
"""The endpoints that are used, as the metadata names them."""

_ERROR_CODE = re.compile(r'"error"\s*:\s*"([A-Za-z0-9_.-]{1,60})"')


class Refused(Protocol):
    """Is called when a server does not accept a request without another login."""

    def __call__(self, why: str, *, scope: str = "", fix: str = "") -> None:
        """Report why, the missing `scope` if that is the reason, and a `fix` without a login."""


def _has_no_traceback(record: logging.LogRecord) -> bool:
    """Drop the tracebacks of the SDK's login: they show responses with tokens."""
    return not record.exc_info


class _LoginFlow(OAuthClientProvider):
    """A provider of the SDK that marks and limits its own requests, and explains its errors.

    It is the provider's storage, too: it saves a login once its tokens are there.
    """

    _store: TokenStore | None = None
    """Where the login is saved, if it is."""
    _configured: OAuthClientInformationFull | None = None
    _wanted = ""
    """Scopes that the server asked for since the login."""

    if not CHECKS_ISSUERS:  # and these SDKs follow no redirects either

        def _auth_flow(self, request: httpx2.Request) -> Flow:
            return OAuthClientProvider.async_auth_flow(self, request)

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        # Adding it twice has no effect.
        logging.getLogger("mcp.client.auth.oauth2").addFilter(_has_no_traceback)
        drive = super().async_auth_flow if CHECKS_ISSUERS else self._auth_flow
        flow = drive(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    outgoing.extensions = {
                        **outgoing.extensions,
                        "timeout": _TIMEOUT,
                        OF_LOGIN: True,
                    }
                    _require_safe_request(outgoing)
                response = yield outgoing
                if outgoing is request:
                    response = self._replace_first_response(response)
                else:
                    await _require_valid_metadata(response)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError, ValueError) as problem:
            is_known = self.context.oauth_metadata is not None
            raise explain(problem, is_known=is_known) from None
        finally:
            await flow.aclose()

    def _replace_first_response(self, response: httpx2.Response) -> httpx2.Response:
        """Hook: may replace the response to the original request."""
        return response

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._configured

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: the client is saved with its tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        if self._store is None:  # client credentials: another process gets its own
            return
        login = SavedLogin(
            tokens=_dumped(tokens),
            client=_dumped(self.context.client_info),
            metadata=_dumped(self.context.oauth_metadata),
            resource=_dumped(self.context.protected_resource_metadata),
            expires_at=self.context.token_expiry_time,
            wanted=self._wanted,
        )
        await in_thread(partial(self._store.save, login))


def _refuse_login(why: str) -> NoReturn:
    raise SatchelError(
        f"cannot be logged in to: {why}", fix="report it to the operator of the server"
    )


def _require_safe_request(request: httpx2.Request) -> None:
    """Refuse to send codes, tokens or secrets where others can read them."""
    if request.method == "POST" and not may_carry_tokens(str(request.url)):
        _refuse_login("its authorization server is not reached over https")


async def _require_valid_metadata(response: httpx2.Response) -> None:
    """Refuse metadata that is invalid: the SDK would guess the endpoints instead."""
    if not response.is_success or "/.well-known/" not in response.request.url.path:
        return
    content = await response.aread()
    try:
        metadata = json.loads(content)
    except (ValueError, RecursionError):
        return  # such as a page for every address
    # That of a resource has neither.
    if isinstance(metadata, dict) and not metadata.keys().isdisjoint(_ENDPOINTS):
        try:
            OAuthMetadata.model_validate_json(content)
        except ValueError:
            _refuse_login("what its authorization server says about itself is invalid")


def explain(problem: Exception, *, is_known: bool = True) -> SatchelError:
    """Explain an error of the SDK's login, without the texts of servers.

    `is_known` says whether the server named its authorization server.
    """
    text, fix = str(problem), ""
    code = f" ({match[1]})" if (match := _ERROR_CODE.search(text)) else ""
    match problem:
        case OAuthRegistrationError() if not is_known:
            why, fix = "it offers no login", "if it needs a key, write it into its headers"
        case OAuthRegistrationError():
            why = "its authorization server does not register clients"
            fix = "register one there, and write its client-id into the server's oauth table"
        case OAuthTokenError():
            why = "its authorization server refused to give a token"
        case OAuthFlowError() if "issuer" in text or "iss " in text:
            why = "its authorization server is another one than expected"
        case OAuthFlowError() if "does not match" in text:
            why = "what it says about its login does not match its address"
        case _:
            why = "its authorization server did not respond as OAuth says"
    return SatchelError(f"cannot be logged in to: {why}{code}", fix=fix)


def _require_issuer_check(issuer: str) -> None:
    if issuer and not CHECKS_ISSUERS:
        raise SatchelError(
            "cannot be logged in to: SDKs before 2.2 do not check the configured issuer",
            fix="pip install 'mcp>=2.2'",
        )


def _dumped(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", exclude_none=True) if model is not None else {}


class StoredLoginAuth(_LoginFlow):
    """Sends the token of the stored login, and renews it when it expires."""

    def __init__(
        self, server: HttpServer | SseServer, store: TokenStore, on_refused: Refused
    ) -> None:
        super().__init__(server.url, OAuthClientMetadata(redirect_uris=None), self)
        self._store: TokenStore = store
        self._on_refused = on_refused
        self._stamp: StampedPath | None = None
        self._has_login = False

    async def _initialize(self) -> None:
        """Load the stored login, if it changed since it was loaded."""
        stamp = self._store.stamp
        if stamp == self._stamp:
            return
        login = await in_thread(self._store.load) or SavedLogin()
        context = self.context
        context.clear_tokens()
        context.client_info = context.oauth_metadata = None
        context.protected_resource_metadata = None
        try:
            if login.tokens and login.client:
                context.current_tokens = OAuthToken.model_validate(login.tokens)
                context.client_info = OAuthClientInformationFull.model_validate(login.client)
            if login.metadata:
                context.oauth_metadata = OAuthMetadata.model_validate(login.metadata)
            if login.resource:
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(
                    login.resource
                )
        except ValueError:  # another version wrote it
            context.clear_tokens()
        context.token_expiry_time = login.expires_at
        self._wanted, self._has_login = login.wanted, bool(login.tokens)
        self._stamp = stamp

    async def _auth_flow(self, request: httpx2.Request) -> Flow:
        refused, has_renewed = "", False
        while True:
            # The lock is not held while the server works: calls run side by side.
            async with self.context.lock:
                await self._initialize()
                is_fresh = self.context.is_token_valid() and self._token != refused
                if not is_fresh and self.context.can_refresh_token() and not has_renewed:
                    has_renewed = True
                    response = yield await self._refresh_token()
                    await self._take_renewed(response)
                token = self._token if self.context.is_token_valid() else ""
            request.headers.pop("Authorization", None)
            if token and token != refused:
                request.headers["Authorization"] = f"Bearer {token}"
            response = yield request
            if response.status_code != _UNAUTHORIZED or not token or token == refused:
                break
            refused = token
        if response.status_code == _UNAUTHORIZED:
            why = "does not accept the login any more" if self._has_login else "needs a login"
            self._on_refused(why)
        elif response.status_code == _FORBIDDEN and (scope := missing_scope(response)):
            await in_thread(partial(self._want, scope))
            self._on_refused(f"needs a login with the scope {scope!r}", scope=scope)

    @property
    def _token(self) -> str:
        tokens = self.context.current_tokens
        return tokens.access_token if tokens else ""

    async def _take_renewed(self, response: httpx2.Response) -> None:
        """Take the response to a renewal. Raises `SatchelError` if it may succeed later."""
        if response.status_code >= _SERVER_ERROR or response.status_code == _TOO_MANY:
            raise SatchelError(
                "cannot be reached: its authorization server answered with HTTP status "
                f"{response.status_code}"
            )
        if await self._handle_refresh_response(response):
            self._stamp = self._store.stamp
        else:
            # Another process may just renew it, so that our refresh token is used up.
            await self._store.until_changed(self._stamp, _OTHERS)
            await self._initialize()

    def _want(self, scope: str) -> None:
        """Remember scopes for the next login."""
        login = self._store.load() or SavedLogin()
        scopes = union_scopes(login.wanted, scope) or ""
        if scopes != login.wanted:
            self._store.save(replace(login, wanted=scopes))


def missing_scope(response: httpx2.Response) -> str:
    """Return the scopes that a response says are missing, or `""`."""
    if extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return ""
    return (extract_scope_from_www_auth(response) or "")[:1_000]


class ClientCredentialsAuth(_LoginFlow, ClientCredentialsOAuthProvider):
    """Gets tokens for an agent without a person; they are not stored."""

    def __init__(
        self,
        server: HttpServer | SseServer,
        client: OAuthClient,
        on_refused: Refused,
    ) -> None:
        _require_issuer_check(client.issuer)
        super().__init__(
            server_url=server.url,
            storage=self,
            client_id=client.client_id,
            client_secret=client.client_secret,
            scope=" ".join(client.scopes) or None,
            issuer=client.issuer,
        )
        self.context.client_metadata = _metadata(client, self.context.client_metadata)
        self._on_refused = on_refused

    async def _auth_flow(self, request: httpx2.Request) -> Flow:
        if self.context.is_token_valid():
            self._add_auth_header(request)
            response = yield request
            if response.status_code not in {_UNAUTHORIZED, _FORBIDDEN}:
                return
        requests = 0
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                requests += outgoing is request
                if requests > 1:  # with a new token
                    break
                outgoing = await flow.asend((yield outgoing))
        except StopAsyncIteration:
            return
        except (OAuthFlowError, OAuthTokenError) as problem:
            self._on_refused(explain(problem).message, fix=_FIX_CREDENTIALS)
            raise
        finally:
            await flow.aclose()  # frees its lock: calls run side by side
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            self._on_refused("does not accept the client credentials", fix=_FIX_CREDENTIALS)
        elif response.status_code == _FORBIDDEN and (scope := missing_scope(response)):
            self._on_refused(f"needs the scope {scope!r}", scope=scope, fix=_FIX_CREDENTIALS)


_FIX_CREDENTIALS = "correct client-id, client-secret, issuer and scopes of the server's oauth"


class _ScopedMetadata(OAuthClientMetadata):
    """Metadata whose scopes always include some of our own."""

    own: str = ""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, union_scopes(value, self.own) if name == "scope" else value)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the metadata as it is registered."""
        return super().model_dump(**{**options, "exclude": {"own"}})


def _metadata(
    client: OAuthClient, metadata: OAuthClientMetadata, scope_of_user: str = ""
) -> OAuthClientMetadata:
    own = union_scopes(" ".join(client.scopes), scope_of_user) or ""
    values = {name: getattr(metadata, name) for name in type(metadata).model_fields}
    return _ScopedMetadata(**{**values, "own": own, "scope": union_scopes(metadata.scope, own)})


class BrowserLoginAuth(_LoginFlow):
    """Logs in with the user's browser at the first request, and saves the login."""

    def __init__(
        self,
        server: HttpServer | SseServer,
        store: TokenStore,
        *,
        redirect: str,
        open_address: Callable[[str], Any],
        wait_for_redirect: Callable[[], Any],
    ) -> None:
        client = server.oauth or OAuthClient()
        _require_issuer_check(client.issuer)
        self._issuer, self._secret = client.issuer, client.client_secret
        document = client.client_id if is_valid_client_metadata_url(client.client_id) else None
        previous = store.load()
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(redirect)],
            client_name="Satchel",
            token_endpoint_auth_method=_PUBLIC,
        )
        self._store = store
        if client.client_id and document is None:
            self._configured = OAuthClientInformationFull(
                client_id=client.client_id,
                client_secret=client.client_secret or None,
                issuer=client.issuer or None,
                redirect_uris=metadata.redirect_uris,
                token_endpoint_auth_method=_BASIC if self._secret else _PUBLIC,
            )
        super().__init__(
            server.url,
            _metadata(client, metadata, previous.wanted if previous else ""),
            self,
            lambda address: open_address(with_one_query(address)),
            wait_for_redirect,
            client_metadata_url=document,
        )
        self._has_begun = False

    def _replace_first_response(self, response: httpx2.Response) -> httpx2.Response:
        is_first = not self._has_begun
        self._has_begun = True
        if is_first and response.status_code not in {_UNAUTHORIZED, _FORBIDDEN}:
            # Some servers ask for a login only when a tool is called.
            return httpx2.Response(_UNAUTHORIZED, request=response.request)
        return response

    def _select_authorization_server(self, advertised: list[str]) -> str:
        preferred = (
            one for one in advertised if self._issuer and utils.issuers_match(one, self._issuer)
        )
        return next(preferred, advertised[0])

    def _expected_issuer(self) -> str:
        issuer = super()._expected_issuer()
        if self._issuer and not utils.issuers_match(issuer, self._issuer):
            raise OAuthFlowError("the issuer is not the configured one")
        return issuer

    async def _perform_authorization(self) -> httpx2.Request:
        context, metadata = self.context, self.context.oauth_metadata
        if metadata is not None:
            _require_safe_login(metadata)
        methods = metadata and metadata.token_endpoint_auth_methods_supported
        if self._secret and context.client_info and methods and _BASIC not in methods:
            context.client_info.token_endpoint_auth_method = _POST
        return await super()._perform_authorization()


def _require_safe_login(metadata: OAuthMetadata) -> None:
    """Refuse a login that could be stolen, or whose address misleads its user."""
    why = ""
    for name in _ENDPOINTS:
        address = str(getattr(metadata, name) or "")
        if address and urlsplit(address).username is not None:
            why = f"its {name} has a user name, which hides where it leads"
        elif address and not may_carry_tokens(address):
            why = f"its {name} is not reached over https"
        elif "#" in address:
            why = f"its {name} has a fragment"
    if why:
        _refuse_login(why)
    if _PKCE not in (metadata.code_challenge_methods_supported or ()):
        # The protocol has clients refuse it.
        _refuse_login(
            f"its authorization server does not say that it checks code challenges ({_PKCE})"
        )


def with_one_query(address: str) -> str:
    """Return the address of a login; the SDK adds a query even to an address that has one."""
    endpoint, _, query = address.rpartition("?")
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


class ConfiguredAuth(httpx2.Auth):
    """Sends the credentials in the URL or the headers, and notices that a server refuses them."""

    def __init__(self, server: HttpServer | SseServer, on_refused: Refused) -> None:
        url = httpx2.URL(server.url)
        has_header = any(name.lower() == "authorization" for name in server.headers or ())
        self._basic = None if has_header else httpx2.BasicAuth(url.username, url.password)
        self._on_refused = on_refused

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        """Send the request with the credentials."""
        if self._basic is not None:
            request = next(self._basic.auth_flow(request))
        response = yield request
        if response.status_code == _UNAUTHORIZED:
            self._on_refused(
                "refuses the credentials in its URL or headers",
                fix="correct the URL or the headers of the server",
            )


async def revoke(store: TokenStore) -> bool:
    """Ask the authorization server to end the stored login. Return whether it did."""
    login = store.load()
    if login is None or not login.tokens or not (url := login.metadata.get("revocation_endpoint")):
        return False
    if not may_carry_tokens(url):
        return False
    tokens, client = login.tokens, login.client
    data = {
        "token": tokens.get("refresh_token") or tokens.get("access_token", ""),
        "client_id": client.get("client_id", ""),
        # Empty counts as left out (RFC 6749, 3.1); servers of the SDK refuse a form without it.
        "client_secret": "",
    }
    auth: Any = None
    if secret := client.get("client_secret"):
        if client.get("token_endpoint_auth_method") == _POST:
            data["client_secret"] = secret
        else:
            auth = (data["client_id"], secret)
    try:
        async with httpx2.AsyncClient(timeout=10) as http:
            return (await http.post(url, data=data, auth=auth)).is_success
    except httpx2.HTTPError:
        return False
