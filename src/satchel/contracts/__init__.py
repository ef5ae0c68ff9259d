"""Contracts: a tool's whole interface as one record, and the validation of plans."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.contracts.contract_binding import bind_contract
    from satchel.contracts.contract_config import ResolvedConfig, resolve_config
    from satchel.contracts.contract_description import contract_json, fingerprint_of
    from satchel.contracts.contract_errors import ContractError
    from satchel.contracts.contract_parts import (
        DROP_STEP,
        ToolConfigParam,
        ToolInvariant,
        ToolStateEffect,
        ToolStateRead,
    )
    from satchel.contracts.contract_set import Contracts
    from satchel.contracts.plan import Plan, PlanPolicy, Validation, Verdict
    from satchel.contracts.plan_validation import validate
    from satchel.contracts.prompt_variables import Filled, unknown_variable, values_of
    from satchel.contracts.state_effects import effects_of, kept_keys
    from satchel.contracts.tool_contract import ToolContract, parameters_of
    from satchel.contracts.variable_places import fill_variables, variables_in
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "contract_binding": "bind_contract",
            "contract_config": "ResolvedConfig resolve_config",
            "contract_description": "contract_json fingerprint_of",
            "contract_errors": "ContractError",
            "contract_parts": (
                "DROP_STEP ToolConfigParam ToolInvariant ToolStateEffect ToolStateRead"
            ),
            "contract_set": "Contracts",
            "plan": "Plan PlanPolicy Validation Verdict",
            "plan_validation": "validate",
            "prompt_variables": "Filled unknown_variable values_of",
            "state_effects": "effects_of kept_keys",
            "tool_contract": "ToolContract parameters_of",
            "variable_places": "fill_variables variables_in",
        },
    )
