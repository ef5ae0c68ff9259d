"""A server written by hand, of the older era, that is up at once: `plain.py BOOK [HOW]`.

HOW is what it does wrong: `mute` does not answer what it does not know, `hang` hangs when it is
asked for its tools, `pages` has pages without end, `rude` sends nonsense between its answers,
`able` lists a tool for each thing that its client can
do, `asks` asks on and on once it listed its tools, and hears nothing more, `stays` does not end by
itself nor when it is asked to, `child` starts a process that holds its output and the file $HELD
open, and `apart` makes that one independent of it. Its instructions are in the file BOOK.md, and
its prompts, resources and templates in BOOK.offers, if these exist.
"""

import json
import os
import signal
import subprocess
import sys
import time

BOOK, HOW = sys.argv[1], sys.argv[2:]
CAPABILITIES = []


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            answer(asked)


def answer(asked):  # noqa: C901, PLR0912
    match asked["method"]:
        case "initialize":
            CAPABILITIES.extend(asked["params"]["capabilities"])
            result = {
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "plain", "version": "0"},
            }
            if os.path.exists(f"{BOOK}.md"):
                with open(f"{BOOK}.md") as file:
                    result["instructions"] = file.read()
            if os.path.exists(f"{BOOK}.offers"):
                result["capabilities"] |= {"prompts": {}, "resources": {}}
        case "prompts/list" | "resources/list" | "resources/templates/list" if os.path.exists(
            f"{BOOK}.offers"
        ):
            with open(f"{BOOK}.offers") as file:
                offers = json.load(file)
            key = {"p": "prompts", "r": "resources"}[asked["method"][0]]
            key = "resourceTemplates" if "templates" in asked["method"] else key
            result = {key: offers.get(key, [])}
        case "tools/list" if "hang" in HOW:
            return
        case "tools/list":
            with open(BOOK) as file:
                result = {"tools": json.load(file)}
            for name in CAPABILITIES if "able" in HOW else ():
                result["tools"].append({"name": name, "inputSchema": {"type": "object"}})
            if "pages" in HOW:
                result["nextCursor"] = f"{asked.get('params', {}).get('cursor', '')}x"[-3:]
        case "tools/call":
            result = called(asked["params"]["name"], asked["params"].get("arguments") or {})
            if result is None:
                say(id=asked["id"], error={"code": -32602, "message": "Unknown tool"})
                return
        case _ if "mute" in HOW:
            return
        case _:
            say(id=asked["id"], error={"code": -32601, "message": "Method not found"})
            return
    if "rude" in HOW:
        print("this is no JSON", flush=True)
        say(id="nobody asked", result={})
    say(id=asked["id"], result=result)
    while "asks" in HOW and asked["method"] == "tools/list":
        say(id="asked", method="ping")


def called(name, arguments):  # noqa: C901, PLR0912
    with open(BOOK) as file:
        if name not in {tool["name"] for tool in json.load(file)}:
            return None
    match name:
        case "pid":
            text = str(os.getpid())
        case "die":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        case "announce":
            for _ in range(arguments.get("times", 1)):
                say(method="notifications/tools/list_changed")
            text = "announced"
        case "stick":
            time.sleep(600)
        case "drone":  # one line without an end
            while True:
                sys.stdout.write("x" * 65_536)
        case "long":
            text = "x" * arguments["bytes"]
        case "shout":
            print("x" * arguments["bytes"], file=sys.stderr, flush=True)
            text = "shouted"
        case "fail":
            return {"content": [{"type": "text", "text": "no such city"}], "isError": True}
        case "blocks":
            return {"content": [{"type": "text", "text": "x"}] * arguments["number"]}
        case "nonsense":
            return {"content": 3}
        case _:
            text = json.dumps(arguments, sort_keys=True)
    return {"content": [{"type": "text", "text": text}]}


if "child" in HOW:
    with open(os.environ.get("HELD", os.devnull), "w") as held:
        subprocess.Popen(
            ["sh", "-c", "echo begun >&2; exec sleep 30"],
            stdin=subprocess.DEVNULL,
            stderr=held,
            start_new_session="apart" in HOW,
        )
if "stays" in HOW:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
main()
if "stays" in HOW:
    time.sleep(600)
if path := os.environ.get("SAY_CLOSED"):
    with open(path, "a") as file:
        print(os.environ["NAME"], file=file)
