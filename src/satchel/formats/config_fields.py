"""The fields of a plugin's configuration, as its manifest declares them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from satchel.errors import DefinitionError
from satchel.formats.manifest_block import ManifestBlock
from satchel.formats.read_result import quoted
from satchel.names import near_misses

TYPES = ("string", "secret", "path", "integer", "float", "boolean", "choice")
FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""What a key of a configuration looks like: it must do as the name of a variable, too."""

_KEYS = ("name", "type", "description", "default", "required", "min", "max", "options")
_ALL_KEYS = (*_KEYS, "must_exist")
_TEXTS = frozenset({"string", "secret"})
_BOUNDED = _TEXTS | {"integer", "float"}
_WORDS = {
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
    """The value, of its type, that counts when nobody gives one; `None` if there is none."""
    required: bool = True
    min: float | None = None
    max: float | None = None
    options: tuple[str, ...] = ()
    must_exist: bool = False

    @property
    def key(self) -> str:
        """Return the name in lower case, as it is looked up."""
        return self.name.lower()

    @property
    def is_secret(self) -> bool:
        """Tell whether its value must not be shown."""
        return self.type == "secret"

    @property
    def allowed(self) -> str:
        """Say which values it takes."""
        match self.type:
            case "boolean":
                return "true or false"
            case "choice":
                return f"one of {', '.join(self.options)}"
            case "path":
                return "the path of what exists" if self.must_exist else "a path"
            case "integer":
                return f"a whole number{self._bounds()}"
            case "float":
                return f"a number{self._bounds()}"
            case _:
                bounds = self._bounds().replace(" from ", " of ")
                return f"text{bounds} characters" if bounds else "text"

    def parsed(self, value: Any) -> Any:
        """Return a value of the field's type, made of text if it is text.

        Raises `DefinitionError` that says what the value is not, and never quotes it. Whether a
        path exists is not looked at.
        """
        made = _PARSERS[self.type](self, value)
        size = len(made) if isinstance(made, str) else made
        if self.type not in _BOUNDED or not isinstance(size, int | float):
            return made  # an object of the host's own, such as a SecretStr
        if self.min is not None and size < self.min:
            raise self.refused("is too short" if self.type in _TEXTS else "is too small")
        if self.max is not None and size > self.max:
            raise self.refused("is too long" if self.type in _TEXTS else "is too large")
        return made

    def refused(self, fault: str) -> DefinitionError:
        """Return the error that says what is wrong with a value, and what is allowed."""
        return DefinitionError(fault, fix=f"allowed is {self.allowed}")

    def _bounds(self) -> str:
        low, high = (_number(bound) for bound in (self.min, self.max))
        if low and high:
            return f" from {low} to {high}"
        return f" of at least {low}" if low else f" of at most {high}" if high else ""


def field_fault(field: ConfigField) -> str:
    """Say what is wrong with a field that was made in code, or `""`; a dataclass does not check."""
    if not isinstance(field.name, str) or not FIELD_NAME.fullmatch(field.name):
        return "has a name that cannot be that of a variable"
    if field.type not in TYPES:
        return f"has a type that is none of {', '.join(TYPES)}"
    if field.type == "choice" and not field.options:
        return "is a choice without options"
    try:
        field.parsed(field.default) if field.default is not None else None
    except DefinitionError as problem:
        return f"has a default that {problem.message}"
    return ""


def read_fields(top: ManifestBlock) -> tuple[ConfigField, ...]:
    """Read `config:`, a mapping by name or a list whose items have a name."""
    fields = [_field(name, block) for name, block in top.blocks("config", "field")]
    keys = [field.key for field in fields]
    for key in sorted({key for key in keys if key and keys.count(key) > 1}):
        top.misfit("config", f"two fields are named {quoted(key)}", "Make them one.")
    return tuple(fields)


def _field(key: str, block: ManifestBlock) -> ConfigField:
    name = block.name(key, "field")
    if name and not FIELD_NAME.fullmatch(name):
        message = f"the field's name {quoted(name)} cannot be that of a variable"
        block.misfit("name", message, "Use letters, digits and '_', with no digit first.")
    block.report_unknown(_ALL_KEYS)
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
    if kind in TYPES:
        return kind
    near = near_misses(kind, TYPES, most=1)
    fix = f"Write 'type: {near[0]}'." if near else f"Write one of {', '.join(TYPES)}."
    block.misfit("type", f"{quoted(kind)} is no type of a field", fix)
    return "string"


def _applies(block: ManifestBlock, key: str, kind: str, kinds: Iterable[str]) -> bool:
    """Tell whether a key is given and means something for a type; note it if it does not."""
    if key not in block.values:
        return False
    if kind not in kinds:
        message = f"'{key}' is not read for a field of type {kind}"
        block.note("plugin-field-unknown", key, message, "Remove it, or change the type.")
    return kind in kinds


def _options(block: ManifestBlock, kind: str) -> tuple[str, ...]:
    options = block.names("options") if _applies(block, "options", kind, {"choice"}) else ()
    if kind == "choice" and not options:
        block.misfit("options", "a choice has no options", "Write 'options: [one, two]'.")
    return options


def _bounds(block: ManifestBlock, kind: str) -> dict[str, Any]:
    found = {key: _bound(block, key, kind) for key in ("min", "max")}
    low, high = found["min"], found["max"]
    if low is not None and high is not None and low > high:
        block.misfit("min", "'min' is greater than 'max'", "Exchange them.")
    return found


def _bound(block: ManifestBlock, key: str, kind: str) -> float | None:
    if not _applies(block, key, kind, _BOUNDED):
        return None
    text = block.text(key)
    if kind != "float" and _INTEGER.fullmatch(text) and not (kind in _TEXTS and text[0] == "-"):
        return int(text)
    if kind == "float" and _FLOAT.fullmatch(text):
        return float(text)
    what = {"float": "a number", "integer": "a whole number"}.get(kind, "a number of characters")
    block.misfit(key, f"'{key}' is not {what}", f"Write '{key}: 1', for example.")
    return None


def _default(block: ManifestBlock, field: ConfigField) -> Any:
    value = block.values.get("default")
    if value is None:
        return None
    if field.is_secret:
        # Not an error, but it does not count either: a manifest is shared.
        message = "a secret has no default here: others read a manifest"
        block.note("plugin-field-unknown", "default", message, "Remove it, and change the secret.")
        return None
    if not isinstance(value, str):
        block.text("default")
        return None
    try:
        return field.parsed(value)
    except DefinitionError as problem:
        block.misfit("default", f"the default {problem.message}", f"{problem.fix}.".capitalize())
        return None


def _boolean(field: ConfigField, value: Any) -> bool:
    word = _WORDS.get(value.strip().lower()) if isinstance(value, str) else value
    if isinstance(word, bool):
        return word
    raise field.refused("is neither true nor false")


def _integer(field: ConfigField, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise field.refused("is no whole number")


def _float(field: ConfigField, value: Any) -> float:
    if isinstance(value, str) and _FLOAT.fullmatch(value.strip()):
        value = float(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Neither infinite nor "not a number", which no bound would stop.
    if is_number and abs(value) < float("inf"):
        return float(value)
    raise field.refused("is no number")


def _choice(field: ConfigField, value: Any) -> str:
    if isinstance(value, str) and value in field.options:
        return value
    raise field.refused("is none of the options")


def _path(field: ConfigField, value: Any) -> str:
    if isinstance(value, PurePath):
        value = str(value)
    if isinstance(value, str) and "\0" not in value:
        return value
    raise field.refused("is no path")


def _text(field: ConfigField, value: Any) -> Any:
    # A file of a project has types; what a host gives in code may be an object of its own.
    if isinstance(value, list | dict | bool | int | float):
        raise field.refused("is no text")
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
