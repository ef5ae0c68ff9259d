"""Units of measurement and the arithmetic between them.

A unit is a factor to the first unit of its quantity; a temperature has an offset as well.
Factors are exact fractions, so converting there and back returns the original number.
"""

import difflib
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

DIGITS = 12
"""The default number of significant digits in results."""

_LARGEST_EXPONENT = 100


class UnitError(ValueError):
    """A unit is unknown, or two units measure different things; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: `value * factor + offset` is the value in the base unit of its quantity."""

    symbol: str
    quantity: str
    factor: Fraction
    offset: Fraction = Fraction(0)


# Quantity -> symbol -> factor and, after a blank, offset. The first unit is the base.
_TABLE = {
    "length": {
        "m": "1", "km": "1000", "cm": "0.01", "mm": "0.001",
        "in": "0.0254", "ft": "0.3048", "yd": "0.9144", "mi": "1609.344", "nmi": "1852",
    },
    "mass": {
        "kg": "1", "g": "0.001", "mg": "0.000001", "t": "1000",
        "lb": "0.45359237", "oz": "0.028349523125", "st": "6.35029318",
    },
    "volume": {
        "L": "1", "mL": "0.001", "m3": "1000", "gal_us": "3.785411784", "gal_imp": "4.54609",
        "pt_us": "0.473176473", "pt_imp": "0.56826125", "cup_us": "0.2365882365",
        "fl_oz_us": "0.0295735295625", "fl_oz_imp": "0.0284130625",
    },
    "temperature": {"K": "1", "C": "1 273.15", "F": "5/9 45967/180"},
    "time": {"s": "1", "ms": "0.001", "min": "60", "h": "3600", "d": "86400", "wk": "604800"},
    "speed": {"m/s": "1", "km/h": "5/18", "mph": "0.44704", "kn": "463/900"},
    "data": {
        "B": "1", "bit": "1/8", "KB": "1000", "MB": "1000000", "GB": "1000000000",
        "TB": "1000000000000", "KiB": "1024", "MiB": "1048576", "GiB": "1073741824",
        "TiB": "1099511627776",
    },
}  # fmt: skip

_NAMES = {
    "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "centimeter": "cm",
    "centimetre": "cm", "millimeter": "mm", "millimetre": "mm", "inch": "in", "inches": "in",
    "foot": "ft", "feet": "ft", "yard": "yd", "mile": "mi", "nautical mile": "nmi",
    "kilogram": "kg", "gram": "g", "milligram": "mg", "tonne": "t", "pound": "lb",
    "ounce": "oz", "stone": "st", "liter": "L", "litre": "L", "l": "L", "ml": "mL",
    "milliliter": "mL", "millilitre": "mL", "us gallon": "gal_us",
    "imperial gallon": "gal_imp", "us cup": "cup_us", "kelvin": "K", "celsius": "C",
    "fahrenheit": "F", "°c": "C", "°f": "F", "second": "s", "millisecond": "ms",
    "minute": "min", "hour": "h", "day": "d", "week": "wk", "knot": "kn", "kph": "km/h",
    "byte": "B", "kilobyte": "KB", "megabyte": "MB", "gigabyte": "GB", "terabyte": "TB",
    "kibibyte": "KiB", "mebibyte": "MiB", "gibibyte": "GiB", "tebibyte": "TiB",
}  # fmt: skip

_UNITS = {
    symbol: Unit(symbol, quantity, *map(Fraction, numbers.split()))
    for quantity, units in _TABLE.items()
    for symbol, numbers in units.items()
}

QUANTITIES = {quantity: tuple(units) for quantity, units in _TABLE.items()}
"""The symbols of the units of each quantity."""


def unit(written: str) -> Unit:
    """Return a unit by its symbol or its English name. Raises `UnitError`.

    Symbols are exact, because Mb and MB differ; names may be plural and in any case.
    """
    text = written.strip()
    name = text.casefold()
    for symbol in (text, _NAMES.get(name), _NAMES.get(name.removesuffix("s"))):
        if symbol in _UNITS:
            return _UNITS[symbol]
    near = difflib.get_close_matches(text, [*_UNITS, *_NAMES], n=3, cutoff=0.5)
    hint = f"Did you mean {', '.join(near)}?" if near else "Call list_units to see all units."
    raise UnitError(f"There is no unit {written!r}. {hint}")


def convert(value: Decimal, source: str, target: str, digits: int = DIGITS) -> str:
    """Return a value in another unit, as plain digits. Raises `UnitError`."""
    old, new = unit(source), unit(target)
    if old.quantity != new.quantity:
        raise UnitError(f"{source} is a {old.quantity} and {target} a {new.quantity}.")
    if not value.is_finite() or abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise UnitError(f"{value} is out of range.")
    in_base = Fraction(value) * old.factor + old.offset
    return _written((in_base - new.offset) / new.factor, digits)


def _written(number: Fraction, digits: int) -> str:
    """Format a fraction, rounded to this many significant digits."""
    return f"{Decimal(f'{_rounded(number):.{digits}g}').normalize():f}"


def _rounded(number: Fraction) -> Decimal:
    # Many more digits than are shown, so that the result is rounded only once.
    return Context(prec=60).divide(Decimal(number.numerator), Decimal(number.denominator))
