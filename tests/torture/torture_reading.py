"""Hostile texts and links: mutated SKILL.md files, a swapping attacker, planted secrets."""

import asyncio
import os
import random
import threading
import time
from pathlib import Path

from torture_trial import SKILL, Tally, write_plugin, write_skill

from satchel import Satchel, Settings, ToolCall
from satchel.errors import ToolError
from satchel.formats.skill_manifest import read_skill
from satchel.settings import Limits
from satchel.sources.skill_files import read_skill_file
from satchel.text import has_hidden

_PIECES = (
    *(b"---\n", b"\n", b": ", b"- ", b"&a ", b"*a", b"!!python/object ", b"<<: ", b"{", b"[", b"}"),
    *(b'"', b"'", b"|", b">", b"#", b"\t", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\\"),
    *("\u202e".encode(), "\u200b".encode(), "\ud83d\ude00".encode("utf-16", "surrogatepass")),
    *(b"name: x\n", b"description: y\n", b"allowed-tools: Bash(git:*)\n", b"? ", b"%YAML 1.1\n"),
)
_SLOWEST = 2.0
SECRET = "swordfish-{}-do-not-tell"


def mutated_skills(count: int, _folder: Path) -> Tally:
    """Read mutated manifests: nothing raises, nothing hangs, nothing hidden gets through."""
    tally, random_ = Tally(), random.Random(19)
    seeds = [
        SKILL.format(name="pdf", description="Reads PDF files.", body="# Body").encode(),
        b"---\nname: a\ndescription: >\n  folded\n  text\nmetadata:\n  a: {b: [1, 2]}\n---\nx",
        b"---\nname: a\ndescription: 'quoted: text'\nallowed-tools: [Read, Write]\n---\n",
    ]
    limits, slowest = Limits(), 0.0
    for _ in range(count):
        data = _mutated(random_.choice(seeds), random_)
        started = time.perf_counter()
        try:
            skill = read_skill(data, "pdf", "SKILL.md", limits).value
            shown = f"{skill.name}" if skill else ""
            tally.expect(not has_hidden(shown), f"hidden characters in a name: {data!r}")
        except Exception as problem:
            tally.expect(False, f"{type(problem).__name__} for {data!r}")
        slowest = max(slowest, time.perf_counter() - started)
        tally.done += 1
    tally.expect(slowest < _SLOWEST, f"one took {slowest:.1f} s")
    tally.note = f"slowest {slowest * 1000:.0f} ms"
    return tally


def _mutated(seed: bytes, random_: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(random_.randint(1, 6)):
        at = random_.randrange(len(data) + 1)
        match random_.randrange(4):
            case 0:
                data[at:at] = random_.choice(_PIECES) * random_.choice((1, 1, 1, 2, 50))
            case 1:
                del data[at : at + random_.randint(1, 20)]
            case 2 if at < len(data):
                data[at] = random_.randrange(256)
            case _:
                data[at:at] = data[: random_.randrange(len(data) + 1)]
    return bytes(data)


def swapped_links(count: int, folder: Path) -> Tally:
    """Read a file while somebody swaps its folder for links that lead out, or to secrets."""
    tally = Tally()
    root = folder / "root"
    skill = write_skill(root, "pdf")
    outside = folder / "outside"
    for place, text in ((outside, SECRET), (skill / "a", "inside")):
        place.mkdir()
        (place / "file.md").write_text(text)
    (skill / ".env").write_text(SECRET)
    os.symlink(outside, skill / "link")
    is_over = threading.Event()

    def attack() -> None:
        targets = ("../../outside/file.md", ".env", str(outside / "file.md"), "a/file.md")
        at = 0
        while not is_over.is_set():
            at += 1
            beside = skill / ".swap"
            os.symlink(targets[at % len(targets)], beside)
            os.replace(beside, skill / "file.md")
            os.rename(skill / "a", skill / "b")
            os.rename(skill / "link", skill / "a")
            os.rename(skill / "a", skill / "link")
            os.rename(skill / "b", skill / "a")

    attacker = threading.Thread(target=attack, daemon=True)
    attacker.start()
    read = 0
    try:
        for number in range(count):
            name = ("file.md", "a/file.md")[number % 2]
            try:
                data = read_skill_file(str(root), str(skill), name, Limits()).data
                read += 1
                tally.expect(data == b"inside", f"{name} gave {data!r}")
            except ToolError as problem:
                tally.expect("swordfish" not in str(problem), "a secret in a message")
            tally.done += 1
    finally:
        is_over.set()
        attacker.join()
    tally.note = f"{read:,} were read"
    return tally


def planted_secrets(count: int, folder: Path) -> Tally:
    """Plant secrets wherever Satchel reads; none may reach a prompt, a schema or a result."""
    tally = Tally()
    skills, plugins = folder / "skills", folder / "plugins"
    places = ("env", "env file", "link", "outside", "config", "raised", "environment")
    values: dict[str, dict[str, str]] = {}
    texts = []
    for number in range(count):
        secret, place = SECRET.format(number), places[number % len(places)]
        name = f"skill-{number}"
        if place in {"config", "raised"}:
            write_plugin(plugins, f"plugin-{number}", _tool_with_secret(number, place))
            values[f"plugin-{number}"] = {"api_key": secret}
        elif place == "environment":
            os.environ[f"SATCHEL_TORTURE_{number}"] = secret
        else:
            skill = write_skill(skills, name)
            if place == "env":
                (skill / ".env").write_text(secret)
            elif place == "env file":
                (skill / "config").mkdir()
                (skill / "config/.Env.Local").write_text(secret)
            else:
                target = folder / f"secret-{number}" if place == "outside" else skill / ".env"
                target.write_text(secret)
                os.symlink(target, skill / "notes.md")
    write_skill(skills, "innocent")
    plugins.mkdir(exist_ok=True)
    settings = Settings(state_folder=str(folder / "state"), cache=False)
    with Satchel(skills=[skills], plugins=[plugins], config=values, settings=settings) as app:
        session = app.session(search=True)
        step = session.step()
        texts += [step.prompt(), str(step.schemas()), "\n".join(map(str, app.catalog.diagnostics))]
        texts += asyncio.run(_answers(session, app, skills))
    for number in range(count):
        os.environ.pop(f"SATCHEL_TORTURE_{number}", None)
        secret = SECRET.format(number)
        leaked = [text[:100] for text in texts if secret in text]
        tally.expect(not leaked, f"{places[number % len(places)]}: {leaked[:1]}")
        tally.done += 1
    return tally


async def _answers(session, app: Satchel, skills: Path) -> list[str]:
    calls = []
    for folder in sorted(skills.iterdir()):
        calls.append(ToolCall(name="load_skill", arguments={"name": folder.name}))
        calls += [
            ToolCall(name="read_skill_file", arguments={"skill": folder.name, "path": path})
            for path in (".env", "config/.Env.Local", "notes.md", "../innocent/SKILL.md")
        ]
    calls += [ToolCall(name=name, arguments={}) for name in app.catalog.tools]
    return [(await session.call(call.name, call.arguments)).text for call in calls]


def _tool_with_secret(number: int, place: str) -> str:
    body = "raise RuntimeError(f'cannot use {api_key}')" if place == "raised" else "return 'ok'"
    return f'''
from satchel import tool

@tool(state=["api_key"])
def use_{number}(api_key: str) -> str:
    """Use it."""
    {body}
'''
