"""The built-in tools: a plugin that is disabled until the host names `builtin`.

    Satchel(entry_points=["builtin"])

`get_today_date` is harmless. The file tools stay inside one folder, which the host sets as
`base_directory`; without it they are not loaded. The two tools that run code use a sandbox where
the system has one. WITHOUT ONE the model's code runs with all rights of the host's user. It can
read whatever that user can read, the environment of the host's process included, and can use the
network. If the model reads untrusted text, run the host in a container or as a user with few
rights, or set `Sandbox(mode="required")`.
"""

from collections.abc import Callable
from typing import Any

from satchel.builtin.date_tools import get_today_date
from satchel.builtin.execution_tools import execute_python_code, execute_shell_command
from satchel.builtin.file_tools import insert_text_file, view_text_file, write_text_file
from satchel.catalog.catalog_entries import Group
from satchel.plugins.hookspecs import hookimpl

_DATES = """\
You do not know the date. Call get_today_date before you work with today, tomorrow or a weekday.\
"""

_FILES = """\
Paths are relative to the working folder; files outside it cannot be used. View a file before you \
change it. Line numbers begin at 1; negative numbers count from the end, so [-20, -1] is the last \
twenty lines. Every change moves the lines below it: make one call at a time for a file, and edit \
from the bottom up or view the file again between changes. To change a long file, write a range.\
"""

_CODE = """\
Each call of execute_python_code starts a new interpreter: variables, imports and installed \
packages of earlier calls are gone. Print what you want to see; the value of the last line is not \
shown. There is no keyboard input.\
"""

_SHELL = """\
Each call of execute_shell_command starts a new shell: cd and variables do not last, so write \
`cd folder && command`. There is no keyboard input, so pass options such as --yes. Background \
processes are ended when the command returns.\
"""


@hookimpl
def satchel_tools() -> list[Callable[..., Any]]:
    """Return all built-in tools."""
    return [
        get_today_date,
        view_text_file,
        write_text_file,
        insert_text_file,
        execute_python_code,
        execute_shell_command,
    ]


@hookimpl
def satchel_groups() -> list[Group]:
    """Return the groups; only `dates`, which is harmless, is active by default."""
    return [
        Group(
            name="dates",
            description="Today's date and the days around it.",
            notes=_DATES,
            active=True,
            tools=("get_today_date",),
        ),
        Group(
            name="files",
            description="View, write and edit text files in the working folder.",
            notes=_FILES,
            tools=("view_text_file", "write_text_file", "insert_text_file"),
        ),
        Group(
            name="code",
            description="Run Python code, for calculations, data and checks.",
            notes=_CODE,
            tools=("execute_python_code",),
        ),
        Group(
            name="shell",
            description="Run shell commands.",
            notes=_SHELL,
            tools=("execute_shell_command",),
        ),
    ]
