"""Broken files: at least one for each code that reading and loading can report."""

GOOD = "---\nname: {name}\ndescription: Does a thing. Use when it is to be done.\n---\nDo it.\n"
TOOL = """
from satchel import tool

@tool
def {name}(city: str) -> str:
    "Say it."
    return city
"""


def front(*lines: str, name: str | None = None, body: str = "Do it.\n") -> str:
    """Return a SKILL.md with a name, a description and more lines."""
    names = [f"name: {name}"] if name else []
    return "\n".join(["---", *names, "description: Does it.", *lines, "---", body])


SKILLS: dict[str, str | bytes] = {
    "yaml-invalid": "---\nname: yaml-invalid\n@: [\n---\n",
    "yaml-repaired": "---\nname: yaml-repaired\ndescription: Use when: it rains\n---\nDo it.\n",
    "yaml-unsafe": front("license: &a x", name="yaml-unsafe"),
    "yaml-twice": front("license: a", "license: b", name="yaml-twice"),
    "yaml-large": front("license: " + "[" * 3000, name="yaml-large"),
    "yaml-list": "---\n- a\n---\n",
    "too-large": "---\n" + "x" * 1_100_000,
    "not-utf8": b"---\nname: \xff\n---\n",
    "no-front": "# A heading\n",
    "open-front": "---\nname: open-front\n",
    "no-name": front(),
    "unsafe-name": front(name="../x"),
    "shape": front(name="Shape_It"),
    "other-name": front(name="another-name"),
    "no-description": "---\nname: no-description\n---\nDo it.\n",
    "long": GOOD.format(name="long").replace("Does", "Does" * 400),
    "too-long": GOOD.format(name="too-long").replace("Does", "Does" * 2000),
    "compatibility": front("compatibility: " + "x" * 600, name="compatibility"),
    "field-type": front("license: [a]", name="field-type"),
    "field-unknown": front("licence: MIT", name="field-unknown"),
    "no-body": front(name="no-body", body=""),
    "hidden": GOOD.format(name="hidden").replace("a thing", "a\u200b thing"),
    "shadow/a/twin": front(name="twin"),
    "shadow/b/twin": front(name="twin", body="Do it otherwise.\n"),
    "copies/a/copy": front(name="copy"),
    "copies/b/copy": front(name="copy"),
    "mirrors/a/mirrored": front(name="mirrored"),
    "mirrors/.b/mirrored": front(name="mirrored", body="Do it otherwise.\n"),
    "outer": front(name="outer"),
    "outer/inner": front(name="inner"),
    "form": front("allowed-tools: [Read]", name="form"),
    "foreign": front("model: opus", name="foreign"),
}

RULED = """
from satchel import ToolContract, tool, hookimpl

@tool
def look(far: str) -> str:
    "Look."
    return far

{contracts}
"""
BY_HOOK = "@hookimpl\ndef satchel_tools():\n    {body}\n"
NOTED = """
from satchel import ToolContract, ToolStateEffect, tool

@tool
def {name}(text: str) -> str:
    "Note."
    return text

NOTE = ToolContract(name="{name}", schema={{"text": "str - the text"}}, description="Note.",
    state_effects=[ToolStateEffect(key="{key}", prompt_template_var="DOCS")])
"""
_SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
OPEN = '{"$schema": "%s/plugin.schema.json", "name": "%s"}'
SERVERS = '{"$schema": "%s/mcp.schema.json", "mcpServers": {%s}}'

PLUGINS: dict[str, dict[str, str]] = {
    "bad-manifest": {"toolkit.yaml": "- a\n"},
    "no-field": {"toolkit.yaml": "description: It has no name.\n"},
    "bad-fields": {
        "toolkit.yaml": "name: bad-fields\nactive: perhaps\nkeyword: x\ntools: no_such\n"
        "notes: missing.md\nskills: missing\n"
    },
    "latin": {"toolkit.yaml": "name: caf\udce9\n"},
    "bad-name": {"toolkit.yaml": "name: a b\n"},
    "other-folder": {"toolkit.yaml": "name: another\n"},
    "nearly": {"toolkit.yml": "name: nearly\n"},
    "syntax": {"tools.py": "def broken(:\n"},
    "undescribed": {
        "tools.py": "from satchel import tool\n\n@tool\ndef say_hello() -> str: return 'hello'\n"
    },
    "raises": {"tools.py": "import no_such_module\n"},
    "slow": {"tools.py": "import time\ntime.sleep(3)\n"},
    "hook": {"tools.py": "from satchel import hookimpl\n" + BY_HOOK.format(body="return 3")},
    "unknown-hook": {
        "tools.py": "from satchel import hookimpl\n\n@hookimpl\ndef satchel_tool(): ...\n"
    },
    "startup": {
        "tools.py": "from satchel import hookimpl\n\n"
        "@hookimpl\ndef satchel_startup():\n    raise OSError('no')\n"
    },
    "meddles": {"tools.py": "import os\nos.chdir('/')\n"},
    "bad-tool": {"tools.py": TOOL.format(name="odd").replace("@tool", "@tool(name='no good')")},
    "no-group": {"tools.py": TOOL.format(name="find").replace("@tool", "@tool(group='moons')")},
    "double": {"toolkit.yaml": "name: double\n"},
    "example": {
        "tools.py": TOOL.format(name="example").replace("@tool", "@tool(examples=[{'town': 'x'}])")
    },
    "bad-contract": {
        "toolkit.yaml": "name: bad-contract\ncontract: tools:LOOK\n",
        "tools.py": RULED.format(contracts="LOOK = 3"),
    },
    "unused-contract": {
        "tools.py": RULED.format(
            contracts="LOOK = ToolContract(name='look', schema={}, description='Look.')"
        ).replace("look", "unused"),
    },
    "contracts": {
        "toolkit.yaml": "name: contracts\ncontract: [rules:LOK, rules:LOOK, rules:LOOK2]\n",
        "tools.py": RULED.format(contracts=""),
        "rules.py": "from satchel import ToolContract\n"
        "LOK = ToolContract(name='lok', schema={}, description='Look.')\n"
        "LOOK = ToolContract(name='look', schema={'far': 'str - f'}, description='Look.')\n"
        "LOOK2 = ToolContract(name='look', schema={}, description='Again.')\n",
    },
    "unfit": {
        "toolkit.yaml": "name: unfit\ncontract: tools:LOOK\n",
        "tools.py": RULED.format(
            contracts="LOOK = ToolContract("
            "name='look', schema={'near': 'str - n'}, description='Look.')"
        ).replace("look", "unfit"),
    },
    "variables-a": {
        "toolkit.yaml": "name: variables-a\ncontract: tools:NOTE\nnotes: '{{NOBODY}}'\n",
        "tools.py": NOTED.format(name="note", key="docs"),
    },
    "variables-b": {
        "toolkit.yaml": "name: variables-b\ncontract: tools:NOTE\n",
        "tools.py": NOTED.format(name="more", key="rows"),
    },
    "state": {
        "tools.py": TOOL.format(name="needy")
        .replace("@tool", "@tool(state=['key'])")
        .replace("city: str)", "city: str, key: str)")
    },
    "state-unfit": {
        "toolkit.yaml": "name: state-unfit\nconfig: {limit: {default: much}}\n",
        "tools.py": TOOL.format(name="limited")
        .replace("@tool", "@tool(state=['limit'])")
        .replace("city: str)", "city: str, limit: int)"),
    },
    "own": {"tools.py": TOOL.format(name="load_skill")},
    "config": {
        "toolkit.yaml": "name: config\nconfig: {size: {type: integer}, key: {required: true}}\n"
    },
    "tool-a": {"tools.py": TOOL.format(name="same")},
    "tool-b": {"tools.py": TOOL.format(name="same")},
    "group": {
        "toolkit.yaml": "name: group\nconfig: {key: {}}\n"
        "groups: {charts: {requires: [key]}, maps: {notes: One.}}\n"
    },
    "group-again": {"toolkit.yaml": "name: group-again\ngroups: {maps: {notes: Two.}}\n"},
    "open-json": {"plugin.json": "{,}"},
    "open-schema": {"plugin.json": '{"$schema": "https://example.org/9", "name": "open-schema"}'},
    "open-servers": {
        "plugin.json": OPEN % (_SCHEMAS, "open-servers"),
        "toolkit.yaml": "name: open-servers\n",
        "mcp.json": SERVERS % (_SCHEMAS, '"bad": 1, "good": {"type": "stdio", "command": "run"}'),
    },
    "open-broken": {"plugin.json": OPEN % (_SCHEMAS, "open-broken"), "mcp.json": "[]"},
    "agents-only": {
        ".claude-plugin/plugin.json": '{"name": "agents-only"}',
        "agents/reviewer.md": "",
    },
    "market": {
        ".claude-plugin/marketplace.json": (
            '{"name": "market", "plugins": [{"source": "./"},'
            ' {"name": "far", "source": {"source": "github", "repo": "o/r"}}]}'
        ),
    },
    "broken-market": {".claude-plugin/marketplace.json": "["},
    "claude": {
        ".claude-plugin/plugin.json": '{"name": "claude"}',
        "hooks/hooks.json": "{}",
        "commands/do.md": "Do it.",
        "commands/run.md": "See !`git status`.",
        "commands/empty.md": "",
        ".mcp.json": '{"off": {"command": "run", "disabled": true},'
        '"own": {"url": "https://example.org", "oauth": {"clientSecret": "hush"}}}',
    },
    "isolated": {
        "toolkit.yaml": "name: isolated\nactive: true\nisolation: process\n",
        "tools.py": "from satchel import ToolConfigParam, ToolContract, hookimpl, tool\n\n@tool\n"
        "def kept(x: int, part=None) -> int:\n    'Keep.'\n    return x\n\n"
        "@hookimpl\ndef satchel_contracts():\n    return ["
        "ToolContract(name='kept', schema={'x': 'int - x'}, description="
        "'K.', config_params=[ToolConfigParam('part', default={1})])]\n",
    },
    "worker": {
        "toolkit.yaml": "name: worker\nactive: true\nisolation: process\n",
        "tools.py": "import os\nos._exit(3)\n",
    },
}
