"""Read and validate the configuration fields that a plugin's manifest declares."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from satchel.errors import DefinitionError
from satchel.formats.manifest_block import ManifestBlock
from satchel.formats.read_result import quoted
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses

TYPES = ("string", "secret", "path", "integer", "float", "boolean", "choice")
FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A configuration key; it must also be valid as the name of a variable."""

_KEYS = ("name", "type", "description", "default", "required", "min", "max", "options")
_ALL_KEYS = (*_KEYS, "must_exist")
_SPECIAL = {"secret": ("is not a known field", "Write 'type: secret' for a secret.")}
_TEXTS = frozenset({"string", "secret"})
_BOUNDED = _TEXTS | {"integer", "float"}
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigField:
    """One key of a plugin's configuration; `min` and `max` bound a number, or a text's length."""

    name: str
    type: str = "string"
    description: str = ""
    default: Any = None
    """The value, already of the field's type, that applies if none is given."""
    required: bool = True
    min: float | None = None
    max: float | None = None
    options: tuple[str, ...] = ()
    must_exist: bool = False

    @property
    def key(self) -> str:
        """Return the name in lower case, which is how values are looked up."""
        return self.name.lower()

    @property
    def is_secret(self) -> bool:
        """Return whether the value must not be shown."""
        return self.type == "secret"

    @property
    def allowed(self) -> str:
        """Describe the values that it takes, for a message."""
        match self.type:
            case "boolean":
                return "true or false"
            case "choice":
                return f"one of {', '.join(self.options)}"
            case "path":
                return "an existing path" if self.must_exist else "a path"
            case "integer":
                return f"a whole number{self._bounds()}"
            case "float":
                return f"a number{self._bounds()}"
            case _:
                bounds = self._bounds().replace(" from ", " of ")
                return f"text{bounds} characters" if bounds else "text"

    def parsed(self, value: Any) -> Any:
        """Return the value converted to the field's type; does not check whether a path exists.

        Raises `DefinitionError`, whose message never quotes the value.
        """
        parsed = _PARSERS[self.type](self, value)
        size = len(parsed) if isinstance(parsed, str) else parsed
        if self.type not in _BOUNDED or not isinstance(size, int | float):
            return parsed  # an object of the host, such as a SecretStr
        if self.min is not None and size < self.min:
            raise self.refused("is too short" if self.type in _TEXTS else "is too small")
        if self.max is not None and size > self.max:
            raise self.refused("is too long" if self.type in _TEXTS else "is too large")
        return parsed

    def refused(self, fault: str) -> DefinitionError:
        """Return an error with the fault and the allowed values."""
        return DefinitionError(fault, fix=f"allowed is {self.allowed}")

    def _bounds(self) -> str:
        low, high = (_number(bound) for bound in (self.min, self.max))
        if low and high:
            return f" from {low} to {high}"
        return f" of at least {low}" if low else f" of at most {high}" if high else ""


def field_fault(field: ConfigField) -> str:
    """Describe what is wrong with a field that was created in code; `""` if it is valid."""
    if not isinstance(field.name, str) or not FIELD_NAME.fullmatch(field.name):
        return "has a name that is not valid for a variable"
    if field.type not in TYPES:
        return f"has a type that is not one of {', '.join(TYPES)}"
    if field.type == "choice" and not field.options:
        return "is a choice without options"
    try:
        field.parsed(field.default) if field.default is not None else None
    except DefinitionError as error:
        return f"has a default that {error.message}"
    return ""


def read_fields(top: ManifestBlock) -> tuple[ConfigField, ...]:
    """Read `config:`, a mapping by name or a list of items with a name."""
    fields = [_field(name, block) for name, block in top.blocks("config", "field")]
    top.report_doubles("config", "field", (field.key for field in fields), "Make them one.")
    return tuple(fields)


def _field(key: str, block: ManifestBlock) -> ConfigField:
    name = block.name(key, "field")
    if name and not FIELD_NAME.fullmatch(name):
        message = f"the field's name {quoted(name)} is not valid for a variable"
        block.report_invalid(
            "name", message, "Use letters, digits and '_', and do not begin with a digit."
        )
    block.report_unknown(_ALL_KEYS, _SPECIAL)
    kind = _type(block)
    field = ConfigField(
        name=name,
        type=kind,
        description=block.text("description"),
        options=_options(block, kind),
        must_exist=_applies(block, "must_exist", kind, frozenset({"path"}))
        and block.switch("must_exist", default=False),
        **_bounds(block, kind),
    )
    default = _default(block, field)
    required = block.switch("required", default=default is None)
    return replace(field, default=default, required=required)


def _type(block: ManifestBlock) -> str:
    kind = block.text("type", default="string")
    if block.values.get("secret") is not None and not block.is_off("secret"):
        return "secret"  # to show one is the worse mistake
    if kind in TYPES:
        return kind
    near = near_misses(kind, TYPES, most=1)
    fix = f"Write 'type: {near[0]}'." if near else f"Write one of {', '.join(TYPES)}."
    block.report_invalid("type", f"{quoted(kind)} is not a field type", fix)
    return "string"


def _applies(block: ManifestBlock, key: str, kind: str, kinds: Iterable[str]) -> bool:
    """Return whether a key is given and used by this type; report it if it is not used."""
    if key not in block.values:
        return False
    if kind not in kinds:
        message = f"'{key}' is not used for a field of type {kind}"
        block.report("plugin-field-unknown", key, message, "Remove it, or change the type.")
    return kind in kinds


def _options(block: ManifestBlock, kind: str) -> tuple[str, ...]:
    names = block.names("options") if _applies(block, "options", kind, {"choice"}) else ()
    options = tuple(dict.fromkeys(names))
    if kind == "choice" and not options:
        block.report_invalid("options", "a choice has no options", "Write 'options: [one, two]'.")
    return options


def _bounds(block: ManifestBlock, kind: str) -> dict[str, Any]:
    bounds = {key: _bound(block, key, kind) for key in ("min", "max")}
    low, high = bounds["min"], bounds["max"]
    if low is not None and high is not None and low > high:
        block.report_invalid("min", "'min' is greater than 'max'", "Swap them.")
    return bounds


def _bound(block: ManifestBlock, key: str, kind: str) -> float | None:
    if not _applies(block, key, kind, _BOUNDED):
        return None
    text = block.text(key)
    if kind != "float" and _INTEGER.fullmatch(text) and not (kind in _TEXTS and text[0] == "-"):
        return int(text)
    if kind == "float" and _FLOAT.fullmatch(text):
        return float(text)
    expected = {"float": "a number", "integer": "a whole number"}.get(
        kind, "a number of characters"
    )
    block.report_invalid(key, f"'{key}' is not {expected}", f"Write '{key}: 1', for example.")
    return None


def _default(block: ManifestBlock, field: ConfigField) -> Any:
    value = block.values.get("default")
    if value is None:
        return None
    if field.is_secret:
        # A warning only; the default is not used, because manifests are shared.
        message = "a secret cannot have a default, because others can read the manifest"
        block.report(
            "plugin-field-unknown", "default", message, "Remove it, and change the secret."
        )
        return None
    if not isinstance(value, str):
        block.text("default")
        return None
    try:
        return field.parsed(value)
    except DefinitionError as error:
        block.report_invalid(
            "default", f"the default {error.message}", f"{error.fix}.".capitalize()
        )
        return None


def _boolean(field: ConfigField, value: Any) -> bool:
    parsed = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else value
    if isinstance(parsed, bool):
        return parsed
    raise field.refused("is neither true nor false")


def _integer(field: ConfigField, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise field.refused("is not a whole number")


def _float(field: ConfigField, value: Any) -> float:
    if isinstance(value, str) and _FLOAT.fullmatch(value.strip()):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Infinity and NaN are refused here: bounds would not stop them.
    if is_number and abs(value) < float("inf"):
        return float(value)
    raise field.refused("is not a number")


def _choice(field: ConfigField, value: Any) -> str:
    if isinstance(value, str) and value in field.options:
        return value
    raise field.refused("is not one of the options")


def _path(field: ConfigField, value: Any) -> str:
    if isinstance(value, PurePath):
        value = str(value)
    if isinstance(value, str) and "\0" not in value:
        return value
    raise field.refused("is not a path")


def _text(field: ConfigField, value: Any) -> Any:
    # Values in satchel.toml have types; a host may give an object such as a SecretStr.
    if isinstance(value, list | dict | bool | int | float):
        raise field.refused("is not text")
    return value


_PARSERS: dict[str, Callable[[ConfigField, Any], Any]] = {
    "string": _text,
    "secret": _text,
    "path": _path,
    "integer": _integer,
    "float": _float,
    "boolean": _boolean,
    "choice": _choice,
}


def _number(bound: float | None) -> str:
    return "" if bound is None else f"{bound:g}" if isinstance(bound, float) else str(bound)
