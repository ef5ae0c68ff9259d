"""`satchel disable`: disable skills, tools, groups or plugins in `satchel.toml`."""

from satchel.cli.commands.enable_command import selection_command
from satchel.cli.selection_editor import disable_name

command = selection_command("disable", disable_name)
