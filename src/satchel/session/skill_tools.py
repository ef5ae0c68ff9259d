"""`load_skill`, `read_skill_file` and `run_skill_script`: the model uses skills."""

from functools import cache
from typing import Any

from satchel.catalog import SkillEntry
from satchel.errors import ToolError
from satchel.groups import View
from satchel.names import near_misses
from satchel.runtime.skill_scripts import SCRIPTS_FOLDER, run_script, scripts_of
from satchel.session.builtin_context import (
    HIDDEN,
    SAME_CONVERSATION,
    BuiltinContext,
    describe_parameters,
)
from satchel.session.loaded_skills import LoadedSkill, page_length
from satchel.session.skill_fetching import fetch_skill
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile, file_text, locate_skill_file, media_type_of
from satchel.sources.skill_scan import SKILL_FILE
from satchel.text import one_line, shorten, visible
from satchel.tools import FunctionTool, Image, Text
from satchel.tools.callables import in_thread

_LONGEST_NAME = 200
_FEW = 5
_LONGEST_RUN = 86_400.0


async def load_skill(_desk: BuiltinContext, name: str, again: bool = False) -> str:
    """Load a skill: instructions for a particular task, to follow from then on.

    Args:
        name: The name of the skill.
        again: True if it was loaded before, and its text is no longer to be seen.
    """
    entry = _found(_desk, name)
    conversation, catalog = _desk.conversation, _desk.catalog
    known = conversation.loaded.get(entry.name)
    is_same = known and (known.digest, known.folder) == (entry.version, entry.path)
    if again or not is_same:
        entry = await fetch_skill(entry, conversation.shared.limits)
        return conversation.load(entry, catalog, entry.name, for_model=True).text
    told = (
        f"Skill {entry.name!r} was loaded before and has not changed; follow its text above. "
        "With again=true it is shown once more."
    )
    return "\n\n".join(filter(None, (told, conversation.switch_on_for(entry, catalog))))


async def read_skill_file(
    _desk: BuiltinContext, skill: str, path: str, again: bool = False, offset: int = 0
) -> Text | Image:
    """Read one of the files that a loaded skill lists.

    Args:
        skill: The name of the skill.
        path: The file, as the skill lists it, such as references/guide.md.
        again: True if it was read before, and its text is no longer to be seen.
        offset: Characters to skip, to go on with a long file.
    """
    loaded, entry = _loaded(_desk, skill)
    name = _listed(path, loaded, loaded.files, "file")
    limits = _desk.conversation.shared.limits
    file = await entry.reader.fetch(name, limits)
    if loaded.read.get(name) == file.digest and not (again or offset):
        return Text(
            f"{name} was read before and has not changed; its text is above. "
            "With again=true it is shown once more."
        )
    if not offset:
        loaded.read[name] = file.digest
    # In a thread: a text may be long.
    told: Text | Image = await in_thread(lambda: _told(file, limits, max(offset, 0)))
    return told


def _told(file: ServedFile, limits: Limits, offset: int) -> Text | Image:
    """Return what the model is told of a file."""
    if (text := file_text(file, limits.resource)) is not None:
        empty = "There is nothing after that." if offset else "It is empty."
        return Text(_page(visible(text), offset, page_length(limits)) or empty)
    kind = media_type_of(file.name, file.data)
    if kind.startswith("image/"):
        return Image(file.data, kind)
    size = len(file.data)
    return Text(f"{file.name} is no text that could be shown ({kind}, {size:,} bytes).")


async def run_skill_script(
    _desk: BuiltinContext, skill: str, script: str, args: list[str] | None = None
) -> dict[str, Any]:
    """Run a script of a loaded skill; return returncode, stdout, stderr and timed_out.

    Args:
        skill: The name of the skill.
        script: The file below scripts/, as the skill lists it, such as scripts/convert.py.
        args: The arguments of the script.
    """
    loaded, entry = _loaded(_desk, skill)
    if entry.server:
        raise ToolError(
            f"Skill {skill!r} is of the MCP server {entry.server!r}, and no script of a server is "
            "run. Read it with read_skill_file."
        )
    name = _listed(script, loaded, loaded.scripts, "script")
    locate_skill_file(loaded.root, loaded.folder, name)
    # A link may lead elsewhere in the user's folder, but what it leads to is no script there.
    scripts = f"{loaded.folder}/{SCRIPTS_FOLDER}"
    path = locate_skill_file(scripts, scripts, name.removeprefix(f"{SCRIPTS_FOLDER}/"))
    seconds = _desk.conversation.shared.limits.tool_call
    result = await run_script(path, loaded.folder, args or (), seconds)
    return {key: visible(v) if isinstance(v, str) else v for key, v in result.items()}


def _page(text: str, offset: int, length: int) -> str:
    """Return a part of a text, and say how to go on."""
    end = offset + length
    if len(text) <= end:
        return text[offset:]
    return f"{text[offset:end]}\n\n[{len(text) - end} more characters; go on with offset={end}]"


def loader_tool(view: View, *, is_whole: bool) -> FunctionTool | None:
    """Return `load_skill` for the skills of a view; `None` if there are none.

    With `is_whole` the prompt lists all of them, and so does the schema.
    """
    names = [skill.name for skill in view.model_skills]
    if not names:
        return None
    tool = _loader()
    if not is_whole:
        return tool
    shown = {**tool.parameters["properties"]["name"], "enum": names}
    return describe_parameters(tool, {"name": shown})


def reader_tool(view: View, *, is_needed: bool) -> FunctionTool | None:
    """Return `read_skill_file`; `None` if no skill of the view has further files.

    With `is_needed` one that was loaded has some, be it hidden or out of sight by now.
    """
    is_useful = is_needed or any(len(skill.files) > 1 for skill in view.model_skills)
    return _reader() if is_useful else None


def script_tool(view: View, *, is_needed: bool) -> FunctionTool | None:
    """Return `run_skill_script`; `None` if no skill of the view has scripts.

    With `is_needed` one that was loaded has some, be it hidden or out of sight by now.
    """
    is_useful = is_needed or any(
        scripts_of(file.name for file in skill.files)
        for skill in view.model_skills
        if not skill.server
    )
    return _runner() if is_useful else None


@cache
def _loader() -> FunctionTool:
    return FunctionTool(load_skill, presets={HIDDEN: None}, annotations=SAME_CONVERSATION)


@cache
def _reader() -> FunctionTool:
    return FunctionTool(read_skill_file, presets={HIDDEN: None}, annotations=SAME_CONVERSATION)


@cache
def _runner() -> FunctionTool:
    # The script has the limit of a call; ending it takes a little longer than that.
    return FunctionTool(run_skill_script, presets={HIDDEN: None}, timeout=_LONGEST_RUN)


def _found(desk: BuiltinContext, name: str) -> SkillEntry:
    """Return a skill that the model may load. Raises `ToolError`."""
    name = name.strip()
    shown = {skill.name: skill for skill in desk.view.model_skills}
    if name in shown:
        return shown[name]
    hidden = desk.catalog.skills.get(name)
    if hidden is not None and hidden.is_for_model and hidden.groups:
        told = desk.how_to_use(hidden.groups)
        raise ToolError(f"Skill {name!r} is in tool group {desk.group_of(hidden)!r}, {told}")
    raise ToolError(_unknown("skill", name, list(shown)))


def _loaded(desk: BuiltinContext, name: str) -> tuple[LoadedSkill, SkillEntry]:
    """Return a skill that was loaded, and what became of it. Raises `ToolError`."""
    name = name.strip()
    loaded = desk.conversation.loaded.get(name)
    if loaded is None:
        _found(desk, name)  # which says so if there is none
        raise ToolError(f"Skill {name!r} is not loaded. Call load_skill with name {name!r} first.")
    if (entry := desk.conversation.entry_of(loaded)) is None:
        raise ToolError(f"Skill {name!r} is not there any more. Go on without it.")
    return loaded, entry


def _listed(path: str, skill: LoadedSkill, names: tuple[str, ...], what: str) -> str:
    """Return a file by the name that its skill lists it under. Raises `ToolError`."""
    if path in names:
        return path
    name = path.strip().replace("\\", "/")
    # Models write the way to a file in more than one manner.
    for start in ("./", f"{skill.folder}/", f"{skill.name}/"):
        if name not in names:
            name = name.removeprefix(start)
    if name in names:
        return name
    others = [known for known in names if known != SKILL_FILE]
    raise ToolError(_unknown(what, name, others, f" in skill {skill.name!r}"))


def _unknown(what: str, name: str, known: list[str], where: str = "") -> str:
    shown = shorten(one_line(name), _LONGEST_NAME)
    near = near_misses(shown, known) or known[:_FEW]
    # Names of files are written by strangers, too.
    told = ", ".join(shorten(one_line(other), _LONGEST_NAME) for other in near)
    hint = f" There is: {told}." if near else ""
    return f"There is no {what} {shown!r}{where}.{hint}"
