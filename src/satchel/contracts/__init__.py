"""Contracts: a tool's whole interface as one record, and what follows from it."""

from satchel.contracts.binding import bind
from satchel.contracts.configuring import SettledConfig, settle
from satchel.contracts.contract import ToolContract, parameters_of
from satchel.contracts.contracts import Contracts
from satchel.contracts.effects import effects_of, kept_keys
from satchel.contracts.errors import ContractError
from satchel.contracts.plan import Plan, PlanPolicy, Validation, Verdict
from satchel.contracts.records import (
    DROP_STEP,
    ToolConfigParam,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.contracts.validating import validate
from satchel.contracts.variables import (
    Filled,
    filled,
    unknown_variable,
    values_of,
    variables_in,
)
from satchel.contracts.words import declared_of, fingerprint_of

__all__ = [
    "DROP_STEP",
    "ContractError",
    "Contracts",
    "Filled",
    "Plan",
    "PlanPolicy",
    "SettledConfig",
    "ToolConfigParam",
    "ToolContract",
    "ToolInvariant",
    "ToolStateEffect",
    "ToolStateRead",
    "Validation",
    "Verdict",
    "bind",
    "declared_of",
    "effects_of",
    "filled",
    "fingerprint_of",
    "kept_keys",
    "parameters_of",
    "settle",
    "unknown_variable",
    "validate",
    "values_of",
    "variables_in",
]
