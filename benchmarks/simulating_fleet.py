"""A fleet in virtual time: the real host and worker code over a fake redis and a fake clock.

Ten thousand sessions call tools on fifty workers while workers are killed and paused, redis is cut
off from some, and all plugins get a new version. Run `python benchmarks/simulating_fleet.py`; it
exits with 1 if an invariant is broken. Only docket's queue is imitated, with its rules.
"""

# It stands in for redis and docket, so it has their arguments, and it looks inside our objects.
# ruff: noqa: ARG002, SLF001, ASYNC110

import argparse
import asyncio
import builtins
import logging
import os
import random
import selectors
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Self

from redis.exceptions import ConnectionError as RedisConnectionError

from satchel import Catalog, Satchel, ToolContext, ToolResult
from satchel.remote import RemoteRunner, host_connection
from satchel.remote.call_limits import GroupLimiter
from satchel.remote.fleet_registry import FleetRegistry, RedisClock, digest_of, plugins_of
from satchel.remote.remote_faults import RemoteFaults
from satchel.remote.remote_keys import RemoteKeys, queue_name_for
from satchel.remote.sealed_envelope import mark_of
from satchel.remote.tool_worker import PluginService
from satchel.settings import Limits
from satchel.tools.runner import Runner

KEY = "0123456789abcdef0123456789abcdef"
TOOLS = """
import asyncio
from satchel import ToolContext, tool

VERSION = {version}

@tool(timeout=120.0)
async def once(number: int, seconds: float) -> str:
    "Work."
    RUNS.append(number)
    await asyncio.sleep(seconds)
    return f"{{VERSION}}:{{number}}"

@tool(idempotent=True, timeout=120.0)
async def again(number: int, seconds: float) -> str:
    "Work that may be done again."
    RUNS.append(number)
    await asyncio.sleep(seconds)
    return f"{{VERSION}}:{{number}}"

import builtins
RUNS = builtins.satchel_simulation_runs
"""
PLACES, REDELIVERY = 10, 5.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer when nothing is to do."""

    def __init__(self) -> None:
        self.now = 1_000.0
        loop = self

        class Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
            def select(self, timeout: float | None = None) -> Any:
                ready = super().select(0)
                if not ready and timeout is None:
                    raise RuntimeError("all wait for each other")
                if not ready and timeout:
                    loop.now += timeout
                return ready

        super().__init__(Selector())

    def time(self) -> float:
        """Return the virtual time."""
        return self.now


class FakeRedis:
    """The commands that hosts and workers use, on values in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.news: dict[str, asyncio.Event] = {}
        self.serial = 0
        self.commands = 0

    def client(self, is_cut: Callable[[], bool]) -> "FakeClient":
        """Return a client that fails while it is cut off."""
        return FakeClient(self, is_cut)

    def get(self, key: str) -> Any:
        """Return a value."""
        return self.values.get(key)

    def set(self, key: str, value: Any, nx: bool = False, ex: int = 0) -> Any:
        """Set a value, or only a new one."""
        if nx and key in self.values:
            return None
        self.values[key] = value.encode() if isinstance(value, str) else value
        return True

    def exists(self, key: str) -> int:
        """Return 1 if there is a value."""
        return int(key in self.values)

    def zcard(self, key: str) -> int:
        """Return the size of a set."""
        return len(self.values.get(key, ()))

    def expire(self, key: str, seconds: int) -> int:
        """Keep it: no run takes that long."""
        return 1

    def hget(self, key: str, field: str) -> Any:
        """Return a field."""
        return self.values.get(key, {}).get(field)

    def zadd(self, key: str, members: dict[str, float]) -> None:
        """Add members with scores."""
        self.values.setdefault(key, {}).update(members)

    def zrem(self, key: str, member: str) -> None:
        """Remove a member."""
        self.values.get(key, {}).pop(member, None)

    def zremrangebyscore(self, key: str, low: float, high: float) -> None:
        """Remove members up to a score."""
        old = [name for name, score in self.values.get(key, {}).items() if score <= high]
        for name in old:
            del self.values[key][name]

    def zrangebyscore(self, key: str, low: float, high: str) -> list[str]:
        """Return the members from a score on."""
        return [name for name, score in self.values.get(key, {}).items() if score >= low]

    def xlen(self, key: str) -> int:
        """Return the length of a stream."""
        return len(self.values.get(key, ()))

    def xadd(self, key: str, fields: dict[str, bytes], maxlen: int = 0) -> None:
        """Append to a stream, and wake who waits for it."""
        self.serial += 1
        stream = self.values.setdefault(key, deque())
        stream.append((self.serial, {name.encode(): it for name, it in fields.items()}))
        while maxlen and len(stream) > maxlen:
            stream.popleft()
        if key in self.news:
            self.news[key].set()

    def xtrim(self, key: str, minid: str, approximate: bool = True) -> None:
        """Remove old entries."""
        stream = self.values.get(key, deque())
        while stream and stream[0][0] < int(minid):
            stream.popleft()

    def time(self) -> tuple[int, int]:
        """Return the time of the server."""
        now = asyncio.get_running_loop().time() + 5e8  # not the clock of the machines
        return int(now), int(now % 1 * 1e6)


class FakeClient:
    """A connection to the fake redis, which takes its time and may be cut."""

    def __init__(self, server: FakeRedis, is_cut: Callable[[], bool]) -> None:
        self._server, self._is_cut = server, is_cut

    async def travel(self) -> None:
        """Wait as long as a message takes, and fail if the connection is cut."""
        self._server.commands += 1
        await asyncio.sleep(random.uniform(0.0002, 0.002))  # noqa: S311
        if self._is_cut():
            raise RedisConnectionError("cut off")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        command = getattr(self._server, name)

        async def run(*args: Any, **options: Any) -> Any:
            await self.travel()
            return command(*args, **options)

        return run

    async def xread(self, streams: dict[str, str], count: int, block: int) -> Any:
        """Read entries after the last one; wait for the first."""
        await self.travel()
        ((key, last),) = streams.items()
        event = self._server.news.setdefault(key, asyncio.Event())
        entries = self._after(key, last)
        if not entries:
            event.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), block / 1_000)
            await self.travel()
            entries = self._after(key, last)
        return [(key, [(str(number).encode(), fields) for number, fields in entries[:count]])]

    def _after(self, key: str, last: str) -> list[Any]:
        return [it for it in self._server.values.get(key, ()) if it[0] > int(last)]

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator["FakePipeline"]:
        """Collect commands, and run them as one."""
        yield FakePipeline(self, self._server)


class FakePipeline:
    """Commands that run together."""

    def __init__(self, client: FakeClient, server: FakeRedis) -> None:
        self._client, self._server = client, server
        self._commands: list[Callable[[], Any]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        command = getattr(self._server, name)
        return lambda *args, **options: self._commands.append(lambda: command(*args, **options))

    async def execute(self) -> list[Any]:
        """Run them all; a cut connection runs none, or all without saying so."""
        await self._client.travel()
        return [command() for command in self._commands]


class FakeDocket:
    """A queue with docket's rules: one run for a key at a time, and delivery at least once."""

    def __init__(self, server: FakeRedis, name: str, is_cut: Callable[[], bool]) -> None:
        self.name, self.stream_key = name, f"{name}:stream"
        self._server, self._is_cut = server, is_cut

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        pass

    def runs_key(self, key: str) -> str:
        """Return the key of the state of a call."""
        return f"{self.name}:runs:{key}"

    @asynccontextmanager
    async def redis(self) -> AsyncIterator[FakeClient]:
        """Return a client."""
        yield self._server.client(self._is_cut)

    def add(self, task: str, key: str) -> Callable[[str], Any]:
        """Put a call into the queue, unless it is there."""

        async def add(message: str) -> None:
            await self._server.client(self._is_cut).travel()
            run = self._server.values.setdefault(self.runs_key(key), {})
            if run.get("state") not in {b"queued", b"running"}:
                run["state"] = b"queued"
                self._server.values.setdefault(self.stream_key, deque()).append((key, message))
                self._server.news.setdefault(self.stream_key, asyncio.Event()).set()

        return add

    async def cancel(self, key: str) -> None:
        """Cancel a call; its worker hears of it."""
        await self._server.client(self._is_cut).travel()
        run = self._server.values.setdefault(self.runs_key(key), {})
        if run.get("state") in {b"queued", b"running"}:
            run["state"] = b"cancelled"
            if cancel := run.get("cancel"):
                cancel()


def line_in(catalog: Catalog, tool: str) -> str:
    """Return the queue of a tool."""
    return queue_name_for(catalog.plugin_digest_of(tool), catalog.tools[tool].groups)


class FakeWorker:
    """A worker with the real service of one version; it can be killed, cut off and stopped."""

    def __init__(self, fleet: "Fleet", app: Satchel) -> None:
        self.fleet, self.is_dead, self.cut_until = fleet, False, 0.0
        catalog = app.catalog
        (line,) = {line_in(catalog, name) for name in ("once", "again")}
        self.queue = FakeDocket(fleet.redis, f"satchel:{mark_of(KEY.encode(), line)}", self.is_cut)
        self.service = PluginService(
            catalog,
            queue_name=line,
            tools={name: catalog.tools[name] for name in ("once", "again")},
            limits=Limits(),
            limiter=GroupLimiter({}),
            key=KEY.encode(),
            keys=RemoteKeys("satchel"),
            faults=RemoteFaults("satchel"),
        )
        self.running: dict[str, asyncio.Task[None]] = {}
        self.is_stopping = False
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        started.set_result(None)
        heartbeat = self.service._send_heartbeats(self.queue, f"w{id(self)}", PLACES, started)  # type: ignore[arg-type]
        self.tasks = [asyncio.create_task(heartbeat), asyncio.create_task(self._take())]

    def is_cut(self) -> bool:
        """Return whether redis cannot be reached."""
        return self.is_dead or asyncio.get_running_loop().time() < self.cut_until

    async def _take(self) -> None:
        server, stream = self.fleet.redis, self.queue.stream_key
        while not self.is_stopping:
            waiting = server.values.setdefault(stream, deque())
            if self.is_cut() or not waiting or len(self.running) >= PLACES:
                news = server.news.setdefault(stream, asyncio.Event())
                news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), 0.25)
                continue
            key, message = waiting.popleft()
            run = server.values[self.queue.runs_key(key)]
            if run["state"] == b"cancelled":
                continue
            run["state"] = b"running"
            task = asyncio.create_task(self._run(key, message))
            run["cancel"] = task.cancel
            self.running[key] = task

    async def _run(self, key: str, message: str) -> None:
        watch = asyncio.create_task(self._redeliver_if_silent(key, message))
        run = self.fleet.redis.values[self.queue.runs_key(key)]
        try:
            await self.service.run(self.queue, message)  # type: ignore[arg-type]
            run["state"] = b"completed"
            watch.cancel()
        finally:
            self.running.pop(key, None)
            if run["state"] == b"cancelled":
                watch.cancel()

    async def _redeliver_if_silent(self, key: str, message: str) -> None:
        silent = 0.0
        run = self.fleet.redis.values[self.queue.runs_key(key)]
        while silent < REDELIVERY:
            await asyncio.sleep(1)
            silent = silent + 1 if self.is_cut() else 0.0
        if run["state"] == b"running":
            self.fleet.redis.values[self.queue.stream_key].append((key, message))

    def kill(self) -> None:
        """End it at once; what it ran is delivered again."""
        self.is_dead = True
        for task in (*self.tasks, *self.running.values()):
            task.cancel()

    async def stop(self) -> None:
        """Take no new calls, and end those that run."""
        self.is_stopping = True
        self.tasks[0].cancel()
        await asyncio.gather(*self.running.values(), return_exceptions=True)


class Fleet:
    """The hosts, the workers, and what happens to them."""

    def __init__(self, options: argparse.Namespace, folders: list[Path]) -> None:
        self.options, self.redis = options, FakeRedis()
        self.apps = [Satchel(plugins=[folder]) for folder in folders]
        self.cut_hosts: Counter[int] = Counter()
        self.workers: list[FakeWorker] = []
        self.events: Counter[str] = Counter()
        self.results: list[tuple[int, int, ToolResult]] = []
        self.version_of_host = [0] * options.hosts
        self.under_way: Counter[int] = Counter()  # calls of each version
        host_connection.open_docket = lambda url, name, mark: FakeDocket(  # type: ignore[assignment]
            self.redis,
            f"{name}:{mark}",
            lambda: self.cut_hosts[int(url.removeprefix("memory://"))] > 0,
        )
        self.runners = [
            RemoteRunner(f"memory://{number}", key=KEY, otherwise="wait", wait=300, queue=10**6)
            for number in range(options.hosts)
        ]

    async def run(self) -> None:
        """Let all sessions call, with faults and a rolling reload in between."""
        registry = FleetRegistry(RemoteKeys("satchel"), KEY.encode(), RedisClock())
        client = self.redis.client(lambda: False)
        versions = [plugins_of(app.catalog) for app in self.apps]
        first = await registry.publish(client, versions[0], {})
        self.workers = [FakeWorker(self, self.apps[0]) for _ in range(self.options.workers)]
        heartbeats = [
            asyncio.create_task(self._announce(registry, client, number))
            for number in range(self.options.hosts)
        ]
        faults = asyncio.create_task(self._faults())
        rolling = asyncio.create_task(self._roll(registry, client, versions[1]))
        await asyncio.gather(*(self._session(n) for n in range(self.options.sessions)))
        await rolling
        faults.cancel()
        second = await registry.published(client)
        assert second is not None
        assert (first.generation, second.generation) == (1, 2)
        await asyncio.sleep(10)
        assert await registry.hosts(client) == {second.digest: self.options.hosts}, "all serve it"
        connections = [item for runner in self.runners for item in runner._connections.values()]
        assert not any(item.semaphore.waiting or item._calls for item in connections), (
            "no call waits"
        )
        for task in heartbeats:
            task.cancel()
        for worker in self.workers:
            worker.kill()
        for runner in self.runners:
            await runner.aclose()

    async def _announce(self, registry: FleetRegistry, client: FakeClient, host: int) -> None:
        while True:
            app = self.apps[self.version_of_host[host]]
            await registry.heartbeat_of_host(client, f"h{host}", digest_of(plugins_of(app.catalog)))
            await asyncio.sleep(1)

    async def _session(self, number: int) -> None:
        host = number % self.options.hosts
        for turn in range(self.options.calls):
            await asyncio.sleep(random.expovariate(self.options.calls / self.options.time))
            version = self.version_of_host[host]
            session = self.apps[version].session()
            call = number * self.options.calls + turn
            tool = ("once", "again")[call % 2]
            context = ToolContext(metadata={"session": number})
            token = CURRENT_HOST.set(self.runners[host])
            arguments = {"number": call, "seconds": random.uniform(0.1, 3)}  # noqa: S311
            self.under_way[version] += 1
            result = await session.call(tool, arguments, context=context)
            self.under_way[version] -= 1
            CURRENT_HOST.reset(token)
            self.results.append((call, version, result))

    async def _faults(self) -> None:
        while True:
            await asyncio.sleep(random.expovariate(self.options.faults))
            kind = random.choice(("kill", "cut a worker", "cut a host"))  # noqa: S311
            self.events[kind] += 1
            now = asyncio.get_running_loop().time()
            worker = random.choice([it for it in self.workers if not it.is_stopping])  # noqa: S311
            if kind == "kill":
                worker.kill()
                self.workers.remove(worker)
                self.workers.append(FakeWorker(self, self._app_of(worker)))
            elif kind == "cut a worker":
                worker.cut_until = now + random.uniform(1, 20)  # noqa: S311
            else:
                host = random.randrange(self.options.hosts)  # noqa: S311
                self.cut_hosts[host] += 1
                later = random.uniform(1, 20)  # noqa: S311
                asyncio.get_running_loop().call_later(later, self.cut_hosts.subtract, [host])

    def _app_of(self, worker: FakeWorker) -> Satchel:
        return next(app for app in self.apps if app.catalog is worker.service._catalog)

    async def _roll(
        self, registry: FleetRegistry, client: FakeClient, versions: dict[str, str]
    ) -> None:
        """Do what the documentation says: publish, new workers, hosts, then the old workers."""
        await asyncio.sleep(self.options.time / 3)
        published = await registry.publish(client, versions, {})
        line = line_in(self.apps[1].catalog, "once")
        old = list(self.workers)
        self.workers += [FakeWorker(self, self.apps[1]) for _ in range(self.options.workers)]
        while (await registry.capacity(client, line)).slots < self.options.workers * PLACES / 2:
            await asyncio.sleep(1)
        for host in range(self.options.hosts):
            self.version_of_host[host] = 1
            await asyncio.sleep(1)
        while set(await registry.hosts(client)) != {published.digest}:
            await asyncio.sleep(1)
        while self.under_way[0]:  # also calls of hosts that redis does not hear of yet
            await asyncio.sleep(1)
        for worker in [it for it in self.workers if self._app_of(it) is self.apps[0]]:
            self.workers.remove(worker)
            await worker.stop()
        self.events["workers replaced"] = len(old)

    def report(self, runs: Counter[int]) -> bool:
        """Print what became of the calls; return whether all invariants held."""
        total = self.options.sessions * self.options.calls
        ends = Counter(result.error_code or "answer" for _, _, result in self.results)
        ended = Counter(call for call, _, _ in self.results)
        wrong = [
            call
            for call, version, result in self.results
            if not result.is_error and result.text != f"{version}:{call}"
        ]
        doubled = [call for call in range(0, total, 2) if runs[call] > 1]
        unanswered = [call for call, _, result in self.results if call % 2 and result.is_error]
        print("faults:", ", ".join(f"{n} {kind}" for kind, n in sorted(self.events.items())))
        print("ends:", ", ".join(f"{n} {code}" for code, n in ends.most_common()))
        print(f"calls that ended once: {sum(n == 1 for n in ended.values())} of {total}")
        print(f"answers of another version or call: {len(wrong)}")
        print(f"idempotent calls without an answer: {len(unanswered)}")
        print(f"other calls with side effects twice: {len(doubled)}")
        is_once = len(ended) == total and set(ended.values()) == {1}
        is_known = set(ends) <= {"answer", "may_have_run"}
        return is_once and is_known and not (wrong or doubled or unanswered)


CURRENT_HOST: ContextVar[Runner] = ContextVar("host")


class OfTheHost(Runner):
    """The runner of the host in whose name a session calls: all are in this process."""

    waits = True

    async def run(self, call: Any) -> Any:
        """Pass the call on."""
        return await CURRENT_HOST.get().run(call)


def main() -> int:
    """Run the fleet and report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--calls", type=int, default=2, help="Calls of a session.")
    parser.add_argument("--time", type=float, default=120.0, help="Virtual seconds.")
    parser.add_argument("--faults", type=float, default=0.5, help="Faults in a virtual second.")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed  # noqa: S311
    random.seed(seed)
    logging.disable(logging.CRITICAL)
    runs: list[int] = []
    builtins.satchel_simulation_runs = runs  # type: ignore[attr-defined]
    began = time.monotonic()
    loop = VirtualLoop()
    with tempfile.TemporaryDirectory() as name:
        folders = []
        for version in (0, 1):
            plugin = Path(name, str(version), "fleet")
            plugin.mkdir(parents=True)
            (plugin / "toolkit.yaml").write_text("name: fleet\nactive: true\n")
            (plugin / "tools.py").write_text(TOOLS.format(version=version))
            folders.append(plugin.parent)
        fleet = Fleet(options, folders)
        for app in fleet.apps:
            app.register_runner(OfTheHost())
        loop.run_until_complete(fleet.run())
        for app in fleet.apps:
            app.close()
    print(
        f"seed {seed}: {options.sessions} sessions, {options.workers} workers, "
        f"{loop.now - 1_000:.0f} virtual seconds in {time.monotonic() - began:.0f} s, "
        f"{fleet.redis.commands} messages to redis, load {os.getloadavg()[0]:.1f}"
    )
    return 0 if fleet.report(Counter(runs)) else 1


if __name__ == "__main__":
    sys.exit(main())
