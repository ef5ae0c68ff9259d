"""Downloading one file: resumed where it broke off, and checked before it gets its name."""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from satchel.errors import DefinitionError, SatchelError
from satchel.settings import MIB
from satchel.sources.atomic_write import write_atomic
from satchel.text import one_line, shorten

_CHUNK = 256 * 1024
_TIMEOUT = 30.0
_LONGEST_PAUSE = 30.0
# What a server may answer now and not in a moment.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_PARTIAL, _RANGE_REFUSED = 206, 416
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file to fetch: `target` is its path, `sha256` its digest if it is known.

    `told` hears of the bytes that are there and of all, `None` while that is not known. `tries`
    counts the failures in a row that brought nothing new.
    """

    url: str
    target: str
    told: Callable[[int, int | None], object]
    sha256: str = ""
    most_bytes: int = 16 * 1024 * MIB
    tries: int = 5
    pause: float = 1.0
    """Seconds before the second try; each further one waits twice as long."""

    @property
    def part(self) -> str:
        """Return the file that holds what came so far."""
        folder, name = os.path.split(self.target)
        return os.path.join(folder, f".{name}.part")

    @property
    def mark(self) -> str:
        """Return the file that says which version of the file the part is of."""
        return f"{self.part}.of"

    def run(self) -> None:
        """Fetch the file. Raises `SatchelError`; what came so far is kept for the next time."""
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise DefinitionError("sha256= is no SHA-256", fix="give 64 hexadecimal digits")
        _require_web(self.url)
        if self.sha256 and _digest(self.target) == self.sha256.lower():
            return
        try:
            os.makedirs(os.path.dirname(self.target), exist_ok=True)
            self._fetch_in_several_tries()
            self._finish()
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise SatchelError(f"cannot be written: {reason}", where=self.target) from None

    def _fetch_in_several_tries(self) -> None:
        failures, furthest = 0, _size(self.part)
        while True:
            try:
                self._fetch()
            except _TransientError as problem:
                now = _size(self.part)
                failures = 1 if now > furthest else failures + 1
                furthest = max(furthest, now)
                if failures >= self.tries:
                    kept = "; what came so far is kept, and the next time goes on there"
                    told = f"{problem}{kept if _size(self.part) else ''}"
                    raise SatchelError(told, where=shown_url(self.url)) from None
                wait = problem.wait or self.pause * 2 ** (failures - 1)
                time.sleep(min(wait, _LONGEST_PAUSE))
            else:
                return

    def _fetch(self) -> None:
        """Ask once for what is missing."""
        have, version = _size(self.part), self._version()
        if not version:
            have = 0  # nobody could tell whether the rest is of the same file
        headers = {"User-Agent": "satchel", "Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": version}
        with _faults_told(self.url), _opened(self.url, headers) as answer:
            if answer.status == _RANGE_REFUSED:
                if answer.headers.get("Content-Range", "") == f"bytes */{have}":
                    return  # the part is all of it
                self._start_over("the server has no such part of the file")
            start, total = _extent(answer)
            if answer.status == _PARTIAL:
                if start != have or total is None:
                    self._start_over("the server sent another part of the file than was asked for")
                if _is_other(answer, version):
                    self._start_over("the file on the server is another one now")
            self._require_size(total or 0)
            if not start:
                _remove(self.part)
                self._remember(answer)
            self._take(answer, start, total)

    def _take(self, answer: Any, start: int, total: int | None) -> None:
        done = start
        with open(self.part, "ab") as file:
            for chunk in _chunks(answer):
                done += len(chunk)
                self._require_size(done)
                if total is not None and done > total:
                    self._start_over("the server sent more than it said")
                file.write(chunk)
                self.told(done, total)
        if total is not None and done < total:
            raise _TransientError(f"the connection ended after {done} of {total} bytes")

    def _require_size(self, size: int) -> None:
        if size > self.most_bytes:
            self._forget()
            fault = f"is larger than {self.most_bytes} bytes (most_bytes)"
            raise SatchelError(fault, where=shown_url(self.url))

    def _start_over(self, why: str) -> None:
        self._forget()
        raise _TransientError(why)

    def _forget(self) -> None:
        _remove(self.part)
        _remove(self.mark)

    def _version(self) -> str:
        """Return what the server called the version that the part is of, `""` if it said nothing.

        A part of another address is not gone on with.
        """
        try:
            with open(self.mark, encoding="utf-8") as file:
                url, version = file.read().split("\n")
        except (OSError, ValueError):
            return ""
        return version if url == self._address() else ""

    def _remember(self, answer: Any) -> None:
        version = answer.headers.get("ETag", "")
        # A weak tag does not promise the same bytes.
        if not version or version.startswith("W/"):
            version = answer.headers.get("Last-Modified", "")
        write_atomic(self.mark, f"{self._address()}\n{version}".encode(), private=True)

    def _address(self) -> str:
        """Name the address; it may hold a secret, so it is not written down as it is."""
        return hashlib.sha256(self.url.encode()).hexdigest()

    def _finish(self) -> None:
        """Give the file its name, if it is the right one."""
        if self.sha256 and (found := _digest(self.part)) != self.sha256.lower():
            self._forget()
            told = f"has the sha256 {found}, not {self.sha256.lower()}; it was thrown away"
            raise SatchelError(told, where=shown_url(self.url))
        with open(self.part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(self.part, self.target)
        _remove(self.mark)


class _TransientError(Exception):
    """Something that may be better in a moment; `wait` is how long the server asks to wait."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


def shown_url(url: str) -> str:
    """Return an address as it may be told: without a password, and without what is asked."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def last_part(url: str) -> str:
    """Return the last part of an address. Raises `DefinitionError` for one that is not asked."""
    _require_web(url)
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _require_web(url: str) -> None:
    if fault := _fault_of(url):
        raise DefinitionError(fault)


def _fault_of(url: str) -> str:
    """Say why an address is not asked, without a word of it; `""` if it is."""
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


def _is_other(answer: Any, version: str) -> bool:
    """Tell whether a part is of another version of the file than the one that was asked for."""
    name = "ETag" if version.startswith('"') else "Last-Modified"
    # A server may leave out what the client knows.
    return bool(answer.headers.get(name, version) != version)


def _opened(url: str, headers: dict[str, str]) -> Any:
    """Ask for an address; whatever the server answers comes back, 416 included."""
    # Lazy: most plugins download nothing.
    from http.client import InvalidURL
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Redirects(HTTPRedirectHandler):
        def http_error_302(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any) -> Any:
            try:
                return super().http_error_302(req, fp, code, msg, headers)
            except HTTPError:
                told = "leads on in circles, or to what is neither http:// nor https://"
                raise SatchelError(told, where=shown_url(url)) from None
            finally:
                fp.close()

        http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

        def redirect_request(  # noqa: PLR0917 - the handler's protocol
            self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any
        ) -> Any:
            old, new = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
            if new not in {"http", "https"} or (old, new) == ("https", "http"):
                told = f"leads on to {new}://, which is not followed from {old}://"
                raise SatchelError(told, where=shown_url(url))
            if fault := _fault_of(newurl):
                raise SatchelError(f"leads on elsewhere: {fault}", where=shown_url(url))
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    request = Request(url, headers=headers)  # noqa: S310 - the scheme was looked at
    try:
        return build_opener(Redirects()).open(request, timeout=_TIMEOUT)
    except HTTPError as answer:
        if answer.status == _RANGE_REFUSED and "Range" in headers:
            return answer
        raise
    except (InvalidURL, ValueError):  # what it says may hold a secret of a proxy's address
        told = "is or leads on to no address that can be asked, or a proxy's is none"
        raise SatchelError(told, where=shown_url(url)) from None


@contextmanager
def _faults_told(url: str) -> Iterator[None]:
    """Tell what may be better in a moment from what will not."""
    import http.client
    import ssl
    from urllib.error import HTTPError, URLError

    where = shown_url(url)
    try:
        yield
    except HTTPError as answer:
        answer.close()
        # Not the reason that stands there: with some it is an address, and so maybe a secret.
        phrase = http.client.responses.get(answer.code, "")
        told = f"the server answers {answer.code} {phrase}".rstrip()
        if answer.status in _TRANSIENT:
            raise _TransientError(told, _seconds(answer.headers.get("Retry-After"))) from None
        raise SatchelError(told, where=where) from None
    except (URLError, http.client.HTTPException, ssl.SSLError, ConnectionError, TimeoutError) as it:
        cause = it.reason if isinstance(it, URLError) else it
        if isinstance(cause, ssl.SSLCertVerificationError):
            told = f"the certificate is not trusted: {cause.verify_message}"
            raise SatchelError(told, where=where) from None
        reason = shorten(one_line(str(cause)), _LONGEST_REASON)
        raise _TransientError(f"cannot be reached: {reason}") from None


def _seconds(told: str | None) -> float:
    return float(told) if told and told.isdecimal() else 0.0


def _extent(answer: Any) -> tuple[int, int | None]:
    """Return where an answer begins in the file, and how large that is if it says so."""
    length = answer.headers.get("Content-Length", "")
    if answer.status != _PARTIAL:
        return 0, int(length) if length.isdecimal() else None
    unit, _, rest = answer.headers.get("Content-Range", "").partition(" ")
    extent, _, total = rest.partition("/")
    start = extent.partition("-")[0]
    if unit != "bytes" or not start.isdecimal():
        return -1, None
    return int(start), int(total) if total.isdecimal() else None


def _chunks(answer: Any) -> Iterator[bytes]:
    while chunk := answer.read(_CHUNK):
        yield chunk


def _digest(path: str) -> str:
    """Return the SHA-256 of a file, `""` if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
