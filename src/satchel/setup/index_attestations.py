"""Verify what an index attests about the wheel that pip would install (PEP 740).

pip says which file that is; nothing of it is built or installed. The index says in its JSON pages
(PEP 691) where the attestations are.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from satchel.errors import SatchelError, install_hint
from satchel.files.file_reader import read_regular
from satchel.importing.distributions import normalized
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.artefact_signatures import Signer
from satchel.setup.downloads import AbsentFileError, Download, shown_url
from satchel.setup.pip_packages import PipPackage, index_urls, wheel_report
from satchel.text import one_line

_PAGE = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestedPackage:
    """A package of an index, and who signed its wheel."""

    package: PipPackage
    """With the digest of the wheel, if it is signed."""
    signers: tuple[Signer, ...] = ()
    note: str


def attested(package: PipPackage) -> AttestedPackage:
    """Return who signed the wheel that pip would install, or why that is unknown.

    Raises `SatchelError` if the index has an attestation that does not verify.
    """
    try:
        from satchel.setup.signature_verification import verified_signers  # lazy: an extra
    except ImportError:
        fix = install_hint("signatures")
        return AttestedPackage(package=package, note=f"not verified; to verify it, {fix}")
    with tempfile.TemporaryDirectory(prefix="satchel-install-") as folder:
        try:
            wheel = _wheel(package.target)
            url = _provenance_url(wheel, os.path.join(folder, "page.json"))
            path = os.path.join(folder, f"{wheel.filename}.provenance")
            if url:
                _download(url, path)
        except SatchelError as problem:
            return AttestedPackage(package=package, note=one_line(f"not verified: {problem}"))
        if not url:
            note = f"unsigned: the index has no attestation for {wheel.filename}"
            return AttestedPackage(package=package, note=note)
        try:
            signers = verified_signers(wheel.filename, wheel.sha256, path)
        except SatchelError as problem:
            raise SatchelError(problem.message, where=shown_url(url), fix=problem.fix) from None
    package = replace(package, sha256=wheel.sha256, version=wheel.version)
    note = f"signed by {' and '.join(map(str, signers))}, as the index attests"
    return AttestedPackage(package=package, signers=signers, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wheel:
    project: str
    version: str
    filename: str
    sha256: str


def _wheel(requirement: str) -> _Wheel:
    """Return the wheel that pip would install. Raises `SatchelError`."""
    if "@" in requirement:
        raise SatchelError("it is not from an index")
    try:
        (item,) = json.loads(wheel_report(requirement))["install"]
        return _Wheel(
            project=str(item["metadata"]["name"]),
            version=str(item["metadata"]["version"]),
            filename=unquote(urlsplit(item["download_info"]["url"]).path).rpartition("/")[2],
            sha256=str(item["download_info"]["archive_info"]["hashes"]["sha256"]),
        )
    except (ValueError, KeyError, TypeError):
        raise SatchelError("pip does not say which wheel it would install") from None


def _provenance_url(wheel: _Wheel, target: str) -> str:
    """Return where the attestations of a wheel are, `""` if its index has none.

    Raises `SatchelError` if no index lists the wheel in this form.
    """
    problems: list[str] = []
    for index in index_urls():
        url = f"{index.rstrip('/')}/{normalized(wheel.project)}/"
        try:
            _download(url, target, accept=_PAGE)
            for file in _files(target):
                if file.get("filename") == wheel.filename and _sha256(file) == wheel.sha256:
                    return urljoin(url, file["provenance"]) if file.get("provenance") else ""
        except AbsentFileError:
            continue
        except (SatchelError, ValueError, TypeError, AttributeError) as problem:
            is_ours = isinstance(problem, SatchelError)
            problems.append(str(problem) if is_ours else "the index has no page in JSON (PEP 691)")
        finally:
            with suppress(FileNotFoundError):
                os.unlink(target)
    raise SatchelError(problems[0] if problems else f"no index lists {wheel.filename}")


def _files(page: str) -> Iterator[dict[str, Any]]:
    data, _ = read_regular(page, 64 * MIB)
    content = json.loads(data)
    yield from content["files"] if isinstance(content, dict) and "files" in content else ()


def _sha256(file: dict[str, Any]) -> str:
    hashes = file.get("hashes")
    return str(hashes.get("sha256", "")) if isinstance(hashes, dict) else ""


def _download(url: str, target: str, *, accept: str = "") -> None:
    Download(
        url=url, target=target, progress=lambda *_: None, accept=accept,
        most_bytes=64 * MIB, tries=2,
    ).run()  # fmt: skip
