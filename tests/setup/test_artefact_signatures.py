"""Signatures beside a file: who signed it, and what does not verify."""

import base64
import json
import shutil
import sys
from pathlib import Path

import pytest

from satchel.errors import SatchelError
from satchel.setup.artefact_signatures import (
    Signer,
    digest_of_file,
    recorded,
    require_signer,
    signature_note,
    signers_of,
    time_of,
)
from satchel.setup.signature_verification import verified_signers

SIGNED = Path(__file__).parents[1] / "data" / "signed"
GITHUB = "https://token.actions.githubusercontent.com"
MODELS = Signer(
    "https://github.com/trailofbits/pypi-attestation-models/.github/workflows/release.yml"
    "@refs/tags/v0.0.4a2",
    GITHUB,
)
SDIST, FOREIGN = "pypi_attestation_models-0.0.4a2.tar.gz", "gitlab_oidc_project-0.0.3.tar.gz"
WHEEL = "rfc8785-0.1.2-py3-none-any.whl"


@pytest.fixture
def files(tmp_path) -> Path:
    """A copy of the signed files."""
    return Path(shutil.copytree(SIGNED, tmp_path / "signed"))


def signers(path: Path) -> tuple[Signer, ...]:
    return signers_of(str(path), digest_of_file(str(path)))


def test_a_bundle_of_sigstore_says_who_signed_it(files):
    result = signers(files / SDIST)
    assert result == (MODELS,)
    assert time_of(result) == "2024-06-10T19:47:25+00:00"
    assert time_of(()) == ""
    assert signature_note(SDIST, result) == f"signed by {MODELS.identity} (issuer {GITHUB})"
    assert recorded(result) == f"{MODELS.identity.partition('@')[0]} (issuer {GITHUB})"


def test_an_attestation_of_pep_740_says_who_signed_it(files):
    (item,) = signers(files / FOREIGN)
    assert item.issuer == "https://gitlab.com"


def test_a_plain_signature_of_a_wheel_says_who_signed_it(files):
    (item,) = signers(files / WHEEL)
    workflow = "https://github.com/trailofbits/rfc8785.py/.github/workflows/release.yml"
    assert item == Signer(f"{workflow}@refs/tags/v0.1.2", GITHUB)


def test_the_provenance_of_an_index_says_who_signed_it():
    path = SIGNED / "pypi_attestations-0.0.19.tar.gz.provenance"
    attestation = json.loads(path.read_text())["attestation_bundles"][0]["attestations"][0]
    statement = json.loads(base64.b64decode(attestation["envelope"]["statement"]))
    digest = statement["subject"][0]["digest"]["sha256"]
    (item,) = verified_signers("pypi_attestations-0.0.19.tar.gz", digest, str(path))
    assert item.issuer == GITHUB


def test_a_provenance_without_an_attestation_is_an_error(files):
    none = {"version": 1, "attestation_bundles": []}
    (files / f"{SDIST}.provenance").write_text(json.dumps(none))
    with pytest.raises(SatchelError, match=r"does not verify|contains no signature"):
        signers(files / SDIST)


@pytest.mark.parametrize("name", [SDIST, FOREIGN, WHEEL])
def test_changed_content_does_not_verify(files, name):
    with (files / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(SatchelError, match="does not verify"):
        signers(files / name)


def test_a_signature_of_other_content_by_the_same_library_does_not_verify(files):
    shutil.copy(files / f"{SDIST}.sigstore", files / f"{FOREIGN}.sigstore")
    with pytest.raises(SatchelError, match="it is about other content"):
        signers(files / FOREIGN)


def test_a_signature_under_other_keys_than_those_of_sigstore_does_not_verify(files):
    shutil.copy(files / "staging.sigstore", files / f"{WHEEL}.sigstore")
    with pytest.raises(SatchelError, match="does not verify"):
        signers(files / WHEEL)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '"\ud7ff"', "{" * 10_000, "\x00"])
@pytest.mark.parametrize("ending", [".sigstore.json", ".publish.attestation", ".provenance"])
def test_a_broken_signature_is_an_error(files, ending, text):
    (files / f"{SDIST}{ending}").write_text(text)
    with pytest.raises(SatchelError, match=r"does not verify|contains no signature") as caught:
        signers(files / SDIST)
    assert "pydantic" not in str(caught.value)


def test_a_file_that_is_no_signature_is_named_as_that(files):
    (files / f"{SDIST}.sigstore.json").write_text("{}")
    with pytest.raises(SatchelError, match="does not verify: it is not a sigstore bundle; nothing"):
        signers(files / SDIST)


def test_a_signature_that_leads_nowhere_is_an_error(files):
    (files / f"{FOREIGN}.sigstore").symlink_to("nowhere")
    with pytest.raises(SatchelError, match="does not verify"):
        signers(files / FOREIGN)


def test_without_the_extra_a_signature_is_an_error_with_the_fix(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "satchel.setup.signature_verification", None)
    with pytest.raises(SatchelError, match=r"\.\[signatures\].* in a clone"):
        signers(files / SDIST)


def test_without_a_signature_it_is_unsigned(tmp_path):
    path = tmp_path / "a.whl"
    path.touch()
    assert signers(path) == ()
    assert signature_note(str(path), ()) == "unsigned"
    (tmp_path / "a.whl.asc").touch()
    assert signature_note(str(path), ()) == "unsigned; a.whl.asc was not checked"


def test_a_required_signer_is_named_with_or_without_its_tag():
    require_signer(None, (), "here")
    require_signer(MODELS, (MODELS,), "here")
    require_signer(Signer(MODELS.identity.partition("@")[0], GITHUB), (MODELS,), "here")
    for signer in (
        Signer(MODELS.identity, "https://gitlab.com"),
        Signer("somebody@example.org", GITHUB),
        Signer(MODELS.identity.replace("v0.0.4a2", "v0.0.5"), GITHUB),
    ):
        with pytest.raises(SatchelError, match="not signed by"):
            require_signer(signer, (MODELS,), "here")
    with pytest.raises(SatchelError, match="is unsigned"):
        require_signer(MODELS, (), "here")
