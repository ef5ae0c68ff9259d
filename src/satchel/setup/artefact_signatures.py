"""Say which signatures lie beside an archive or a wheel. None is verified here."""

import os

_ENDINGS = (".sigstore.json", ".sigstore", ".publish.attestation", ".provenance", ".asc", ".sig")
"""Bundles of sigstore, attestations of PEP 740, and signatures of OpenPGP."""


def signature_note(artefact: str) -> str:
    """Return whether a local file has a signature beside it, and that it was not checked."""
    found = [
        os.path.basename(artefact + ending)
        for ending in _ENDINGS
        if os.path.isfile(artefact + ending)
    ]
    if found:
        return f"no signature was checked; {', '.join(found)} lies beside it"
    return "no signature was checked" + (
        "; none lies beside it" if os.path.isfile(artefact) else ""
    )
