"""The hooks: what this package brings to a satchel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from satchel import Group, hookimpl
from satchel_units.tools import convert_units, list_units

GROUP = "units"

NOTES = """\
Use convert_units for every conversion, also the easy ones. Say which unit is meant where a name
has several meanings: KB is 1000 bytes and KiB is 1024, a US gallon is not an imperial gallon.\
"""


@hookimpl
def satchel_tools() -> list[Callable[..., Any]]:
    """Return the tools."""
    return [convert_units, list_units]


@hookimpl
def satchel_groups() -> list[Group]:
    """Describe the group; it is active, because whoever enabled the package wants it."""
    return [Group(GROUP, "Conversion between units.", notes=NOTES, active=True)]


@hookimpl
def satchel_skill_folders() -> list[Path]:
    """Return the folder of the skills that travel inside the package."""
    return [Path(__file__).parent / "skills"]
