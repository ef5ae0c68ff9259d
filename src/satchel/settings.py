"""Every limit and choice that a host can change, with its default."""

from dataclasses import dataclass, field

MIB = 1024 * 1024
KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that keep one bad unit from harming the rest; hitting one names it.

    Sizes are bytes, times are seconds, lengths are characters.
    """

    skill_file: int = MIB
    frontmatter: int = 64 * KIB
    yaml_depth: int = 16
    yaml_nodes: int = 2_000
    description_shown: int = 1_024
    description_accepted: int = 4_096
    json_file: int = MIB
    json_depth: int = 200
    find_depth: int = 6
    find_folders: int = 2_000
    files_per_skill: int = 2_000
    resource: int = 5 * MIB
    plugin_source: int = 16 * MIB
    plugin_import: float = 10.0
    hook: float = 5.0
    tool_call: float = 60.0
    cancel_grace: float = 1.0
    """How long a tool may take to end once it is told to; then it is left behind."""
    result_text: int = 256 * KIB
    drain: float = 30.0
    """How long a server that was removed may still answer the calls that had begun."""
    mcp_connect: float = 10.0
    """How long a server may take to be connected to, and to list its tools."""
    mcp_message: int = 16 * MIB
    """Longest message of a server."""
    mcp_tools: int = 500
    mcp_skills: int = 500
    mcp_schema: int = 64 * KIB
    """Largest definition of one tool of a server."""
    mcp_listing: int = 4 * MIB
    """How much the definitions of all tools of one server may take."""
    mcp_schema_depth: int = 64
    plugin_install: float = 600.0
    """How long the dependencies of a plugin's process may take to be installed."""
    worker_memory: int = 1024 * MIB
    """How much memory the process of a plugin may take, where the system bounds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimings:
    """How quickly the watch answers, in seconds.

    `step` is the watcher's own tick: news comes about one and a half steps after the write.
    """

    step: float = 0.01
    heartbeat: float = 0.25
    """How often roots and installed packages are looked at directly."""
    settle: float = 0.2
    """How long a file that broke just now may still be half written."""
    quiet: float = 0.1
    """How long a burst must be silent before it is read."""
    burst: int = 24
    """From how many paths on a batch counts as a burst."""
    patience: float = 10.0
    """Longest wait for a burst, a git checkout or an installation to end."""
    resync_active: float = 2.0
    resync_idle: float = 30.0
    poll: float = 1.0
    """How often everything is compared when the operating system cannot notify."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a host can choose about a `Satchel` besides its sources."""

    limits: Limits = field(default_factory=Limits)
    pace: WatchTimings = field(default_factory=WatchTimings)
    polling: bool = False
    """Compare with `os.stat` instead of asking the operating system for events."""
    config_folder: str = ""
    """Where the files of plugins' configuration are; `""` for the user's own folder."""
    mcp_servers: bool = True
    """Whether the MCP servers that enabled plugins and `satchel.toml` name are reached."""
    state_folder: str = ""
    """Where we remember what remote servers said first; `""` for the user's own folder."""
