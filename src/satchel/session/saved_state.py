"""What a session remembers, as JSON, and back."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ConflictError, DefinitionError, NotFoundError
from satchel.groups import Activation
from satchel.session.loaded_skills import LoadedSkill
from satchel.session.session_state import SessionState, is_disabled, skill_called
from satchel.settings import Limits
from satchel.shared import SharedView

_VERSION = 1
_PLACE = "saved session"
_DEEPEST = 100
_MOST_BITS = 14_000
"""Python refuses to write numbers of more than 4,300 digits."""


def dump_state(conversation: SessionState, seen: Iterable[str]) -> dict[str, Any]:
    """Return a conversation's memory as JSON; `seen` are the tools in the order they came."""
    activation = conversation.activation
    return {
        "version": _VERSION,
        "groups": {"on": sorted(activation.on), "off": sorted(activation.off)},
        "skills": {
            skill.name: {"digest": skill.digest, "files": list(skill.files), "read": {**skill.read}}
            for skill in conversation.loaded
        },
        "tools": list(seen),
        "state": _plain(conversation.state, "state"),
    }


def restore_state(
    conversation: SessionState, given: Mapping[str, Any], *, strict: bool
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Take a saved memory up; return what no longer exists, and the tools in their order.

    Groups that are gone are remembered all the same: they may come back. Skills are not.
    """
    version = given.get("version") if isinstance(given, Mapping) else None
    if type(version) is not int or version != _VERSION:
        raise DefinitionError(
            f"this is no saved session of version {_VERSION}", fix="give what state_dict() returned"
        )
    groups = _mapping(given, "groups")
    activation = Activation(
        frozenset(_texts(groups, "on", "groups")), frozenset(_texts(groups, "off", "groups"))
    )
    seen = tuple(dict.fromkeys(_texts(given, "tools", "the saved session")))
    state = _plain(_mapping(given, "state"), "state")
    scene = conversation.shared.scene(activation)
    catalog = scene.catalog
    problems = [
        _missing("group", name) for name in sorted(activation.on) if name not in catalog.groups
    ]
    skills: dict[str, LoadedSkill] = {}
    for name, kept in _mapping(given, "skills").items():
        skill = _restored(name, kept, scene, conversation.shared.limits)
        if skill is None:
            problems.append(_missing("skill", name))
        else:
            skills[name] = skill
    if strict and problems:
        raise ConflictError(
            "; ".join(problem.message for problem in problems),
            fix="bring them back, or load it with strict=False",
        )
    conversation.activation = activation
    conversation.loaded.replace_all(skills)
    # In place: a call that runs has hold of it.
    conversation.state.clear()
    conversation.state.update(state)
    return tuple(problems), seen


def _restored(name: str, kept: Any, scene: SharedView, limits: Limits) -> LoadedSkill | None:
    """Return a skill that was loaded, as far as it is still there."""
    if not isinstance(name, str) or not isinstance(kept, Mapping):
        raise DefinitionError("a saved skill is not what state_dict() writes")
    digest, files, read = kept.get("digest"), _texts(kept, "files", name), _mapping(kept, "read")
    words = (*read, *read.values())
    if not isinstance(digest, str) or not all(isinstance(word, str) for word in words):
        raise DefinitionError(f"the saved skill {name!r} is not what state_dict() writes")
    try:
        entry, _ = skill_called(name, scene)
    except NotFoundError:
        return None
    if entry.manifest is None or is_disabled(entry):
        return None
    now = LoadedSkill.of(name, entry, entry.manifest, limits)
    # Only what is listed now as it was then: the saved text may have been through many hands.
    listed = tuple(file for file in now.files if file in files)
    # A version that nobody loaded has nothing approved.
    allowed = now.allowed_tools if digest == now.digest else ()
    return replace(now, digest=digest, files=listed, allowed_tools=allowed, read=dict(read))


def _missing(kind: str, name: str) -> Diagnostic:
    return make_diagnostic(
        f"saved-{kind}-missing",
        Where(_PLACE),
        f"the {kind} {name!r} no longer exists",
        "bring it back, or go on without it",
    )


def _mapping(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise DefinitionError(f"{key!r} of the saved session is no mapping")
    return value


def _texts(given: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = given.get(key, [])
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise DefinitionError(f"{key!r} of {where} is no list of names")
    return list(value)


def _plain(value: Any, where: str, depth: int = 0) -> Any:
    """Copy a value that is JSON. Raises `DefinitionError` that names what is not."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() <= _MOST_BITS:
        return value
    if isinstance(value, float) and abs(value) < float("inf"):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {key: _plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{at}]", depth + 1) for at, item in enumerate(value)]
    raise DefinitionError(
        f"{where} is a {type(value).__name__} that JSON has no word for",
        fix="keep it elsewhere, or keep what it can be made of",
    )
