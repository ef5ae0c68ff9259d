"""Attestations of an index: a server on this machine, real signatures, and a stand-in for pip."""

import http.server
import json
import sys
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from satchel.errors import SatchelError
from satchel.setup import index_attestations
from satchel.setup.artefact_signatures import digest_of_file
from satchel.setup.index_attestations import attested
from satchel.setup.pip_packages import PipPackage, index_urls, requirement, wheel_report

SIGNED = Path(__file__).parents[1] / "data" / "signed"
FILE = "gitlab_oidc_project-0.0.3.tar.gz"
PAGE = "application/vnd.pypi.simple.v1+json"


class _Index(http.server.BaseHTTPRequestHandler):
    def __init__(self, pages, *args):
        self.pages = pages
        super().__init__(*args)

    def do_GET(self):
        kind, text = self.pages.get(self.path, ("", None))
        is_wanted = text is not None and self.headers["Accept"] in {kind, "*/*"}
        self.send_response(200 if is_wanted else 404)
        self.end_headers()
        self.wfile.write((text if is_wanted else "").encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def index(monkeypatch):
    """An index that offers one signed file, and pip that would install it."""
    attestation = json.loads((SIGNED / f"{FILE}.publish.attestation").read_text())
    publisher = {"kind": "GitLab", "repository": "a/b", "workflow_filepath": "x.yml"}
    bundle = {"publisher": publisher, "attestations": [attestation]}
    digest = digest_of_file(str(SIGNED / FILE))
    file = {"filename": FILE, "hashes": {"sha256": digest}, "provenance": "/integrity/p"}
    pages = {
        "/simple/gitlab-oidc-project/": (PAGE, json.dumps({"files": [file]})),
        "/integrity/p": ("*/*", json.dumps({"version": 1, "attestation_bundles": [bundle]})),
    }
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Index, pages)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/simple"
        report = {
            "metadata": {"name": "GitLab_OIDC.project", "version": "0.0.3"},
            "download_info": {
                "url": f"http://127.0.0.1/files/{FILE}",
                "archive_info": {"hashes": {"sha256": digest}},
            },
        }
        monkeypatch.setattr(index_attestations, "index_urls", lambda: (f"{url}/none", url))
        monkeypatch.setattr(
            index_attestations, "wheel_report", lambda _: json.dumps({"install": [report]})
        )
        yield pages, file, report
        server.shutdown()
        thread.join()


def package(text: str = "gitlab-oidc-project>=0.0.1") -> PipPackage:
    result = requirement(text)
    assert result is not None
    return result


def change(index, **fields):
    pages, file, _ = index
    content = json.dumps({"files": [{**file, **fields}]})
    pages["/simple/gitlab-oidc-project/"] = (PAGE, content)


def test_the_signer_of_the_wheel_is_known_and_only_that_content_is_installed(index):
    result = attested(package())
    (signer,) = result.signers
    assert signer.issuer == "https://gitlab.com"
    assert result.note == f"signed by {signer}, as the index attests"
    assert (result.package.version, result.package.sha256) == (
        "0.0.3",
        index[1]["hashes"]["sha256"],
    )
    assert not result.package.is_file


@pytest.mark.parametrize("provenance", [None, "", ...])
def test_without_an_attestation_it_is_unsigned(index, provenance):
    fields = {} if provenance is ... else {"provenance": provenance}
    if provenance is ...:
        index[1].pop("provenance")
    change(index, **fields)
    result = attested(package())
    assert result.note == f"unsigned: the index has no attestation for {FILE}"
    assert (result.signers, result.package) == ((), package())


def test_an_attestation_of_other_content_is_an_error(index):
    index[2]["download_info"]["archive_info"]["hashes"]["sha256"] = "a" * 64
    change(index, hashes={"sha256": "a" * 64})
    with pytest.raises(SatchelError, match=r"/integrity/p: does not verify.*nothing was taken"):
        attested(package())


@pytest.mark.parametrize("page", ["<html>", "[]", "null", '{"files": 3}', '{"files": [4]}', None])
def test_an_index_without_a_page_in_json_verifies_nothing(index, page):
    index[0]["/simple/gitlab-oidc-project/"] = (PAGE if page else "text/html", page or "<a>")
    result = attested(package())
    assert result.note.startswith("not verified: ")
    assert (result.signers, result.package) == ((), package())


def test_a_file_with_another_digest_is_another_file(index):
    change(index, hashes={"sha256": "b" * 64})
    assert attested(package()).note == f"not verified: no index lists {FILE}"


@pytest.mark.parametrize("report", ["", "{}", '{"install": []}', '{"install": [{}]}', "[1]"])
def test_a_pip_that_names_no_wheel_verifies_nothing(index, monkeypatch, report):
    monkeypatch.setattr(index_attestations, "wheel_report", lambda _: report)
    result = attested(package())
    assert result.note == "not verified: pip does not say which wheel it would install"


def test_what_is_from_no_index_is_not_verified(index):
    result = attested(package("x @ git+https://example.org/x"))
    assert result.note == "not verified: it is not from an index"


def test_without_the_extra_that_is_said(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "satchel.setup.signature_verification", None)
    assert "not verified; to verify it, " in attested(package()).note
    assert "'.[signatures]' in a clone" in attested(package()).note


def test_the_indexes_are_those_of_pip(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/a")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:1/b http://127.0.0.1:1/c")
    assert index_urls()[0] == "http://127.0.0.1:1/a"
    assert set(index_urls()) >= {f"http://127.0.0.1:1/{name}" for name in "abc"}


@pytest.fixture
def links(tmp_path, monkeypatch) -> Path:
    """A folder in place of an index, with a wheel."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "acme_never-1.2-py3-none-any.whl", "w") as wheel:
        info = "acme_never-1.2.dist-info"
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: acme-never\nVersion: 1.2\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return tmp_path


def test_pip_says_which_wheel_it_would_install_and_installs_no_other(links):
    (item,) = json.loads(wheel_report("acme-never>=1"))["install"]
    digest = digest_of_file(str(links / "acme_never-1.2-py3-none-any.whl"))
    assert item["download_info"]["archive_info"]["hashes"]["sha256"] == digest
    swapped = replace(package("acme-never"), sha256="0" * 64, version="1.2")
    with pytest.raises(SatchelError, match="could not install"):
        swapped.install()
    assert find_spec("acme_never") is None


def test_a_source_is_not_built_to_see_who_signed_it(links):
    project = links / "acme_built-1.0"
    project.mkdir()
    (project / "setup.py").write_text(f"open({str(links / 'ran')!r}, 'w')\n")
    with tarfile.open(links / "acme_built-1.0.tar.gz", "w:gz") as archive:
        archive.add(project, "acme_built-1.0")
    with pytest.raises(SatchelError, match="pip finds no wheel"):
        wheel_report("acme-built")
    assert not (links / "ran").exists()
