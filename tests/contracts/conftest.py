"""Contracts and calls, in few words."""

import pytest

from satchel.contracts.contract_parts import ToolInvariant
from satchel.contracts.tool_contract import ToolContract
from satchel.tools import ToolCall


@pytest.fixture(scope="session")
def make():
    """Make a contract of the tool `search`, with any arguments, whose rules are given."""

    def contract(*invariants, schema=None, name="search", **parts):
        schema = {"type": "object"} if schema is None else schema
        return ToolContract(
            name=name, schema=schema, description=f"Do {name}.", invariants=invariants, **parts
        )

    return contract


@pytest.fixture(scope="session")
def rule():
    """Make an invariant whose words are made of its id."""

    def invariant(id_, check, correct=None):
        return ToolInvariant(id=id_, rule=f"Keep {id_}.", check=check, correct=correct)

    return invariant


@pytest.fixture(scope="session")
def call():
    """Make a call of the tool `search`."""

    def made(name="search", /, **arguments):
        return ToolCall(name=name, arguments=arguments)

    return made
