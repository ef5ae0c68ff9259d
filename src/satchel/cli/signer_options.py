"""The options that say who must have signed something."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from satchel.setup.artefact_signatures import Signer


def signer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--signer` and `--issuer`; the command gets them as one `signer`."""

    @click.option(
        "--signer", metavar="IDENTITY", help="Take it only if this person or workflow signed it."
    )
    @click.option("--issuer", metavar="URL", help="Who vouches for the identity of --signer.")
    @wraps(command)
    def with_signer(*args: Any, signer: str | None, issuer: str | None, **options: Any) -> Any:
        if (signer is None) is not (issuer is None):
            raise click.UsageError("--signer and --issuer belong together")
        required_signer = (
            Signer(signer, issuer) if signer is not None and issuer is not None else None
        )
        return command(*args, signer=required_signer, **options)

    return with_signer
