"""A command that runs programs as Python does, in processes that have Satchel imported.

A fork of a process that imported everything costs a tenth of a new interpreter.
"""

import os
import subprocess
import sys
from pathlib import Path

SERVER = """
import gc, json, os, runpy, select, signal, socket, sys, types, warnings

import satchel, satchel.cli.main, satchel.mcp.stdio_server, satchel.mcp.worker_main
import satchel.mcp_servers.remote_client
for name in satchel.__all__:
    getattr(satchel, name)
gc.freeze()

# A child for each program leaves this loop; the parent stays until its input ends.
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if sys.stdin in select.select([sys.stdin, listener], [], [])[0]:
        sys.exit()
    launcher, _ = listener.accept()
    if not os.fork():
        break
    launcher.close()

# The child stands between the launcher, which may be killed, and the program.
listener.close()
os.setsid()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
_, streams, _, _ = socket.recv_fds(launcher, 1, 3)
job = json.loads(launcher.makefile().readline())
if program := os.fork():
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(program)
    while ended not in select.select([ended, launcher], [], [])[0]:
        if number := launcher.recv(1):
            os.kill(program, number[0])
        else:
            os.killpg(0, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    launcher.sendall(str(status).encode())
    os._exit(0)

# The child of the child becomes the program.
launcher.close()
for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
os.chdir(job["folder"])
os.environ.clear()
os.environ.update(job["env"])
sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX")
sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
option, *sys.argv = job["arguments"]
is_path_safe = option == "-P"
if is_path_safe:
    option, *sys.argv = sys.argv
elif option == "-Werror":
    warnings.simplefilter("error")
    option, *sys.argv = sys.argv
if not is_path_safe:
    is_script = option not in {"-c", "-m"}
    sys.path.insert(0, os.path.dirname(os.path.abspath(option)) if is_script else job["folder"])
if option == "-m":
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit()
if option == "-c":
    code, name = sys.argv[0], "<string>"
    sys.argv[0] = "-c"
else:
    with open(option, "rb") as file:
        code, name = file.read(), option
    sys.argv.insert(0, option)
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__file__ = name
exec(compile(code, name, "exec"), vars(main))
"""

LAUNCHER = """#!{python} -IS
import json, os, signal, socket, sys

server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
job = dict(arguments=sys.argv[1:], folder=os.getcwd(), env=dict(os.environ))
socket.send_fds(server, [b" "], [0, 1, 2])
server.sendall(json.dumps(job).encode() + b"\\n")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: server.send(bytes([number])))
status = int(server.recv(16) or 1)
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""


class ForkedPython:
    """Makes the command; the process that programs are forked from starts with it."""

    def __init__(self, folder: Path) -> None:
        address = folder / "address"
        self.command = str(folder / "python")
        Path(self.command).write_text(
            LAUNCHER.format(python=sys.executable, address=str(address)), "utf-8"
        )
        os.chmod(self.command, 0o700)
        start = [sys.executable, "-c", SERVER, str(address)]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(start, stdin=pipe, stdout=pipe, text=True)
        self._server.stdout.readline()

    def close(self) -> None:
        self._server.communicate()
