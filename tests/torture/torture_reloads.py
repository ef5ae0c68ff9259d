"""Edits while it runs: hot equals cold, no call is lost, nothing grows."""

import asyncio
import gc
import os
import random
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

from torture_trial import Tally, write_plugin, write_skill

from satchel import Satchel, Settings

CODE = '''
from satchel import tool

VERSION = {version}

@tool
async def version_of() -> list:
    """Return the version twice."""
    first = VERSION
    import asyncio
    await asyncio.sleep(0)
    from {module} import VERSION as second
    return [first, second]
'''
PLAIN = '''
from satchel import tool

VERSION = {version}

@tool
async def version_of() -> list:
    """Return the version twice."""
    import asyncio
    first = VERSION
    await asyncio.sleep(0)
    return [first, VERSION]
'''
CALLERS = 64
_CHECKED_EVERY = 10

WARM_RELOADS = 1_000
"""Reloads before the memory of the process is compared."""
MOST_SLOPE = 100
"""Bytes by which the process may grow with a reload."""
MOST_BLOCKS = 0.5
"""Blocks of memory of Python by which it may grow with a reload: one is a number that stays."""


def histories(count: int, folder: Path) -> Tally:
    """Edit a tree at random: the live catalog equals a fresh load of the same tree."""
    tally, random_ = Tally(), random.Random(19)
    for number in range(count):
        root = folder / str(number)
        skills, plugins = root / "skills", root / "plugins"
        skills.mkdir(parents=True)
        plugins.mkdir()
        settings = Settings(state_folder=str(root / "state"), cache=False, mcp_servers=False)
        with Satchel(skills=[skills], plugins=[plugins], settings=settings) as app:
            done = [_edit(skills, plugins, random_) for _ in range(random_.randint(2, 8))]
            for _ in done[:2]:
                app.refresh()
                _edit(skills, plugins, random_)
            app.refresh()
            with Satchel(skills=[skills], plugins=[plugins], settings=settings) as cold:
                is_same = _picture(app) == _picture(cold)
            tally.expect(is_same, f"history {number}: {done}")
        shutil.rmtree(root)
        tally.done += 1
    return tally


def _edit(skills: Path, plugins: Path, random_: random.Random) -> str:
    name = random_.choice(("a", "b", "c"))
    kind = random_.choice(
        ("skill", "skill", "nested", "early", "remove", "away", "file", "plugin", "unplug", "env")
    )
    match kind:
        case "early":  # it comes before the others of its name
            write_skill(skills / "0", name, f"Early {random_.randrange(9)}.")
        case "away":
            shutil.rmtree(skills / random_.choice(("0", "area")), ignore_errors=True)
        case "skill":
            write_skill(skills, name, f"Version {random_.randrange(9)}.")
        case "nested":
            write_skill(skills / "area", name, f"Nested {random_.randrange(9)}.")
        case "remove":
            shutil.rmtree(skills / name, ignore_errors=True)
        case "file" if (skills / name).is_dir():
            (skills / name / f"file{random_.randrange(3)}.md").write_text(str(random_.random()))
        case "env" if (skills / name).is_dir():
            (skills / name / ".env").write_text("secret")
        case "plugin":
            tool = f"tool_{name}_{random_.randrange(3)}"
            code = f'from satchel import tool\n@tool\ndef {tool}() -> str:\n    """Do."""\n'
            write_plugin(plugins, f"p{name}", f'{code}    return "{random_.randrange(9)}"\n')
        case "unplug":
            shutil.rmtree(plugins / f"p{name}", ignore_errors=True)
    return f"{kind} {name}"


def _picture(app: Satchel) -> object:
    step = app.session().step()
    entries = [replace(entry, generation=0) for entry in app.catalog.entries]
    return entries, step.prompt(), step.schemas()


def calls_under_reloads(count: int, folder: Path) -> Tally:
    """Call from many callers while the plugin is replaced: none is lost, mixed or failed.

    There are `count` calls or more, spread over a reload for each thousand.
    """
    tally, plugins = Tally(), folder / "plugins"
    write_plugin(plugins, "versions", PLAIN.format(version=0))
    reloads = max(count // 1_000, 5)
    settings = Settings(state_folder=str(folder / "state"), mcp_servers=False)
    with Satchel(plugins=[plugins], settings=settings) as app:
        reloaded = 0

        def reload() -> None:
            nonlocal reloaded
            for version in range(1, reloads + 1):
                write_plugin(plugins, "versions", PLAIN.format(version=version))
                app.refresh()
                reloaded = version

        thread = threading.Thread(target=reload, daemon=True)

        async def caller() -> None:
            session = app.session()
            last = 0
            while tally.done < count or thread.is_alive():
                if tally.done * reloads > count * (reloaded + 1):
                    await asyncio.sleep(0.01)  # Leave the processor to the reloads.
                result = await session.call("version_of", {})
                tally.done += 1
                pair = result.structured if isinstance(result.structured, list) else None
                pair = pair or _pair(result.text)
                if pair is None:
                    tally.expect(False, f"failed: {result.text[:100]}")
                    continue
                tally.expect(pair[0] == pair[1], f"mixed: {pair}")
                tally.expect(pair[0] >= last, f"older than before: {pair} after {last}")
                last = pair[0]

        async def everybody() -> None:
            await asyncio.gather(*(caller() for _ in range(CALLERS)))

        thread.start()
        asyncio.run(everybody())
        tally.expect(reloaded == reloads, f"only {reloaded:,} reloads")
        tally.note = f"{CALLERS} callers, {reloaded:,} reloads while they called"
    return tally


def _pair(text: str) -> list[int] | None:
    try:
        first, second = text.strip("[] \n").split(",")
        return [int(first), int(second)]
    except ValueError:
        return None


def growth(count: int, folder: Path) -> Tally:
    """Reload again and again: objects, modules, threads and handles stay as many."""
    tally, plugins, skills = Tally(), folder / "plugins", folder / "skills"
    write_plugin(plugins, "versions", PLAIN.format(version=0))
    write_skill(skills, "pdf")
    settings = Settings(state_folder=str(folder / "state"), mcp_servers=False)
    with Satchel(plugins=[plugins], skills=[skills], settings=settings) as app:
        warm = max(count // 10, 20) if count < WARM_RELOADS else WARM_RELOADS
        before, resident = _census(), 0
        for number in range(count):
            write_plugin(plugins, "versions", PLAIN.format(version=number))
            write_skill(skills, "pdf", f"Version {number}.")
            app.refresh()
            app.session().step().schemas()
            if number == warm:
                before, resident = _census(), _resident()
            tally.done += 1
        after = _census()
        for unit, most in (("modules", 0), ("threads", 0), ("handles", 0), ("objects", 2_000)):
            grown = after[unit] - before[unit]
            tally.expect(grown <= most, f"{grown} more {unit} after {count - warm} reloads")
        slope = (_resident() - resident) / max(count - warm, 1)
        blocks = (after["blocks"] - before["blocks"]) / max(count - warm, 1)
        is_long = count >= 3 * WARM_RELOADS  # before that, one page of memory is a slope
        tally.expect(not is_long or slope < MOST_SLOPE, f"{slope:.0f} bytes more for each reload")
        tally.expect(not is_long or blocks < MOST_BLOCKS, f"{blocks:.1f} blocks more for each")
        tally.note = (
            f"{after['objects'] - before['objects']:+} objects, a reload {slope:.0f} bytes"
            f" and {blocks:.2f} blocks"
        )
    return tally


def _census() -> dict[str, int]:
    gc.collect()
    gc.collect()
    handles = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return {
        "objects": len(gc.get_objects()),
        "blocks": sys.getallocatedblocks(),
        "modules": len(sys.modules),
        "threads": threading.active_count(),
        "handles": handles,
    }


def _resident() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
