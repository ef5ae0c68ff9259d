"""`dataclass` for the records of this package: it compiles a constructor when it is first used.

A standard data class compiles six functions when it is defined, which takes a millisecond or two,
and a process makes instances of few of our classes. For type checkers, and for `fields`,
`replace`, `asdict` and `is_dataclass`, there is no difference.
"""

import dataclasses
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from inspect import get_annotations
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=type)
Fields = dict[str, "dataclasses.Field[Any]"]


def _dataclass(
    *,
    repr: bool = True,  # noqa: A002 - as in `dataclasses`
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
    weakref_slot: bool = False,
) -> Callable[[T], T]:
    """Make a class a data class; the options are those of `dataclasses.dataclass`."""

    def decorate(cls: T) -> T:
        own = _own_fields(cls, kw_only=kw_only)
        fields = {**getattr(cls, "__dataclass_fields__", {}), **own.__dataclass_fields__}
        params = own.__dataclass_params__
        params.init, params.repr, params.eq, params.frozen = True, repr, eq, frozen
        members = {
            **dict(_methods(has_repr=repr, has_eq=eq, is_frozen=frozen)),
            # A class without slots keeps Python's own pickling, which also has the attributes
            # that are not fields.
            **(_PICKLING if frozen and slots else {}),
            # From Python 3.13 on, for `copy.replace`.
            **{name: value for name, value in vars(own).items() if name == "__replace__"},
            **{name: value for name, value in vars(cls).items() if _is_kept(name, value)},
            "__dataclass_fields__": fields,
            "__dataclass_params__": params,
            "__match_args__": tuple(
                name for name, item in fields.items() if item.init and not item.kw_only
            ),
        }
        if slots:
            return _with_slots(cls, members, ["__weakref__"] if weakref_slot else [])
        return _without_slots(cls, members, own)

    return decorate


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers know this one
else:
    dataclass = _dataclass


@cache
def _fast_constructor(cls: Any) -> Any:
    """Return a function that makes a frozen record with slots in half the time of `cls(...)`.

    It is for the few records of which there is one for each skill. It fills an object of a mutable
    class with the same slots, then sets `__class__`. `cls(...)` is slower: it puts keyword
    arguments into a dictionary, and sets each field past the `__setattr__` that refuses.
    """
    changeable = type(cls)(
        cls.__name__,
        cls.__bases__,
        {
            "__slots__": cls.__slots__,
            "__setattr__": object.__setattr__,
            "__delattr__": object.__delattr__,
        },
    )
    values = {"_new": object.__new__, "_changeable": changeable, "_cls": cls}
    parameters, fields = _parameters(cls, values)
    body = [
        "self = _new(_changeable)",
        *[f"self.{name} = {value}" for name, value in fields.items()],
        "self.__class__ = _cls",
        *(["self.__post_init__()"] if hasattr(cls, "__post_init__") else []),
        "return self",
    ]
    lines = "".join(f"\n  {line}" for line in body)
    return _compiled("record", f"def record({', '.join(parameters)}):{lines}", values)


if TYPE_CHECKING:

    def fast_constructor(cls: Callable[P, R]) -> Callable[P, R]:
        """Return a faster constructor with the same parameters."""
        ...
else:
    fast_constructor = _fast_constructor


def _own_fields(cls: type, *, kw_only: bool) -> Any:
    """Return a data class that has only the fields that this class itself declares."""
    annotations = get_annotations(cls)
    members = {name: vars(cls)[name] for name in annotations if name in vars(cls)}
    members |= {"__annotations__": annotations, "__module__": cls.__module__, "__doc__": "fields"}
    decorate = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)
    return decorate(type(cls.__name__, (), members))


def _is_kept(name: str, value: Any) -> bool:
    """Return whether a class keeps its own definition; Python itself adds `__hash__ = None`."""
    return name not in {"__dict__", "__weakref__"} and (name, value) != ("__hash__", None)


def _with_slots(cls: T, members: dict[str, Any], more_slots: list[str]) -> T:
    """Return the class with slots; that needs a new class."""
    fields = members["__dataclass_fields__"]
    taken = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    own = {name: value for name, value in members.items() if name not in fields}
    own["__slots__"] = tuple(name for name in (*fields, *more_slots) if name not in taken)
    slotted = type(cls)(cls.__name__, cls.__bases__, own)
    slotted.__qualname__ = cls.__qualname__
    return slotted


def _without_slots(cls: T, members: dict[str, Any], own: type) -> T:
    for name, value in members.items():
        if vars(cls).get(name) is not value:
            setattr(cls, name, value)
            if isinstance(value, _Lazy):
                value.__set_name__(cls, name)
    for name in members["__dataclass_fields__"]:
        if isinstance(vars(cls).get(name), dataclasses.Field):
            if name in vars(own):
                setattr(cls, name, vars(own)[name])
            else:
                delattr(cls, name)
    return cls


def _methods(*, has_repr: bool, has_eq: bool, is_frozen: bool) -> Iterator[tuple[str, Any]]:
    yield "__init__", _Lazy(_init_code)
    if has_repr:
        yield "__repr__", _repr
    if has_eq:
        yield "__eq__", _Lazy(_eq_code)
        yield "__hash__", _Lazy(_hash_code) if is_frozen else None
    if is_frozen:
        yield "__setattr__", _refuse_to_set
        yield "__delattr__", _refuse_to_delete


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (item.name for item in dataclasses.fields(self) if item.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    if _is_field(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_field(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_field(self: Any, name: str) -> bool:
    """Return whether an attribute is frozen; a subclass that is no data class may have others."""
    return "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for item, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)


_PICKLING = {"__getstate__": _get_state, "__setstate__": _set_state}


class _Lazy:
    """Stands for a method until it is first looked up, and then replaces itself."""

    __slots__ = ("_cls", "_code", "_name")

    def __init__(self, code: "Code") -> None:
        self._code = code

    def __set_name__(self, cls: type, name: str) -> None:
        self._cls, self._name = cls, name

    def __get__(self, instance: object, owner: type) -> Any:
        values: dict[str, Any] = {}
        method = _compiled(self._name, self._code(self._cls, values), values)
        method.__qualname__ = f"{self._cls.__qualname__}.{self._name}"
        method.__module__ = self._cls.__module__
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _compiled(name: str, code: str, values: dict[str, Any]) -> Any:
    """Return the function that some code defines. Only names of fields come from outside."""
    names: dict[str, Any] = {}
    exec(f"def make({', '.join(values)}):\n {code}\n return {name}", names)  # noqa: S102
    return names["make"](**values)


class _Default(Enum):
    """Placeholder for the default of a field with a `default_factory`, with its standard text."""

    FACTORY = "<factory>"

    def __repr__(self) -> str:
        return self.value


Code = Callable[[Any, dict[str, Any]], str]
"""Returns the code of a method of a class, and fills in the values that it uses."""


def _init_code(cls: Any, values: dict[str, Any]) -> str:
    is_frozen = cls.__dataclass_params__.frozen
    values["_set"] = object.__setattr__
    parameters, fields = _parameters(cls, values)
    body = []
    for name, value in fields.items():
        if not is_frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            values[f"_set_{name}"] = slot.__set__  # faster than `object.__setattr__`
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    lines = "".join(f"\n  {line}" for line in body or ["pass"])
    return f"def __init__({', '.join(['self', *parameters])}):{lines}"


def _parameters(cls: Any, values: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the parameters of a constructor, and the code of the value of each field."""
    values["FACTORY"] = _Default.FACTORY
    positional, keyword, fields = list[str](), ["*"], dict[str, str]()
    for name, item in cls.__dataclass_fields__.items():
        if not item.init:
            continue
        default, fields[name] = "", name
        if item.default is not dataclasses.MISSING:
            values[f"_default_{name}"] = item.default
            default = f" = _default_{name}"
        elif item.default_factory is not dataclasses.MISSING:
            values[f"_make_{name}"] = item.default_factory
            default = " = FACTORY"
            fields[name] = f"_make_{name}() if {name} is FACTORY else {name}"
        values[f"_type_{name}"] = item.type
        (keyword if item.kw_only else positional).append(f"{name}: _type_{name}{default}")
    return [*positional, *(keyword if len(keyword) > 1 else [])], fields


def _eq_code(cls: Any, _: dict[str, Any]) -> str:
    names = [item.name for item in dataclasses.fields(cls) if item.compare]
    return (
        "def __eq__(self, other):\n"
        "  if other.__class__ is not self.__class__: return NotImplemented\n"
        f"  return {_tuple('self', names)} == {_tuple('other', names)}"
    )


def _hash_code(cls: Any, _: dict[str, Any]) -> str:
    fields = dataclasses.fields(cls)
    names = [item.name for item in fields if (item.compare if item.hash is None else item.hash)]
    return f"def __hash__(self): return hash({_tuple('self', names)})"


def _tuple(name: str, attributes: list[str]) -> str:
    return f"({''.join(f'{name}.{attribute}, ' for attribute in attributes)})"
