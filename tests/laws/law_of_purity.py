"""Law 2 as a check: only some touch disk, processes, network and clocks.

Takes the name of a module, such as `prompt.notes`, and a source text, and returns what it has
against it: so `test_the_laws_can_fail.py` can try texts that nobody wrote.

It cannot see attributes of values (`loop.run_in_executor`), nor names that are put together
while the program runs.
"""

import ast

from law_of_floors import imported, imports, room_of

VALUES = {"abc", "collections.abc", "dataclasses", "enum", "functools.partial", "typing"} | {
    *("collections.OrderedDict", "contextlib.suppress", "copy.copy", "copy.deepcopy"),
    *("functools.cached_property", "types.GeneratorType", "types.MappingProxyType"),
    "types.UnionType",
    "types.NoneType",
}
"""What every module may use: the makings of values and of types."""

PURE = {
    "errors": set(),
    "text": {"re.compile", "unicodedata.category"},
    "settings": set(),
    "diagnostics": set(),
    "names": {
        *("difflib.get_close_matches", "fnmatch.fnmatchcase", "re.compile", "re.split"),
        "unicodedata.normalize",
    },
    "tools": {
        *("json.dumps", "json.loads"),
        *("base64.b64encode", "json.JSONEncoder", "re.IGNORECASE", "re.compile", "re.escape"),
        *("inspect.Parameter", "inspect.cleandoc", "inspect.signature", "inspect.unwrap"),
        *("inspect.iscoroutinefunction", "jsonschema_rs"),
        *("griffe.Docstring", "griffe.Parser", "griffe.parse_auto"),
        "griffe.DocstringSectionAdmonition",
        "griffe.DocstringSectionOtherParameters",
        "griffe.DocstringSectionParameters",
        "griffe.DocstringSectionText",
        *("pydantic", "pydantic_core.from_json", "pydantic_core.to_jsonable_python"),
        "urllib.parse.unquote",
    },
    "manifests": {
        *("ast", "hashlib.blake2b", "pathlib.PurePath", "pathlib.PurePosixPath", "re", "yaml"),
        *("ipaddress.ip_address", "json.dumps", "json.loads"),
        *("contextlib.contextmanager", "inspect.cleandoc", "textwrap.dedent"),
    },
    "contracts": {
        *("ast", "hashlib.blake2b", "json.dumps", "json.loads", "re.compile"),
        *("inspect.Signature", "inspect.isasyncgenfunction", "inspect.iscoroutine"),
        *("inspect.iscoroutinefunction", "inspect.isgeneratorfunction", "inspect.signature"),
    },
    "catalog": {
        "satchel.sources.file_reader.UnitFile",
        "satchel.sources.search_roots.Scope",
        "satchel.sources.skill_files.LocalFiles",
        "satchel.sources.skill_files.SkillReader",
        "satchel.sources.skill_scan.SkillFinding",
    },
    "groups": set(),
    "prompt": {"re.IGNORECASE", "re.compile", "string.Formatter"},
    "runtime": {
        *("inspect.iscoroutinefunction", "inspect.signature"),
        *("json.dumps", "fnmatch.fnmatchcase", "math.ceil"),
        *("itertools.dropwhile", "heapq.heappop", "heapq.heappush", "collections.deque"),
    },
    "search": {"itertools.pairwise", "re.compile", "unicodedata.normalize"},
    "shared": {"pickle.HIGHEST_PROTOCOL", "pickle.dumps", "pickle.loads"},
    "carrying": {"itertools.count", "satchel.sources", "time.monotonic"},
    "registering": set(),
    "registry": set(),
    "plugins": {
        *("json.dumps", "os.PathLike", "os.fspath", "os.path.isabs", "os.path.join"),
        *("pluggy", "re.Match", "re.compile", "satchel.sources", "click.Command"),
        *("inspect.iscoroutine", "inspect.isfunction", "itertools.islice"),
    },
    "loader": {"satchel.sources"},
    "session": {
        "collections.Counter",
        "collections.deque",
        "contextlib.aclosing",
        "satchel.sources",
        "weakref.WeakSet",
        "weakref.ref",
    },
    "__main__": set(),
}
"""What a pure room may use beside the values. `satchel.sources` is how it asks for the world."""

EXCEPTIONS = {
    "sources": (
        "it is the room of the disk, the clock, the watch and the running of plugin code",
        {
            *("dotenv", "io.StringIO", "platformdirs"),
            *("builtins", "configparser", "contextlib", "email.parser", "hashlib", "importlib"),
            *("itertools", "linecache", "os", "re", "site", "stat", "sys", "threading", "time"),
            "weakref",
            *("types", "satchel.sources", "watchfiles"),
            *("fnmatch.translate", "shlex.quote", "tomllib"),
        },
    ),
    "sources.containment": (
        "it reads and writes files inside one folder, and locks them",
        {"errno", "fcntl", "open", "pathlib.PureWindowsPath"},
    ),
    "sources.environments": (
        "it has packages installed",
        {"shutil.which", "subprocess", "tempfile.TemporaryDirectory"},
    ),
    "sources.files": ("it reads the files", {"open"}),
    "sources.writing": ("it writes the user's files, one at a time", {"fcntl", "open"}),
    "sources.process": (
        "it puts back whether garbage is collected",
        {"gc.disable", "gc.enable", "gc.isenabled"},
    ),
    "sources.serving": (
        "it reads names as any system would, and asks for the kind of a file",
        {"mimetypes.MimeTypes", "pathlib.PurePosixPath", "pathlib.PureWindowsPath"},
    ),
    "sources.scratch": ("it makes a folder for a while", {"tempfile.TemporaryDirectory"}),
    "sources.snapshots": (
        "importing is running a source text; `globals` is a parameter's name there",
        {"compile", "exec", "globals", "open"},
    ),
    "tools.calling": (
        "a blocking tool runs in a thread, an async one on the loop",
        {
            *("asyncio.Future", "asyncio.Queue", "asyncio.get_running_loop"),
            *("threading.Event", "threading.Semaphore", "threading.Thread"),
            *("queue.SimpleQueue", "contextlib.closing", "inspect.isgeneratorfunction"),
            *("contextvars.copy_context", "inspect.isasyncgen", "inspect.isasyncgenfunction"),
            *("inspect.isawaitable", "inspect.iscoroutinefunction", "inspect.isgenerator"),
        },
    ),
    "tools.schema": (
        "one class is made when pydantic is first needed, and is then always the same",
        {"functools.cache"},
    ),
    "plugins.life": (
        "startup and shutdown are told with a time limit; coroutines get a loop of their own",
        {
            *("asyncio.all_tasks", "asyncio.gather", "asyncio.new_event_loop"),
            *("asyncio.run_coroutine_threadsafe", "asyncio.set_event_loop"),
            *("contextlib.suppress", "inspect.isawaitable", "logging.getLogger"),
            *("threading.Lock", "threading.Thread", "threading.main_thread", "pluggy"),
            "threading.current_thread",
            "signal",
            "satchel.sources",
        },
    ),
    "runtime.call_task": (
        "a call is a task of its own, and what goes on after its end is written to the log",
        {
            *("asyncio.CancelledError", "asyncio.Task", "asyncio.get_running_loop"),
            *("contextlib.suppress", "enum.StrEnum", "logging.getLogger", "sys.version_info"),
        },
    ),
    "runtime.onion": ("middleware runs in the context of its call", {"contextvars.ContextVar"}),
    "runtime.run": (
        "a function is cancelled when its time is over",
        {"asyncio.CancelledError", "asyncio.current_task"},
    ),
    "runtime.memory": (
        "equal calls wait for one, and answers grow old",
        {
            *("asyncio.get_running_loop", "asyncio.shield", "json.loads", "math.inf"),
            "time.monotonic",
        },
    ),
    "tools.runner": (
        "what a function returns may be awaited or drawn from",
        {"inspect.isawaitable", "types.GeneratorType"},
    ),
    "runtime.explain": (
        "a fault has a traceback in the log, and an id to find it by",
        {"logging.getLogger", "os.urandom", "traceback.format_exception"},
    ),
    "runtime.redaction": (
        "what is secret here stands in the environment, and home is a folder",
        {"os.environ.items", "os.getcwd", "os.path.expanduser", "re"},
    ),
    "runtime.background": (
        "a task goes on by itself; its tools are described once",
        {
            *("asyncio.create_task", "asyncio.get_running_loop", "asyncio.wait"),
            *("functools.cache", "itertools.count"),
        },
    ),
    "contracts.contract": ("a schema may be a model", {"pydantic.BaseModel"}),
    "session.planning": (
        "no model is told what was corrected, so the log is",
        {"logging.getLogger"},
    ),
    "session.searching": ("its tools are described once", {"functools.cache"}),
    "session.skilltools": ("its tools are described once", {"functools.cache"}),
    "runtime.opening": (
        "it closes what it opened, in place of the event loop",
        {"contextlib.asynccontextmanager", "sys.get_asyncgen_hooks", "sys.set_asyncgen_hooks"},
    ),
    "runtime.processes": (
        "it runs a program to its end, in time",
        {
            *("asyncio.Event", "asyncio.get_running_loop", "asyncio.sleep", "asyncio.timeout"),
            *("codecs.getincrementaldecoder", "contextlib", "errno.E2BIG", "sys.platform"),
            *("os.environ.items", "os.killpg", "os.read", "os.set_blocking"),
            *("subprocess.DEVNULL", "subprocess.PIPE", "subprocess.Popen", "threading.Thread"),
        },
    ),
    "runtime.scripts": (
        "it looks at a script, and for the program that runs it",
        {
            *("os.X_OK", "os.access", "os.path", "shutil.which", "sys.executable"),
            *(
                "satchel.sources.file_reader.UnreadableFileError",
                "satchel.sources.file_reader.is_utf8",
            ),
            "satchel.sources.file_reader.read_regular",
        },
    ),
    "runtime.turns": (
        "turns come by the clock, to those who wait on a loop, in several threads",
        {
            *("asyncio.AbstractEventLoop", "asyncio.Future", "asyncio.get_running_loop"),
            *("asyncio.sleep", "threading.Lock", "time.monotonic"),
        },
    ),
    "runtime.executors.attempt": (
        "what a run raises against its promise goes to the log",
        {"logging.getLogger"},
    ),
    "runtime.executors.breaker": (
        "a tool rests for a time, and is counted from several threads",
        {"threading.Lock", "time.monotonic"},
    ),
    "runtime.executors.pool": (
        "calls run in tasks of their own",
        {
            *("asyncio.CancelledError", "asyncio.Queue", "asyncio.Task"),
            *("asyncio.get_running_loop", "asyncio.wait", "contextvars.copy_context"),
        },
    ),
    "runtime.executors.rate": ("turns come by the clock", {"time.monotonic"}),
    "runtime.executors.stream": (
        "it guards its reading, and may be collected when its loop is closed",
        {"contextlib.contextmanager"},
    ),
    "runtime.middleware.approval": ("what fails is logged", {"logging.getLogger"}),
    "runtime.middleware.caching": (
        "answers grow old, and equal calls wait for one",
        {"asyncio.wrap_future", "time.monotonic"},
    ),
    "runtime.middleware.deadline": (
        "it is a time limit",
        {
            *("asyncio.CancelledError", "asyncio.current_task", "asyncio.get_running_loop"),
            "asyncio.timeout",
        },
    ),
    "runtime.middleware.ending": ("it knows a cancellation", {"asyncio.CancelledError"}),
    "runtime.middleware.logs": ("it logs, with times", {"logging.getLogger", "time.monotonic"}),
    "runtime.middleware.measuring": (
        "it measures time, and logs a report that fails",
        {"logging.getLogger", "time.monotonic"},
    ),
    "runtime.middleware.pacing": ("turns come by the clock", {"time.monotonic"}),
    "runtime.middleware.retrying": (
        "it waits, by chance longer or shorter",
        {"asyncio.sleep", "itertools.count", "random.random"},
    ),
    "runtime.middleware.tracing": ("spans of OpenTelemetry", {"opentelemetry.trace"}),
    "search.index": (
        "several threads use it, and SQLite finds the words, in memory",
        {"sqlite3.Error", "sqlite3.connect", "threading.Lock"},
    ),
    "builtin": (
        "its tools are for the disk and for processes; a date needs the clock",
        {
            *("contextlib", "datetime", "open", "os", "pathlib.Path", "sys"),
            *("satchel.sources.contained_files", "tempfile.TemporaryDirectory"),
        },
    ),
    "remote": (
        "it speaks to servers, on a thread with an event loop of its own",
        {
            *("asyncio", "concurrent.futures.Future", "logging.getLogger", "mcp", "mcp_types"),
            *("anyio", "contextlib.asynccontextmanager", "hashlib.blake2b", "json.dumps"),
        },
    ),
    "remote.carriedskills": (
        "it makes names, and what is found in folders otherwise",
        {"re.sub", "satchel.sources"},
    ),
    "remote.connection": (
        "it takes answers apart, and waits",
        {"contextlib.contextmanager", "functools.partial", "math.inf", "pydantic.TypeAdapter"},
    ),
    "remote.listing": (
        "a list may hold for ever, and tools of it may be none",
        {"functools.partial", "math.inf", "pydantic.ValidationError"},
    ),
    "remote.declared": (
        "texts name variables, and names may need a number",
        {"itertools.chain", "itertools.count", "math.inf", "re.Match", "re.compile"},
    ),
    "remote.definitions": ("it knows control characters", {"re.compile"}),
    "remote.differing": ("it takes definitions apart", {"json.loads"}),
    "remote.expanding": (
        "it tells patterns apart, and takes some of many",
        {"itertools.chain", "itertools.islice", "re.compile"},
    ),
    "remote.fleet": ("files of skills come as from a folder", {"satchel.sources"}),
    "remote.loop": (
        "it is the thread",
        {
            *("threading.Event", "threading.Lock", "threading.Thread", "threading.current_thread"),
            "os.getpid",
        },
    ),
    "remote.opening": (
        "it opens the ways to servers, and hears what processes say",
        {
            *("contextlib.AbstractAsyncContextManager", "contextlib.contextmanager"),
            *("os.fdopen", "os.pipe"),
        },
    ),
    "remote.network": ("it speaks to servers on a network", {"httpx2"}),
    "remote.outcome": ("pictures come as text", {"base64.b64decode"}),
    "remote.pauses": ("it waits, by chance longer or shorter", {"random.uniform"}),
    "remote.naming": (
        "it makes names that providers accept",
        {"itertools.chain", "itertools.count", "re.sub"},
    ),
    "remote.pinning": (
        "it remembers what servers said first",
        {"json.loads", "satchel.sources"},
    ),
    "remote.process": (
        "it runs a program to speak with it",
        {"os.killpg", "signal.SIGKILL", "signal.SIGTERM", "sys.platform"},
    ),
    "remote.reading": (
        "it takes files out of messages, and keeps some",
        {
            *("base64.b64decode", "collections.OrderedDict", "concurrent.futures.CancelledError"),
            *("pydantic.TypeAdapter", "satchel.sources"),
        },
    ),
    "remote.reasons": ("it says why a server cannot be reached", {"httpx2"}),
    "remote.servers": (
        "it takes names and secrets from commands and addresses",
        {
            *("itertools.chain", "os.path.basename", "os.path.exists", "os.path.splitext"),
            *("re.sub", "urllib.parse.parse_qsl", "urllib.parse.unquote", "urllib.parse.urlsplit"),
        },
    ),
    "remote.supplying": (
        "tools are chosen by patterns",
        {"fnmatch.fnmatchcase", "satchel.sources", "shlex.quote"},
    ),
    "remote.skills": (
        "it judges what strangers list as what is found in a folder",
        {
            *("hashlib.sha256", "pydantic.TypeAdapter", "re.compile", "satchel.sources"),
            "urllib.parse.unquote_to_bytes",
        },
    ),
    "remote.supervising": (
        "others wait for it in their threads",
        {"contextlib.AbstractAsyncContextManager", "satchel.sources", "threading.Event"},
    ),
    "setup": (
        "it installs plugins: files are put in place, and what an author wrote is run",
        {
            *("contextlib.contextmanager", "contextlib.suppress", "os", "pathlib.Path"),
            *("platformdirs.user_data_dir", "satchel.sources"),
        },
    ),
    "setup.archives": (
        "it takes archives apart",
        {
            *("bz2.BZ2File", "gzip.GzipFile", "lzma.LZMAFile", "open", "re", "stat"),
            *("tarfile.open", "zipfile.ZipFile"),
        },
    ),
    "setup.changing": (
        "it holds a lock, and hears the signals that end a program",
        {
            *("fcntl", "signal", "sys.platform", "threading.current_thread"),
            "threading.main_thread",
        },
    ),
    "setup.downloads": (
        "it speaks to servers, and waits before it tries again",
        {
            *("hashlib.sha256", "http.client", "open", "ssl"),
            *("time.sleep", "urllib.error", "urllib.parse.unquote", "urllib.parse.urlsplit"),
            *("urllib.request.HTTPRedirectHandler", "urllib.request.Request"),
            *("http.client.InvalidURL", "re.compile", "urllib.request.build_opener"),
        },
    ),
    "setup.packages": (
        "it runs pip or uv",
        {
            *("importlib.util.find_spec", "re", "shutil.which", "subprocess.DEVNULL"),
            *("subprocess.run", "sys.executable", "tomllib.loads"),
        },
    ),
    "setup.placing": (
        "it copies and removes folders",
        {"open", "re.DOTALL", "re.compile", "stat", "types.TracebackType"},
    ),
    "setup.running": (
        "it runs the code of an author, also where it is async",
        {"asyncio.run", "inspect.isawaitable", "re.compile"},
    ),
    "workers": (
        "it reads what a process says, and logs what cannot be said",
        {"base64.b64decode", "json.dumps", "json.loads", "logging.getLogger"},
    ),
    "workers.loading": (
        "it says what a process is sent, and what it is started with",
        {
            *("base64.b64encode", "io.BytesIO", "json.dumps", "os.environ.items", "sys.executable"),
            *("pathlib.PurePath", "pickle.Pickler", "satchel.sources", "os.path.join"),
            *("os.pathsep", "sys.path"),
        },
    ),
    "workers.processes": (
        "it starts processes, and ends them with their last user",
        {
            *("threading.RLock", "time.perf_counter", "weakref.finalize"),
            "concurrent.futures.Future",
        },
    ),
    "workers.tools": ("it keeps what a process tells in order", {"collections.deque"}),
    "watching": (
        "it is the watch's thread, and the stream that an event loop reads",
        {
            *("asyncio.Event", "asyncio.get_running_loop", "collections.deque"),
            *("contextlib.suppress", "logging.getLogger", "threading.Event", "threading.Thread"),
            "satchel.sources",
        },
    ),
    "satchel": (
        "it holds the lock, starts the watch, and reads WATCHFILES_FORCE_POLLING",
        {
            *("asyncio.shield", "asyncio.to_thread", "threading.Event", "threading.RLock"),
            *("contextlib.asynccontextmanager", "contextlib.contextmanager", "itertools.count"),
            *("logging.getLogger", "os.PathLike", "os.environ.get", "satchel.sources"),
            *("weakref.WeakMethod", "weakref.finalize"),
        },
    ),
    "testing": (
        "it writes the files of a test, and stands in for what a loop reads",
        {
            *("asyncio.sleep", "contextlib.asynccontextmanager", "contextlib.contextmanager"),
            *("os.PathLike", "pathlib.Path", "satchel.sources", "textwrap.dedent", "yaml"),
        },
    ),
    "testing.fixtures": (
        "it is for pytest, and closes what a test made",
        {"contextlib.ExitStack", "pytest.fixture"},
    ),
    "cli": (
        "it is a face",
        {
            *("asyncio.run", "click", "collections", "contextlib", "functools", "json", "logging"),
            *("importlib.metadata", "os", "platform", "queue", "re", "shlex", "signal", "sys"),
            *("open", "tempfile", "threading", "time", "satchel.sources", "tomlkit"),
        },
    ),
    "mcp": (
        "it is a face, and the room of the protocol's SDK",
        {
            *("asyncio", "anyio", "contextlib", "fnmatch.fnmatchcase", "functools.partial"),
            *("hashlib", "importlib.metadata.version", "json", "mcp", "mcp_types", "pydantic"),
            *("re.compile", "satchel.sources", "urllib.parse", "base64.b64encode", "yaml"),
        },
    ),
    "mcp.address": ("it tells this machine's addresses from others", {"ipaddress.ip_address"}),
    "mcp.gate": ("it stands before a web server", {"starlette"}),
    "mcp.guests": ("it answers requests", {"anyio", "starlette"}),
    "mcp.http": (
        "it listens, and answers requests",
        {
            *("socket.AF_INET", "socket.AF_INET6", "socket.IPPROTO_TCP", "socket.SOCK_STREAM"),
            *("socket.SOL_SOCKET", "socket.SO_REUSEADDR", "socket.socket"),
            *("starlette", "uvicorn"),
        },
    ),
    "mcp.tokens": (
        "it reads the file of tokens, which must be its owner's alone",
        {"hmac.compare_digest", "open", "os", "stat"},
    ),
    "mcp.worker": (
        "it is a process of ours, which bounds itself and reads what its host sent it",
        {
            *("base64.b64decode", "open", "os", "pickle.loads", "print", "resource", "sys"),
            *("threading.Thread", "time.sleep"),
        },
    ),
    "mcp.completing": (
        "words of a plugin have a time limit, and what goes wrong goes to the log",
        {"itertools.islice", "logging.getLogger"},
    ),
    "mcp.fitness": ("it tells the log what does not fit", {"logging.getLogger"}),
    "mcp.offering": ("it tells the log what does not fit", {"logging.getLogger"}),
    "mcp.stdio": (
        "it keeps stdin for the client, reads it in a thread, and logs what cannot be sent",
        {"os", "threading.Thread", "open", "logging.getLogger", "pydantic_core.from_json"},
    ),
    "cli.commands.serve": (
        "it serves until a signal comes",
        {"asyncio.CancelledError", "asyncio.current_task", "asyncio.get_running_loop"},
    ),
    "cli.calling": (
        "Ctrl-C cancels the call, also while its loop begins to wait",
        {"asyncio.CancelledError", "asyncio.current_task", "asyncio.get_running_loop"},
    ),
    "cli.commands.config": (
        "it opens the user's editor on a copy",
        {"shutil.rmtree", "subprocess.run"},
    ),
    "cli.packaged": (
        "it reads a project's pyproject.toml, and what is in a wheel",
        {"configparser", "tomllib", "zipfile", "zlib"},
    ),
    "cli.templates": (
        "a package must not bear a name that Python keeps for itself",
        {"keyword.iskeyword"},
    ),
    "cli.entry": ("it imports a command when that is run", {"importlib.import_module"}),
    "__init__": (
        "it loads a public name when that is first used, and keeps it",
        {"importlib.import_module", "globals", "satchel.sources"},
    ),
}
"""Rooms and modules that may use more than values, each with the reason."""

BUILTINS = {"open", "input", "print", "eval", "exec", "compile", "breakpoint", "globals"} | {
    "__import__",
    "__builtins__",
    "__loader__",
    "__spec__",
}
"""Built-in names that need a leave like imported ones."""

CARRIED = {"os", "sys", "io", "codecs", "builtins", "importlib", "subprocess", "socket"} | {
    "shutil",
    "pathlib",
    "threading",
}
"""Modules that no other module may be used to reach: `json.codecs.open` reads a file, too."""


def allowed(module: str) -> set[str]:
    room = room_of(module)
    own = [EXCEPTIONS[key][1] for key in {room, module} & EXCEPTIONS.keys()]
    return VALUES.union(PURE.get(room, ()), *own)


def against_purity(module: str, source: str) -> list[str]:
    """Whatever a module uses of others is in its list, or lies below a name in it."""
    names = allowed(module)
    return [f"{module} uses {name}" for name in used(source) if not _is_covered(name, names)] + [
        f"{module} imports {name}"
        for node in imports(ast.parse(source))
        for name in imported(node)
        # An import is not yet a use: `import os` is fine where `os.path.join` is.
        if not _is_covered(name, names) and not any(item.startswith(f"{name}.") for item in names)
    ]


def _is_covered(name: str, names: set[str]) -> bool:
    if name.split(".", maxsplit=1)[0] == "satchel" and not name.startswith("satchel.sources"):
        return not CARRIED.intersection(name.split("."))
    entry = next((item for item in names if f"{name}.".startswith(f"{item}.")), None)
    return entry is not None and not CARRIED.intersection(name[len(entry) :].split("."))


def used(source: str) -> list[str]:
    """Return the dotted names that a source uses of what it imports, and the guarded built-ins."""
    tree, homes = ast.parse(source), {}
    for node in imports(tree):
        for alias, name in zip(node.names, imported(node), strict=True):
            if isinstance(node, ast.ImportFrom) or alias.asname:
                homes[alias.asname or alias.name] = name
            else:
                homes[name.split(".")[0]] = name.split(".")[0]
    finder = _Uses(homes)
    finder.visit(tree)
    return finder.found


class _Uses(ast.NodeVisitor):
    def __init__(self, homes: dict[str, str]) -> None:
        self.homes, self.found = homes, []

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names = ast.unparse(node).split(".")
        if not all(name.isidentifier() for name in names):
            self.generic_visit(node)
        elif names[0] in self.homes:
            self.found.append(".".join([self.homes[names[0]], *names[1:]]))

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self.homes:
            self.found.append(self.homes[node.id])
        elif node.id in BUILTINS and isinstance(node.ctx, ast.Load):
            self.found.append(node.id)
