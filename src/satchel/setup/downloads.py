"""Download one file with pooch: checked before it gets its name, and bounded in size."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from satchel.errors import DefinitionError, SatchelError
from satchel.settings import MIB
from satchel.setup.folder_placement import hidden_beside
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    import requests

_CHUNK = 256 * 1024
_TIMEOUT = 30.0
# Statuses for which another try may succeed.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file to fetch: `target` is its path, `sha256` its digest if it is known.

    `progress` receives the number of bytes that arrived and the total, `None` if it is unknown.
    """

    url: str
    target: str
    progress: Callable[[int, int | None], object]
    sha256: str = ""
    most_bytes: int = 16 * 1024 * MIB
    tries: int = 5

    def run(self) -> None:
        """Fetch the file. Raises `SatchelError`, and has then changed nothing."""
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise DefinitionError("sha256= is no SHA-256", fix="give 64 hexadecimal digits")
        _require_web(self.url)
        # Lazy: most plugins download nothing.
        import pooch

        # Its messages are for the terminal, and show the address with its secrets.
        pooch.get_logger().setLevel("WARNING")
        try:
            if self.sha256 and os.path.isfile(self.target) and not self._wrong_digest(self.target):
                return
            # A new name, because pooch does not fetch a file again that is there.
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
            raise SatchelError(f"cannot be written: {reason}", where=self.target) from None

    def _fetch(self, _url: str, path: Any, _pooch: object) -> None:
        """Fetch the file once, as a downloader of pooch, which retries after `ValueError`."""
        os.unlink(path)  # pooch made it private; created again, it gets the user's usual mode
        with (
            _readable_errors(self.url),
            _session(self.url) as session,
            session.get(self.url, stream=True, timeout=_TIMEOUT) as response,
        ):
            _require_success(response, self.url)
            self._write(response, path)
        if digest := self._wrong_digest(path):
            fault = f"has the sha256 {digest}, not {self.sha256.lower()}; it was thrown away"
            raise SatchelError(fault, where=shown_url(self.url))

    def _write(self, response: "requests.Response", path: str) -> None:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
        self._require_size(total or 0)
        done = 0
        with open(path, "xb") as file:
            # Raw: a checksum is that of the file as it lies on the server.
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
            fault = f"is larger than {self.most_bytes} bytes (most_bytes)"
            raise SatchelError(fault, where=shown_url(self.url))

    def _wrong_digest(self, path: str) -> str:
        """Return the SHA-256 of a file if it is not the expected one, else `""`."""
        import pooch

        digest: str = pooch.file_hash(path) if self.sha256 else ""
        return "" if digest == self.sha256.lower() else digest


class _TransientError(ValueError):
    """A failure after which another try may succeed; pooch retries after a `ValueError`."""


def shown_url(url: str) -> str:
    """Return an address for a message: without user, password, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def last_part(url: str) -> str:
    """Return the last part of an address. Raises `DefinitionError` for one that is refused."""
    _require_web(url)
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _require_web(url: str) -> None:
    if fault := _fault_of(url):
        raise DefinitionError(fault)


def _fault_of(url: str) -> str:
    """Return why an address is refused, without quoting it; `""` if it is allowed."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        is_fine = parts.scheme in {"http", "https"} and host != "" and parts.port != 0
    except ValueError:
        is_fine = False
    if not is_fine or not url.isascii() or any(letter <= " " for letter in url):
        return "only http:// and https:// addresses are downloaded; write other letters as %XX"
    if "@" in parts.netloc:
        return "an address with a user's name or password in it is not downloaded; take them out"
    return ""


def _session(url: str) -> "requests.Session":
    """Return a session that refuses redirects to anything but the web, and from https to http."""
    import requests
    from requests.adapters import HTTPAdapter

    class Guard(HTTPAdapter):
        scheme = urlsplit(url).scheme

        def send(self, request: Any, *args: Any, **kwargs: Any) -> requests.Response:
            if fault := _fault_of(request.url):
                raise SatchelError(f"redirects elsewhere: {fault}", where=shown_url(url))
            scheme = urlsplit(request.url).scheme
            if (self.scheme, scheme) == ("https", "http"):
                fault = "redirects to http://, which is not followed from https://"
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
    # Not the server's own reason: with some servers it is an address, and so maybe a secret.
    phrase = http.client.responses.get(response.status_code, "")
    fault = f"the server answers {response.status_code} {phrase}".rstrip()
    if response.status_code in _TRANSIENT:
        raise _TransientError(fault)
    raise SatchelError(fault, where=shown_url(url))


@contextmanager
def _readable_errors(url: str) -> Iterator[None]:
    """Replace the errors of requests, whose messages hold the whole address."""
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
    except ValueError:  # its message may hold a secret of a proxy's address
        fault = "is not a valid address, redirects to an invalid one, or the proxy's is invalid"
        raise SatchelError(fault, where=where) from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as problem:
        cause = _first_cause(problem)
        if isinstance(cause, ssl.SSLCertVerificationError):
            fault = f"the certificate is not trusted: {cause.verify_message}"
            raise SatchelError(fault, where=where) from None
        # Only what the system says: the messages of the libraries hold addresses.
        is_plain = isinstance(cause, OSError) and not isinstance(cause, requests.RequestException)
        reason = str(cause) if is_plain else "the connection broke off"
        reason = shorten(one_line(reason), _LONGEST_REASON)
        raise _TransientError(f"cannot be reached: {reason}") from None


def _first_cause(problem: BaseException) -> BaseException:
    while earlier := problem.__cause__ or problem.__context__:
        problem = earlier
    return problem
