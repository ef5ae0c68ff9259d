"""A server of skills that is written by hand, of the older era: `lying.py BOOK`.

The book is read anew for each answer: `skills` are entries of pages (a list of lists, as JSON),
`contents` what stands at each address, `tools` its tools, `lists` the results of other lists by
their methods, and `page` further fields of each page of skills. What it does wrong stands there,
too: `refuse` and `hang` are methods; what is read and cancelled is written where it says.
"""

import json
import os
import sys


def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        with open(sys.argv[1]) as file:
            book = json.load(file)
        if "id" in asked:
            answer(asked, book)
        elif asked["method"] == "notifications/cancelled" and (path := book.get("say_cancelled")):
            with open(path, "w") as pipe:
                print("cancelled", file=pipe)


def answer(asked, book):  # noqa: C901
    method, params = asked["method"], asked.get("params", {})
    if method == "resources/read":
        say_read(book, params["uri"])
    if method in book.get("hang", ()):
        return
    if method in book.get("refuse", ()):
        say(id=asked["id"], error={"code": -32603, "message": "no\nway"})
        return
    match method:
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {
                    "tools": {"listChanged": True},
                    "resources": {"listChanged": True},
                    "prompts": {},
                    "extensions": {"io.modelcontextprotocol/skills": {}},
                },
                "serverInfo": {"name": "lying", "version": "0"},
            }
        case "tools/list":
            tools = ["die", "announce"]
            result = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in tools]}
        case "tools/call" if params["name"] == "die":
            os._exit(3)
        case "tools/call":
            say(method="notifications/resources/list_changed")
            result = {"content": []}
        case "skills/list":
            pages, at = book["skills"], int(params.get("cursor") or 0)
            result = {"skills": pages[at] if pages else []}
            if at + 1 < len(pages):
                result["nextCursor"] = str(at + 1)
            result |= book.get("page", {})
        case _ if method in book.get("lists", ()):
            result = book["lists"][method]
        case "resources/read":
            result = {"contents": book["contents"].get(params["uri"], [])}
        case _:
            say(id=asked["id"], error={"code": -32601, "message": "Method not found"})
            return
    say(id=asked["id"], result=result)


def say_read(book, uri):
    if path := book.get("say_read"):
        with open(path, "a") as file:
            print(uri, file=file)


main()
