"""The tools, with their descriptions for the model. `units` does the work."""

from decimal import Decimal, InvalidOperation

from satchel import ToolError, tool
from satchel_units.units import DIGITS, QUANTITIES, UnitError, convert


@tool(state=["digits"])
def convert_units(value: str | float, source: str, target: str, digits: int = DIGITS) -> str:
    """Convert a value from one unit to another of the same quantity, without a rounding error.

    Args:
        value: The number, such as 12.5 or 1e6; as text it keeps every digit.
        source: Symbol or name of the unit that the value is given in, such as km or mile.
        target: Symbol or name of the unit to convert to.
        digits: Number of significant digits in the result. The model does not see this parameter.
    """
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        raise ToolError(f"{value!r} is not a number; write digits, such as 12.5.") from None
    try:
        return f"{convert(number, source, target, digits)} {target}"
    except UnitError as error:
        raise ToolError(str(error)) from None


@tool
def list_units(quantity: str = "") -> dict[str, list[str]]:
    """List the units that can be converted, by quantity.

    Args:
        quantity: One quantity, such as length. Without it all are listed.
    """
    if quantity and quantity not in QUANTITIES:
        raise ToolError(f"There is no quantity {quantity!r}; there are {', '.join(QUANTITIES)}.")
    chosen = [quantity] if quantity else list(QUANTITIES)
    return {name: list(QUANTITIES[name]) for name in chosen}
