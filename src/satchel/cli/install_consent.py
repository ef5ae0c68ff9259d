"""Show what an installation will run, and ask for consent."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from satchel.cli.trust_report import file_lines, shown_text
from satchel.errors import SatchelError
from satchel.files.file_reader import is_inside
from satchel.reports.short_texts import count
from satchel.settings import Limits
from satchel.sources.marketplaces import MARKETPLACE_FILE
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root
from satchel.trust.code_units import LISTING, CodeUnit, plugin_unit, skill_unit
from satchel.trust.project_inventory import scan_skills_of, servers_of_plugin
from satchel.trust.runnable_files import CodeReader, is_skill_code

if TYPE_CHECKING:
    from satchel.cli.terminal import Terminal
    from satchel.setup.setup_hook import SetupHook

_MOST_NAMES = 5
_HOOK = re.compile(rb"\bdef (satchel_\w+)")


def code_of(plugin: PluginFinding) -> CodeUnit | None:
    """Return what of a plugin's folder could run, with its text; `None` if nothing could."""
    base, chosen = plugin.path, plugin.chosen
    skills = (skill for scan in scan_skills_of(plugin, base) for skill in scan.findings.values())
    reader = CodeReader(with_text=True)
    all_units = (
        plugin_unit(plugin, base, reader),
        *(skill_unit(skill, base, reader) for skill in skills),
    )
    units = [unit for unit in all_units if unit]
    files = {_in_plugin(name, unit): file for unit in units for name, file in unit.files.items()}
    if chosen:
        files = {
            name: file
            for name, file in files.items()
            if name == LISTING or any(is_inside(name, path) for path in chosen)
        }
    problem = next((unit.problem for unit in units if unit.problem), None)
    return CodeUnit(base, files, problem) if files.keys() - {LISTING} else None


def _in_plugin(name: str, unit: CodeUnit) -> str:
    """Return the name of a file in the folder of the plugin."""
    return name if unit.folder == os.curdir else f"{unit.folder}/{name}"


def lines_of_folder(
    plugin: PluginFinding, unit: CodeUnit | None, hook: SetupHook | None
) -> list[str]:
    """Return what will run of a plugin's folder, one line for each thing."""
    if unit is None:
        return []
    manifest = plugin.manifest
    scripts = sorted(filter(is_skill_code, unit.files))
    rest = sorted(name for name in unit.files if name not in scripts and not name.endswith("/"))
    lines = [f"code: {name}" for name in rest if name.endswith(".py")]
    lines += [f"script: {name}" for name in scripts]
    others = [name for name in rest if not name.endswith(".py")]
    if others and (plugin.servers or not lines):
        shown = ", ".join(others[:_MOST_NAMES]) + (", ..." if others[_MOST_NAMES:] else "")
        lines.append(
            f"{count(len(others), 'other file')} that its scripts or MCP servers may use: {shown}"
        )
    hooks = {match.decode() for text in plugin.sources.values() for match in _HOOK.findall(text)}
    lines += [f"hook: {name}" for name in sorted(hooks)]
    if hook is not None:
        lines.append(f"runs now: setup(ctx) of {hook.file}")
    dependencies = manifest.dependencies if manifest else ()
    lines += [f"pip installs when it is loaded: {item}" for item in dependencies]
    lines += [f"MCP server {item.name}: {item.text}" for item in servers_of_plugin(plugin)]
    return lines


def text_of_code(unit: CodeUnit | None) -> list[str]:
    """Return all files of the code of a plugin, in full."""
    files = sorted(unit.files.items()) if unit else ()
    return file_lines((name, file) for name, file in files if not name.endswith("/"))


def require_consent(
    lines: Sequence[str], terminal: Terminal, *, agrees: bool, hint: str = ""
) -> None:
    """Print what will run, and ask. Raises `NotAgreedError`."""
    if not lines:
        return
    terminal.say(f"{count(len(lines), 'thing')} to trust:")
    for line in lines:
        terminal.say(f"  {shown_text(line)}", as_is=True)
    if hint and not agrees:
        terminal.say(hint)
    terminal.require_agreement("Install and run this?", yes=agrees)


def require_unchanged(unit: CodeUnit | None, folder: str) -> None:
    """Raise `SatchelError` if the code of a copied plugin is not what was shown."""
    findings = scan_plugins(search_root(folder, RootKind.PLUGINS), Limits()).findings.values()
    shown = unit.files if unit else {}
    for item in findings:
        now = code_of(item)
        for name, file in now.files.items() if now else ():
            if name in {LISTING, MARKETPLACE_FILE}:
                continue  # a copy gets a listing that says which plugin it is
            is_other = name in shown and shown[name].digest != file.digest
            if is_other or (name not in shown and name.endswith(".py")):
                raise SatchelError(
                    f"{shown_text(name)} changed after it was shown; nothing was installed",
                    where=folder,
                )
