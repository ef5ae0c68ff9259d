"""What a toolkit.yaml chooses of its code: tools, and contracts for them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from satchel.formats.manifest_block import ManifestBlock
from satchel.formats.read_result import quoted
from satchel.formats.yaml_builder import KeyPath, YamlValue
from satchel.formats.yaml_reader import yaml_type_name
from satchel.names import tool_name_fault

DEFAULT_TOOLS = "tools"
"""The module that holds the tools where the manifest names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReference:
    """One contract that a manifest names: what `module` calls `name`.

    It must be that of `tool`, if it stands beside one.
    """

    module: str
    name: str
    tool: str = ""
    at: KeyPath = field(default=(), compare=False)
    """Where it stands in the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReference:
    """One tool that a manifest chooses: `function` of `module`, or what has the name there."""

    name: str
    module: str
    function: str = ""
    at: KeyPath = field(default=(), compare=False)
    """Where it stands in the manifest."""


@dataclass(frozen=True, slots=True)
class CodeReferences:
    """What a manifest says under `tools` and `contract`."""

    module: str
    """The module that holds the tools, unless some are chosen."""
    tools: tuple[ToolReference, ...]
    contracts: tuple[ContractReference, ...]
    """Each once; those beside a tool come first."""


def read_code_references(top: ManifestBlock) -> CodeReferences:
    """Read the module that holds the tools, or the list of those served; and the contracts."""
    given = top.values.get("tools")
    if not isinstance(given, list):
        module = _module(top)
        return CodeReferences(module, (), _once(_contracts(top, module)))
    items = [_chosen(top, number, item) for number, item in enumerate(given)]
    tools = [tool for tool, _ in items if tool]
    names = [tool.name for tool in tools]
    for name in sorted({name for name in names if names.count(name) > 1}):
        top.misfit("tools", f"two tools are named {quoted(name)}", "Rename one of them.")
    beside = [contract for _, contract in items if contract]
    contracts = _once([*beside, *_contracts(top, DEFAULT_TOOLS)])
    # Whoever lists none wants none, also where there is a tools.py.
    return CodeReferences(DEFAULT_TOOLS if given else "", tuple(tools), contracts)


def is_dotted(module: str) -> bool:
    """Tell whether a text may be the name of a module."""
    return all(part.isidentifier() for part in module.split("."))


def _module(top: ManifestBlock) -> str:
    module = top.text("tools", default=DEFAULT_TOOLS).removesuffix(".py")
    if is_dotted(module):
        return module
    message = f"'tools' is {quoted(module)}, which is no module of this folder"
    top.misfit("tools", message, "Write a module's name, such as 'tools', or a list of names.")
    return DEFAULT_TOOLS


def _chosen(
    top: ManifestBlock, number: int, item: YamlValue
) -> tuple[ToolReference | None, ContractReference | None]:
    """Read one item of the list: a tool's name, or a mapping of its fields."""
    at = ("tools", str(number))
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, dict):
        message = f"a tool is {yaml_type_name(item)}, not a name"
        fix = "Write a name, or 'name:' and 'function: module:function'."
        top.problems.add("plugin-field-type", message, fix, top.yaml.lines.get(at))
        return None, None
    block = ManifestBlock(values=item, at=at, yaml=top.yaml, problems=top.problems)
    block.report_unknown(("name", "function", "contract"))
    module, function = _parts(block.text("function"), DEFAULT_TOOLS)
    name = block.text("name") or function
    is_function = not function or (is_dotted(module) and function.isidentifier())
    if not is_function:
        message = f"'function' is {quoted(block.text('function'))}, which is no function"
        block.misfit("function", message, "Write 'module:function', such as 'tools:forecast'.")
    elif "function" in item and not function:
        block.misfit("function", "'function' is empty", "Write 'module:function', or remove it.")
    if fault := tool_name_fault(name):
        what = f"the tool's name {quoted(name)} {fault}" if name else "a tool has no name"
        block.misfit("name", what, "Choose another name." if name else "Add 'name:'.")
    contract = _contract(block, block.text("contract"), (*at, "contract"), module)
    tool = (
        ToolReference(name=name, module=module, function=function, at=at) if is_function else None
    )
    return tool, contract and replace(contract, tool=name)


def _contracts(top: ManifestBlock, module: str) -> Iterable[ContractReference]:
    """Read `contract`, one or a list of them."""
    is_list = isinstance(top.values.get("contract"), list)
    for number, text in enumerate(top.names("contract")):
        at = ("contract", str(number)) if is_list else ("contract",)
        if contract := _contract(top, text, at, module):
            yield contract


def _contract(block: ManifestBlock, text: str, at: KeyPath, usual: str) -> ContractReference | None:
    """Read `module:NAME`, or the NAME alone of something in the `usual` module."""
    module, name = _parts(text, usual)
    if is_dotted(module) and name.isidentifier():
        return ContractReference(module=module, name=name, at=at)
    if text:
        message = f"'contract' is {quoted(text)}, which is no contract"
        fix = "Write 'module:NAME', such as 'contracts:SEARCH'."
        block.problems.add("plugin-field-type", message, fix, block.yaml.lines.get(at))
    elif isinstance(block.values.get("contract"), str):
        block.misfit("contract", "'contract' is empty", "Write 'module:NAME', or remove it.")
    return None


def _once(contracts: Iterable[ContractReference]) -> tuple[ContractReference, ...]:
    first: dict[tuple[str, str], ContractReference] = {}
    for contract in contracts:
        first.setdefault((contract.module, contract.name), contract)
    return tuple(first.values())


def _parts(text: str, usual: str) -> tuple[str, str]:
    """Split `module:name`; without a module it is in the `usual` one."""
    module, colon, name = text.rpartition(":")
    return (module.removesuffix(".py") if colon else usual), name
