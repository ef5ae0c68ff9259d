"""`load_skill`, `read_skill_file` and `run_skill_script`, which the model calls to use skills."""

from functools import cache
from typing import Any

from satchel.catalog.catalog_entries import SkillEntry
from satchel.errors import ToolError
from satchel.names import near_misses
from satchel.runtime.skill_scripts import SCRIPTS_FOLDER, run_script
from satchel.session.builtin_context import (
    HIDDEN,
    SAME_CONVERSATION,
    BuiltinContext,
)
from satchel.session.loaded_skills import LoadedSkill, page_length
from satchel.session.skill_fetching import fetch_skill
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile, file_text, locate_skill_file, media_type_of
from satchel.sources.skill_findings import SKILL_FILE
from satchel.text import one_line, shorten, visible
from satchel.tools import FunctionTool, Image, Text
from satchel.tools.callables import in_thread
from satchel.trust.code_units import change_of_skill
from satchel.trust.locked_skill_reader import LockedSkillReader, not_comparable
from satchel.trust.runnable_files import CodeProblem

_LONGEST_NAME = 200
_FEW = 5
_LONGEST_RUN = 86_400.0


async def load_skill(_context: BuiltinContext, name: str, again: bool = False) -> str:
    """Load the instructions of a skill, to follow them for a particular task.

    Args:
        name: The name of the skill.
        again: True if the skill was loaded before and you can no longer see its text.
    """
    entry = _find(_context, name)
    session_state, catalog = _context.session_state, _context.catalog
    loaded = session_state.loaded.get(entry.name)
    now = (entry.version, entry.path, entry.access)
    is_same = loaded and (loaded.digest, loaded.folder, loaded.access) == now
    if again or not is_same:
        entry = await fetch_skill(entry, session_state.shared.limits)
        return session_state.load(entry, catalog, entry.name, for_model=True).text
    answer = (
        f"Skill {entry.name!r} was loaded before and has not changed; follow its text above. "
        "If you cannot see the text, call again with again=true."
    )
    return "\n\n".join(filter(None, (answer, session_state.activate_for(entry, catalog))))


async def read_skill_file(
    _context: BuiltinContext, skill: str, path: str, again: bool = False, offset: int = 0
) -> Text | Image:
    """Read one of the files that a loaded skill lists.

    Args:
        skill: The name of the skill.
        path: The file, as the skill lists it, such as references/guide.md.
        again: True if the file was read before and you can no longer see its text.
        offset: Number of characters to skip, to continue reading a long file.
    """
    loaded, entry = _find_loaded(_context, skill)
    name = _resolve_file(path, loaded, loaded.files, "file")
    limits = _context.session_state.shared.limits
    file = await entry.reader.fetch(name, limits)
    if loaded.read.get(name) == file.digest and not (again or offset):
        return Text(
            f"{name} was read before and has not changed; its text is above. "
            "If you cannot see the text, call again with again=true."
        )
    if not offset:
        loaded.read[name] = file.digest
    # In a thread: the text may be long.
    answer: Text | Image = await in_thread(lambda: _answer(file, limits, max(offset, 0)))
    return answer


def _answer(file: ServedFile, limits: Limits, offset: int) -> Text | Image:
    if (text := file_text(file, limits.resource)) is not None:
        empty = "There is no text after this offset." if offset else "The file is empty."
        return Text(_page(visible(text), offset, page_length(limits)) or empty)
    kind = media_type_of(file.name, file.data)
    if kind.startswith("image/"):
        return Image(file.data, kind)
    size = len(file.data)
    return Text(f"{file.name} cannot be shown as text ({kind}, {size:,} bytes).")


async def run_skill_script(
    _context: BuiltinContext, skill: str, script: str, args: list[str] | None = None
) -> dict[str, Any]:
    """Run a script of a loaded skill; return returncode, stdout, stderr and timed_out.

    Args:
        skill: The name of the skill.
        script: The file in scripts/, as the skill lists it, such as scripts/convert.py.
        args: The arguments of the script.
    """
    loaded, entry = _find_loaded(_context, skill)
    if not entry.access.is_runnable:
        origin = entry.access.origin
        reason = f"it comes from {origin}, not from a folder" if origin else "they are not trusted"
        raise ToolError(
            f"The scripts of skill {skill!r} cannot be run: {reason}. "
            "Read the script with read_skill_file."
        )
    name = _resolve_file(script, loaded, loaded.scripts, "script")
    # A symbolic link must not lead out of the scripts folder, nor out of the root.
    scripts = f"{loaded.folder}/{SCRIPTS_FOLDER}"
    path = locate_skill_file(scripts, scripts, name.removeprefix(f"{SCRIPTS_FOLDER}/"))
    limits = _context.session_state.shared.limits
    if entry.access.is_compared:
        await _require_same(entry, loaded)
    if isinstance(reader := entry.reader, LockedSkillReader):
        await in_thread(reader.verify)
    if locate_skill_file(loaded.root, loaded.folder, name) != path:
        raise ToolError(f"The script {script!r} was replaced just now; run it again.")
    runner, sandbox = _context.session_state.shared.programs or (None, None)
    result = await run_script(
        path, loaded.folder, args or (), limits.tool_call, runner=runner, sandbox=sandbox
    )
    return {key: visible(v) if isinstance(v, str) else v for key, v in result.items()}


async def _require_same(entry: SkillEntry, loaded: LoadedSkill) -> None:
    """Raise `ToolError` if a script, or a file that it may use, is not the one that was trusted."""
    trusted = entry.finding.programs if entry.finding else {}
    root = loaded.root if isinstance(loaded.root, str) else loaded.root.root()
    change = await in_thread(lambda: change_of_skill(loaded.folder, root, trusted))
    if isinstance(change, CodeProblem):
        raise not_comparable(change)
    if change:
        name = shorten(one_line(change), _LONGEST_NAME)
        raise ToolError(f"{name} changed after the user trusted it; tell the user to look at it.")


def _page(text: str, offset: int, length: int) -> str:
    """Return a part of a text, with a hint how to continue."""
    end = offset + length
    if len(text) <= end:
        return text[offset:]
    return f"{text[offset:end]}\n\n[{len(text) - end} more characters; continue with offset={end}]"


@cache
def skill_tool(name: str) -> FunctionTool:
    """Return one of these tools; no skill changes its schema, so a prompt cache is kept."""
    hidden: Any = {HIDDEN: None}
    if name == "run_skill_script":
        # run_script ends the script after the time limit of a call; this must take longer.
        return FunctionTool(run_skill_script, presets=hidden, timeout=_LONGEST_RUN)
    fn = load_skill if name == "load_skill" else read_skill_file
    return FunctionTool(fn, presets=hidden, annotations=SAME_CONVERSATION)


def _find(context: BuiltinContext, name: str) -> SkillEntry:
    """Return a skill that the model may load. Raises `ToolError`."""
    name = name.strip()
    visible_skills = {skill.name: skill for skill in context.view.model_skills}
    if name in visible_skills:
        return visible_skills[name]
    hidden = context.catalog.skills.get(name)
    if hidden is not None and hidden.is_for_model and hidden.groups:
        hint = context.how_to_use(hidden.groups)
        raise ToolError(f"Skill {name!r} is in tool group {context.group_of(hidden)!r}, {hint}")
    for skill in visible_skills.values():
        inner = (it.name for it in skill.files if f"/{it.name}".endswith(f"/{name}/{SKILL_FILE}"))
        if name and (path := next(inner, "")):
            raise ToolError(
                f"Skill {name!r} is inside skill {skill.name!r}. Call load_skill with name "
                f"{skill.name!r}, then read its file {path!r}."
            )
    raise ToolError(_unknown("skill", name, list(visible_skills)))


def _find_loaded(context: BuiltinContext, name: str) -> tuple[LoadedSkill, SkillEntry]:
    """Return a loaded skill and its current entry. Raises `ToolError`."""
    name = name.strip()
    loaded = context.session_state.loaded.get(name)
    if loaded is None:
        _find(context, name)  # raises if there is no such skill
        raise ToolError(f"Skill {name!r} is not loaded. Call load_skill with name {name!r} first.")
    if (entry := context.session_state.entry_of(loaded)) is not None:
        return loaded, entry
    try:
        _find(context, name)
    except ToolError:
        raise ToolError(f"Skill {name!r} is no longer available. Continue without it.") from None
    raise ToolError(f"Skill {name!r} was replaced. Call load_skill with name {name!r} again.")


def _resolve_file(path: str, skill: LoadedSkill, names: tuple[str, ...], kind: str) -> str:
    """Return the name under which the skill lists a file. Raises `ToolError`."""
    if path in names:
        return path
    name = path.strip().replace("\\", "/")
    # Models write paths in several ways.
    for prefix in ("./", f"{skill.folder}/", f"{skill.name}/"):
        if name not in names:
            name = name.removeprefix(prefix)
    if name in names:
        return name
    others = [other for other in names if other != SKILL_FILE]
    raise ToolError(_unknown(kind, name, others, f" in skill {skill.name!r}"))


def _unknown(kind: str, name: str, names: list[str], where: str = "") -> str:
    shown = shorten(one_line(name), _LONGEST_NAME)
    near = near_misses(shown, names)
    # Shortened to one line each: names of files are untrusted text.
    listed = ", ".join(shorten(one_line(n), _LONGEST_NAME) for n in near or names[:_FEW])
    hint = f" Did you mean {listed}?" if near else f" Available: {listed}." if listed else ""
    return f"There is no {kind} {shown!r}{where}.{hint}"
