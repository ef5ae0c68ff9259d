"""Verify bundles of sigstore and attestations of PEP 740; needs the extra `signatures`.

Everything is verified offline, with the keys that the library brings or has stored.
"""

import json
import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from cryptography.hazmat import asn1
from cryptography.x509 import (
    Certificate,
    ExtensionNotFound,
    ObjectIdentifier,
    RFC822Name,
    SubjectAlternativeName,
    UniformResourceIdentifier,
    UnrecognizedExtension,
)
from pypi_attestations import Attestation, Distribution, Provenance
from sigstore.hashes import Hashed
from sigstore.models import Bundle
from sigstore.verify import Verifier
from sigstore_models.common.v1 import HashAlgorithm

from satchel.errors import SatchelError
from satchel.files.file_reader import read_regular
from satchel.settings import MIB
from satchel.setup.artefact_signatures import BUNDLES, Signer
from satchel.text import one_line, shorten

T = TypeVar("T")

_ISSUER, _OLD_ISSUER = "1.3.6.1.4.1.57264.1.8", "1.3.6.1.4.1.57264.1.1"


class _SignerReader:
    """A policy for the verifier that accepts everybody, and remembers who it is."""

    def __init__(self) -> None:
        self.signers: list[Signer] = []

    def verify(self, cert: Certificate) -> None:
        """Read the signer; the verifier calls this once the certificate was verified."""
        names = cert.extensions.get_extension_for_class(SubjectAlternativeName).value
        identities: list[str] = [
            *names.get_values_for_type(RFC822Name),
            *names.get_values_for_type(UniformResourceIdentifier),
        ]
        if len(identities) != 1:
            raise ValueError("the certificate does not name one signer")
        # A certificate lasts minutes, so its start is about the time of the signature.
        signed = cert.not_valid_before_utc.isoformat()
        self.signers.append(Signer(identities[0], _issuer(cert), signed))


def verified_signers(name: str, sha256: str, signature: str) -> tuple[Signer, ...]:
    """Return who signed content, by one signature. Raises `SatchelError` if it does not verify."""
    # What it logs is about updates of the keys, which are not wanted.
    logging.getLogger("sigstore").setLevel(logging.ERROR)
    reader = _SignerReader()
    try:
        data, _ = read_regular(signature, 4 * MIB)
        if signature.endswith(BUNDLES):
            _verify_bundle(_parsed(Bundle.from_json, data, "sigstore bundle"), sha256, reader)
        else:
            content = Distribution(name=name, digest=sha256)
            attestations = [*_attestations(signature, data)]
            for item in attestations:
                item.verify(reader, content, offline=True)
    except Exception as problem:  # whatever a forged signature causes
        reason = shorten(one_line(str(problem)) or type(problem).__name__, 300)
        raise SatchelError(
            f"does not verify: {reason}; nothing was taken",
            where=signature,
            fix="get both files again from who publishes them; the keys may also be new: "
            "run 'sigstore plumbing update-trust-root'",
        ) from None
    if not reader.signers:
        raise SatchelError("contains no signature; nothing was taken", where=signature)
    return tuple(reader.signers)


def _verify_bundle(bundle: Bundle, digest: str, reader: _SignerReader) -> None:
    verifier = Verifier.production(offline=True)
    hashed = Hashed(algorithm=HashAlgorithm.SHA2_256, digest=bytes.fromhex(digest))
    if "messageSignature" in json.loads(bundle.to_json()):
        verifier.verify_artifact(hashed, bundle, reader)
        return
    kind, payload = verifier.verify_dsse(bundle, reader)
    if kind != "application/vnd.in-toto+json":
        raise ValueError(f"its content is of an unknown kind: {kind}")
    subjects = json.loads(payload)["subject"]
    if not any(subject["digest"].get("sha256") == digest for subject in subjects):
        raise ValueError("it is about other content")


def _parsed(parse: Callable[[bytes], T], data: bytes, kind: str) -> T:
    try:
        return parse(data)
    except Exception:  # its text is about fields of the format
        raise ValueError(f"it is not a {kind}") from None


def _attestations(path: str, data: bytes) -> Iterator[Attestation]:
    if not path.endswith(".provenance"):
        yield _parsed(Attestation.model_validate_json, data, "attestation")
        return
    provenance = _parsed(Provenance.model_validate_json, data, "provenance file")
    for bundle in provenance.attestation_bundles:
        yield from bundle.attestations


def _issuer(certificate: Certificate) -> str:
    """Return who vouches for the name of the signer."""
    try:
        return asn1.decode_der(str, _value(certificate, _ISSUER))
    except ExtensionNotFound:
        return _value(certificate, _OLD_ISSUER).decode()


def _value(certificate: Certificate, which: str) -> bytes:
    value = certificate.extensions.get_extension_for_oid(ObjectIdentifier(which)).value
    assert isinstance(value, UnrecognizedExtension)
    return value.value
