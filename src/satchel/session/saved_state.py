"""Save the state of a session as JSON, and restore it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import ConflictError, DefinitionError, NotFoundError
from satchel.groups.group_activation import Activation
from satchel.session.loaded_skills import LoadedSkill
from satchel.session.session_state import find_skill, is_disabled

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.session.session_state import SessionState
    from satchel.settings import Limits
    from satchel.shared import SharedView

_VERSION = 1
_LOCATION = "saved session"
_MAX_DEPTH = 100
_MAX_BITS = 14_000
"""Python refuses to write numbers of more than 4,300 digits."""


def dump_state(session_state: SessionState, seen: Iterable[str]) -> dict[str, Any]:
    """Return the state of a session as JSON; `seen` are the tool names in the session's order."""
    activation = session_state.activation
    return {
        "version": _VERSION,
        "groups": {"on": sorted(activation.on), "off": sorted(activation.off)},
        "skills": {
            skill.name: {
                "digest": skill.digest,
                "files": list(skill.files),
                "read": {**skill.read},
                "is_restricting": skill.is_restricting,
            }
            for skill in session_state.loaded
        },
        "tools": list(seen),
        "activated_tools": sorted(activation.tools),
        "state": _to_json(session_state.state, "state"),
    }


def restore_state(
    session_state: SessionState, saved: Mapping[str, Any], *, strict: bool
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Restore a saved session; return diagnostics of what is missing, and the order of the tools.

    Groups that no longer exist stay saved, because they may come back. Skills do not, but what
    they restricted stays restricted.
    """
    version = saved.get("version") if isinstance(saved, Mapping) else None
    if type(version) is not int or version != _VERSION:
        raise DefinitionError(
            f"the value is not a saved session of version {_VERSION}",
            fix="pass what state_dict() returned",
        )
    groups = _mapping(saved, "groups")
    activation = Activation(
        on=frozenset(_names(groups, "on", "groups")),
        off=frozenset(_names(groups, "off", "groups")),
        tools=frozenset(_names(saved, "activated_tools", "the saved session")),
        defers=session_state.options.defer_loading,
    )
    seen = tuple(dict.fromkeys(_names(saved, "tools", "the saved session")))
    state = _to_json(_mapping(saved, "state"), "state")
    shared_view = session_state.shared.shared_view(activation, session_state.options.entries)
    catalog = shared_view.catalog
    problems = [
        _missing("group", name) for name in sorted(activation.on) if name not in catalog.groups
    ]
    skills: dict[str, LoadedSkill] = {}
    for name, fields in _mapping(saved, "skills").items():
        skill = _restore_skill(name, fields, shared_view, session_state.shared.limits)
        if skill is None or not skill.folder:
            problems.append(_missing("skill", name))
        if skill is not None:
            skills[name] = skill
    if strict and problems:
        raise ConflictError(
            "; ".join(problem.message for problem in problems),
            fix="restore them, or load the state with strict=False",
        )
    session_state.activation = activation
    session_state.loaded.replace_all(skills)
    # In place: running calls hold a reference to it.
    session_state.state.clear()
    session_state.state.update(state)
    return tuple(problems), seen


def _restore_skill(
    name: str, saved: Any, shared_view: SharedView, limits: Limits
) -> LoadedSkill | None:
    """Return a saved skill; `None` if it no longer exists or is disabled.

    If that restricted the session, return it without a folder: it still restricts.
    """
    if not isinstance(name, str) or not isinstance(saved, Mapping):
        raise DefinitionError("a saved skill is not what state_dict() writes")
    digest, files, read = saved.get("digest"), _names(saved, "files", name), _mapping(saved, "read")
    texts = (digest, *read, *read.values())
    if not isinstance(digest, str) or not all(isinstance(text, str) for text in texts):
        raise DefinitionError(f"the saved skill {name!r} is not what state_dict() writes")
    is_restricting = saved.get("is_restricting") is True
    gone = LoadedSkill(name=name, digest=digest, root="", folder="", is_restricting=True)
    try:
        entry, _ = find_skill(name, shared_view)
    except NotFoundError:
        return gone if is_restricting else None
    if entry.manifest is None or is_disabled(entry):
        return gone if is_restricting else None
    now = LoadedSkill.of(name, entry, entry.manifest, limits)
    # Only files that the skill lists now: the saved state may have been edited.
    listed = tuple(file for file in now.files if file in files)
    # Approval holds for the version that was loaded only.
    allowed = now.allowed_tools if digest == now.digest else ()
    return replace(
        now,
        digest=digest,
        files=listed,
        scripts=tuple(file for file in now.scripts if file in listed),
        allowed_tools=allowed,
        is_restricting=is_restricting or now.is_restricting,
        read=dict(read),
    )


def _missing(kind: str, name: str) -> Diagnostic:
    return make_diagnostic(
        f"saved-{kind}-missing",
        Where(_LOCATION),
        f"the {kind} {name!r} no longer exists",
        "restore it, or continue without it",
    )


def _mapping(saved: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = saved.get(key, {})
    if not isinstance(value, Mapping):
        raise DefinitionError(f"{key!r} of the saved session is not a mapping")
    return value


def _names(saved: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = saved.get(key, [])
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise DefinitionError(f"{key!r} of {where} is not a list of names")
    return list(value)


def _to_json(value: Any, where: str, depth: int = 0) -> Any:
    """Copy a JSON value. Raises a `DefinitionError` that names the part that is not JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() <= _MAX_BITS:
        return value
    if isinstance(value, float) and abs(value) < float("inf"):
        return value
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {key: _to_json(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return [_to_json(item, f"{where}[{at}]", depth + 1) for at, item in enumerate(value)]
    raise DefinitionError(
        f"{where} is a {type(value).__name__} that JSON cannot represent",
        fix="store it elsewhere, or convert it to JSON values",
    )
