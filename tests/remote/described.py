"""A tool as a server describes it."""


def described(name, **parts):
    return {"name": name, "description": f"{name}.", "inputSchema": {"type": "object"}, **parts}
