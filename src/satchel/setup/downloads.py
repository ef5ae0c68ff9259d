"""Download one file with pooch; its size is limited, and it is checked before it is used."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from satchel.errors import DefinitionError, SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.folder_placement import hidden_beside
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    import requests

_CHUNK = 256 * 1024
_TIMEOUT = 30.0
# Statuses for which another try may succeed.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
# Some stores answer 403 for what they do not have.
_ABSENT = frozenset({403, 404, 410})
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file to download to the path `target`; `sha256` is its digest, if known.

    `progress` receives the number of bytes so far, and the total or `None`.
    """

    url: str
    target: str
    progress: Callable[[int, int | None], object]
    sha256: str = ""
    accept: str = ""
    """The kind of content to ask for."""
    most_bytes: int = 16 * 1024 * MIB
    tries: int = 5

    def run(self) -> None:
        """Download the file. Raises `SatchelError`; the target is then unchanged."""
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise DefinitionError("sha256= is not a SHA-256", fix="give 64 hexadecimal digits")
        _require_web(self.url)
        # Lazy: most plugins download nothing.
        import pooch

        # Its messages go to the terminal, and contain the address with its secrets.
        pooch.get_logger().setLevel("WARNING")
        try:
            if self.sha256 and os.path.isfile(self.target) and not self._wrong_digest(self.target):
                return
            # A new name, because pooch does not download a file that exists.
            staged = hidden_beside(self.target)
            folder, name = os.path.split(staged)
            pooch.create(
                folder,
                base_url="",
                registry={name: None},
                urls={name: self.url},
                retry_if_failed=self.tries - 1,
            ).fetch(name, downloader=self._fetch)
            os.replace(staged, self.target)
        except _TransientError as problem:
            raise SatchelError(str(problem), where=shown_url(self.url)) from None
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise SatchelError(f"cannot write: {reason}", where=self.target) from None

    def _fetch(self, _url: str, path: Any, _pooch: object) -> None:
        """Download the file once; pooch calls this, and retries after a `ValueError`."""
        os.unlink(path)  # pooch creates it private; a new file has the user's default mode
        with (
            _readable_errors(self.url),
            _session(self.url) as session,
            session.get(
                self.url, stream=True, timeout=_TIMEOUT, headers={"Accept": self.accept or "*/*"}
            ) as response,
        ):
            _require_success(response, self.url)
            self._write(response, path)
        if digest := self._wrong_digest(path):
            message = f"has the sha256 {digest}, not {self.sha256.lower()}; it was deleted"
            raise SatchelError(message, where=shown_url(self.url))

    def _write(self, response: "requests.Response", path: str) -> None:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
        self._require_size(total or 0)
        done = 0
        with open(path, "xb") as file:
            # Raw: the checksum is of the file as it is on the server.
            while chunk := response.raw.read(_CHUNK, decode_content=False):
                done += len(chunk)
                self._require_size(done)
                file.write(chunk)
                self.progress(done, total)
            file.flush()
            os.fsync(file.fileno())
        if total is not None and done < total:
            raise _TransientError(f"the connection ended after {done} of {total} bytes")

    def _require_size(self, size: int) -> None:
        if size > self.most_bytes:
            message = f"is larger than {self.most_bytes} bytes (most_bytes)"
            raise SatchelError(message, where=shown_url(self.url))

    def _wrong_digest(self, path: str) -> str:
        """Return the SHA-256 of a file if it is wrong, else `""`."""
        import pooch

        digest: str = pooch.file_hash(path) if self.sha256 else ""
        return "" if digest == self.sha256.lower() else digest


class AbsentFileError(SatchelError):
    """The server does not have the file."""


class _TransientError(ValueError):
    """A failure that may not repeat; a `ValueError`, so that pooch retries."""


def shown_url(url: str) -> str:
    """Return an address without user, password, query and fragment, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def last_part(url: str) -> str:
    """Return the last part of an address. Raises `DefinitionError` if it is not allowed."""
    _require_web(url)
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _require_web(url: str) -> None:
    if fault := _fault_of(url):
        raise DefinitionError(fault)


def _fault_of(url: str) -> str:
    """Return why an address is not allowed, without quoting it; `""` if it is allowed."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        is_valid = parts.scheme in {"http", "https"} and host != "" and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not url.isascii() or any(letter <= " " for letter in url):
        return "an address must begin with http:// or https://, with special characters as %XX"
    if "@" in parts.netloc:
        return "an address must not contain a user name or password; remove them"
    return ""


def _session(url: str) -> "requests.Session":
    """Return a session that refuses redirects from https to http, and to other protocols."""
    import requests
    from requests.adapters import HTTPAdapter

    class Guard(HTTPAdapter):
        scheme = urlsplit(url).scheme

        def send(self, request: Any, *args: Any, **kwargs: Any) -> requests.Response:
            if fault := _fault_of(request.url):
                raise SatchelError(f"redirects to another address: {fault}", where=shown_url(url))
            scheme = urlsplit(request.url).scheme
            if (self.scheme, scheme) == ("https", "http"):
                fault = "redirects from https:// to http://, which is not allowed"
                raise SatchelError(fault, where=shown_url(url))
            self.scheme = scheme
            return super().send(request, *args, **kwargs)

    session = requests.Session()
    session.adapters.clear()
    session.mount("", Guard())
    session.headers.update({"User-Agent": "satchel", "Accept-Encoding": "identity"})
    return session


def _require_success(response: "requests.Response", url: str) -> None:
    import http.client

    if response.ok:
        return
    # Not the reason that the server sends: it may contain an address with a secret.
    phrase = http.client.responses.get(response.status_code, "")
    message = f"the server returned {response.status_code} {phrase}".rstrip()
    if response.status_code in _TRANSIENT:
        raise _TransientError(message)
    is_absent = response.status_code in _ABSENT
    raise (AbsentFileError if is_absent else SatchelError)(message, where=shown_url(url))


@contextmanager
def _readable_errors(url: str) -> Iterator[None]:
    """Replace the errors of requests: their messages contain the whole address."""
    import ssl

    import requests
    import urllib3

    where = shown_url(url)
    try:
        yield
    except _TransientError:
        raise
    except requests.TooManyRedirects:
        raise SatchelError("redirects in a circle", where=where) from None
    except ValueError:  # its message may contain a secret from the proxy's address
        message = "is not a valid address, redirects to an invalid one, or the proxy's is invalid"
        raise SatchelError(message, where=where) from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as problem:
        cause = _first_cause(problem)
        if isinstance(cause, ssl.SSLCertVerificationError):
            message = f"the certificate is not trusted: {cause.verify_message}"
            raise SatchelError(message, where=where) from None
        # Only messages of the operating system: those of the libraries contain addresses.
        is_system = isinstance(cause, OSError) and not isinstance(cause, requests.RequestException)
        reason = str(cause) if is_system else "the connection was closed"
        reason = shorten(one_line(reason), _LONGEST_REASON)
        raise _TransientError(f"cannot be reached: {reason}") from None


def _first_cause(problem: BaseException) -> BaseException:
    while earlier := problem.__cause__ or problem.__context__:
        problem = earlier
    return problem
