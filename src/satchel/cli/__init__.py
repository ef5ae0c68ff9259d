"""The command line: `entry` begins, one module in `commands` for each command."""
