"""The built-in tools: a plugin like any other, off until a host names `builtin`.

    Satchel(entry_points=["builtin"])

Dates need no thought. The file tools are kept inside one folder, which the host gives as
`base_directory`; without it they are not loaded. The two that run code are NOT a sandbox: what the
model writes runs with all the rights of the host's own user, can read whatever that user can
read, the environment of the host's process included, and can use the network. Limits of time,
output and inherited environment only guard against accidents. Run the host in a container, or as
a user who may do little, before a model that reads strangers' texts gets to use them.
"""

from collections.abc import Callable
from typing import Any

from satchel.builtin.date_tools import get_today_date
from satchel.builtin.execution_tools import execute_python_code, execute_shell_command
from satchel.builtin.file_tools import insert_text_file, view_text_file, write_text_file
from satchel.catalog import Group
from satchel.plugins import hookimpl

_DATES = """\
Call get_today_date before you reckon with today, tomorrow or a weekday: you do not know the date.\
"""

_FILES = """\
Paths are relative to one folder, and nothing outside it can be reached. View a file before you \
change it. Line numbers begin at 1; negative ones count from the end, so [-20, -1] is the last \
twenty lines. Every change moves the lines below it: change one file with one call at a time, from \
the bottom up, or view it again in between. Prefer a range to writing a long file anew.\
"""

_CODE = """\
Each call of execute_python_code is a new interpreter: variables, imports and installed packages \
of an earlier call are gone. Print what you want to see; the value of the last line is not shown. \
There is no keyboard input.\
"""

_SHELL = """\
Each call of execute_shell_command is a new shell: cd and variables do not last, so write \
`cd folder && command`. There is no keyboard input, so pass options such as --yes. What still runs \
in the background when the command returns is ended.\
"""


@hookimpl
def satchel_tools() -> list[Callable[..., Any]]:
    """Return the tools."""
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
    """Describe the groups; only the harmless one is active by itself."""
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
