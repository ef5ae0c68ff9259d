"""Say who signed an archive or a wheel, from the verified signatures beside it."""

import hashlib
import os
from dataclasses import field

from satchel.errors import SatchelError, install_hint
from satchel.lazy_dataclass import dataclass
from satchel.text import one_line

BUNDLES = (".sigstore.json", ".sigstore")
"""Bundles of sigstore."""
_VERIFIED = (*BUNDLES, ".publish.attestation", ".slsa.attestation", ".provenance")
"""Bundles, and attestations of PEP 740."""
_OTHERS = (".asc", ".sig")
"""Signatures that Satchel does not verify."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed something, and who vouches for that name."""

    identity: str
    """An address of e-mail, or of the workflow that built it."""
    issuer: str
    signed: str = field(default="", compare=False)
    """When, in ISO format and UTC."""

    @property
    def who(self) -> str:
        """Return the signer without the branch or tag, which differs from version to version."""
        return str(Signer(self.identity.partition("@refs/")[0], self.issuer))

    def __str__(self) -> str:
        return one_line(f"{self.identity} (issuer {self.issuer})")


def signatures_beside(artefact: str) -> list[str]:
    """Return the paths of the signatures beside a local file that are verified."""
    return [artefact + ending for ending in _VERIFIED if os.path.lexists(artefact + ending)]


def digest_of_file(path: str) -> str:
    """Return the SHA-256 of a file. Raises `SatchelError`."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise SatchelError(f"cannot be read: {problem.strerror}", where=path) from None


def signers_of(artefact: str, sha256: str) -> tuple[Signer, ...]:
    """Return who signed the content with this digest; no one if no signature lies beside it.

    Raises `SatchelError` if a signature does not verify, or cannot be verified here.
    """
    if not (signatures := signatures_beside(artefact)):
        return ()
    try:
        from satchel.setup.signature_verification import verified_signers  # lazy: an extra
    except ImportError as problem:
        message = "is a signature, and sigstore is not installed to verify it"
        fix = install_hint("signatures")
        raise SatchelError(message, where=signatures[0], fix=fix) from problem
    name = os.path.basename(artefact)
    signers = (signer for path in signatures for signer in verified_signers(name, sha256, path))
    return tuple(dict.fromkeys(signers))


def signature_note(artefact: str, signers: tuple[Signer, ...]) -> str:
    """Return who signed something, or that it is unsigned."""
    if signers:
        return f"signed by {' and '.join(map(str, signers))}"
    others = [artefact + ending for ending in _OTHERS if os.path.isfile(artefact + ending)]
    names = ", ".join(map(os.path.basename, others))
    return f"unsigned; {names} was not checked" if names else "unsigned"


def recorded(signers: tuple[Signer, ...]) -> str:
    """Return the signers as they are recorded, to be compared with those of another version."""
    return " and ".join(sorted({signer.who for signer in signers}))


def time_of(signers: tuple[Signer, ...]) -> str:
    """Return when something was signed last, `""` if it is unsigned."""
    return max((signer.signed for signer in signers), default="")


def require_signer(required: Signer | None, signers: tuple[Signer, ...], where: str) -> None:
    """Raise `SatchelError` if `required` is not among those who signed."""
    if required is None or any(str(required) in {str(it), it.who} for it in signers):
        return
    by = f"is signed by {' and '.join(map(str, signers))}" if signers else "is unsigned"
    raise SatchelError(f"{by}, not signed by {required}; nothing was taken", where=where)
