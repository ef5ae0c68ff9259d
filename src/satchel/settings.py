"""Every limit and setting that an application can change, with its default."""

from dataclasses import field

from satchel.lazy_dataclass import dataclass

MIB = 1024 * 1024
KIB = 1024

WALL_FACTOR = 12
"""How many times as long as its processor time code may take on the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that protect the agent from one bad skill, plugin, tool or server.

    A diagnostic or an error says which limit was exceeded.
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
    find_folders: int = 50_000
    files_per_skill: int = 2_000
    resource: int = 5 * MIB
    plugin_source: int = 16 * MIB
    plugin_import: float = 10.0
    """Processor time of importing a plugin; on the clock it may take twelve times as long."""
    hook: float = 5.0
    provider: float = 10.0
    """How long a provider may take to contribute; then its last contribution stays."""
    tool_definition: int = 64 * KIB
    """Largest definition of one tool of a plugin, a provider or the application."""
    tool_schema_depth: int = 64
    group_notes: int = 64 * KIB
    """Longest notes of a group; more is cut."""
    tool_call: float = 60.0
    loop_blocked: float = 1.0
    """How long an async tool may block the event loop before the log names it."""
    cancel_grace: float = 1.0
    """How long a cancelled tool may take to end; then it is abandoned."""
    result_text: int = 256 * KIB
    drain: float = 30.0
    """How long a removed server may still answer running calls."""
    mcp_connect: float = 10.0
    """How long connecting to a server and listing its tools may take."""
    mcp_startup: float = 60.0
    """How long the program of a server may take to start; it gets longer after each late try."""
    mcp_message: int = 16 * MIB
    """Largest message of a server."""
    mcp_tools: int = 500
    """Most tools, prompts, resources and templates of a server, each."""
    mcp_skills: int = 500
    mcp_schema: int = 64 * KIB
    """Largest definition of one tool of a server."""
    mcp_listing: int = 4 * MIB
    """Largest total size of the tools, prompts, resources and templates of a server, each."""
    mcp_schema_depth: int = 64
    plugin_install: float = 600.0
    """How long installing the dependencies of an isolated plugin may take."""
    worker_memory: int = 1024 * MIB
    """Memory limit of an isolated plugin, where the system supports one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTimings:
    """How quickly a watch reacts, in seconds.

    `step` is how often the watcher looks for events: one arrives one to two steps after the write.
    """

    step: float = 0.003
    heartbeat: float = 0.25
    """How often roots and installed packages are checked directly."""
    settle: float = 0.2
    """How long a newly broken file counts as half written."""
    quiet: float = 0.1
    """How long a burst must be silent before it is read (debounce)."""
    burst: int = 24
    """The number of paths from which a batch counts as a burst."""
    patience: float = 10.0
    """Longest wait for a burst, a git checkout or an installation to end."""
    safety_scan_active: float = 2.0
    """How long after the last change everything is compared once.

    It is later where the comparison would take over 1 % of a core.
    """
    safety_scan_idle: float = 30.0
    """How often everything is compared while nothing changes.

    It is less often where these comparisons would take over 0.3 % of a core.
    """
    poll: float = 1.0
    """How often everything is compared if the system sends no events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What the scripts of skills, and the commands and the code of a model, may do.

    It counts where the system has a sandbox that works; see `mode`.
    """

    mode: str = "auto"
    """`auto`: in a sandbox if there is one; `required`: otherwise not at all; `off`: without."""
    network: bool = False
    """Whether they reach the network, and the sockets of this machine."""
    write_skill: bool = False
    """Whether a script may change the folder of its skill."""
    writable: tuple[str, ...] = ()
    """Further folders that they may change."""
    memory: int = 4096 * MIB
    """Memory of each process, also without a sandbox; 0 for none of these limits.

    In the sandbox it is also the most that files in `/tmp` and `/dev/shm` take, each half of it.
    """
    processes: int = 512
    """Processes and threads at once, in the sandbox; Linux does not limit those of root."""
    file_size: int = 1024 * MIB
    """Size of a file that they write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a `Satchel`, apart from its skills and plugins."""

    limits: Limits = field(default_factory=Limits)
    pace: WatchTimings = field(default_factory=WatchTimings)
    polling: bool = False
    """Compare with `os.stat` instead of using events of the operating system."""
    config_folder: str = ""
    """The folder of the plugins' configuration files; `""` for the user's own folder."""
    mcp_servers: bool = True
    """Whether to connect the MCP servers that plugins and `satchel.toml` name."""
    ask_mcp_clients: bool = False
    """Whether MCP clients that are served are asked what the MCP servers ask."""
    state_folder: str = ""
    """The folder of approved MCP tools, logins and owners of names; `""` for the user's own."""
    plugin_wait: float | None = None
    """How long the start waits for slow imports, which then continue in the background of a watch.

    `None` waits for all.
    """
    sandbox: Sandbox = field(default_factory=Sandbox)
    cache: bool = True
    """Whether skills that were read before are taken from the user's cache while unchanged."""
