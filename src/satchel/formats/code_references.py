"""Read the `tools` and `contract` keys of a toolkit.yaml."""

from collections.abc import Iterable
from dataclasses import field, replace

from satchel.formats.manifest_block import ManifestBlock
from satchel.formats.read_result import quoted
from satchel.formats.yaml_builder import KeyPath, YamlValue
from satchel.formats.yaml_reader import yaml_type_name
from satchel.lazy_dataclass import dataclass
from satchel.names import tool_name_fault

DEFAULT_TOOLS = "tools"
"""The module with the tools if the manifest names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractReference:
    """One contract that a manifest names: the object `name` in `module`.

    If `tool` is given, it must be the contract of that tool.
    """

    module: str
    name: str
    tool: str = ""
    at: KeyPath = field(default=(), compare=False)
    """Its position in the manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReference:
    """One tool that a manifest lists: `function` in `module`, or the tool `name` there."""

    name: str
    module: str
    function: str = ""
    runner: str = ""
    """The name of the host's runner that runs it."""
    at: KeyPath = field(default=(), compare=False)
    """Its position in the manifest."""


@dataclass(frozen=True, slots=True)
class CodeReferences:
    """The values of `tools` and `contract` in a manifest."""

    module: str
    """The module with the tools, if the manifest does not list them."""
    tools: tuple[ToolReference, ...]
    contracts: tuple[ContractReference, ...]
    """Without duplicates; contracts of listed tools come first."""


def read_code_references(top: ManifestBlock) -> CodeReferences:
    """Read the module with the tools, or the list of tools; and the contracts."""
    listed_tools = top.values.get("tools")
    if not isinstance(listed_tools, list):
        fix = "Write a module's name, such as 'tools', or a list of names."
        module = module_of(top, "tools", DEFAULT_TOOLS, fix)
        return CodeReferences(module, (), _unique(_contracts(top, module)))
    items = [_listed_tool(top, number, item) for number, item in enumerate(listed_tools)]
    tools = [tool for tool, _ in items if tool]
    top.report_doubles("tools", "tool", (tool.name for tool in tools), "Rename one of them.")
    tool_contracts = [contract for _, contract in items if contract]
    contracts = _unique([*tool_contracts, *_contracts(top, DEFAULT_TOOLS)])
    # An empty list serves no tools, even if there is a tools.py.
    return CodeReferences(DEFAULT_TOOLS if listed_tools else "", tuple(tools), contracts)


def is_dotted(module: str) -> bool:
    """Return whether a text can be the name of a module."""
    return all(part.isidentifier() for part in module.split("."))


def module_of(top: ManifestBlock, key: str, default: str, fix: str) -> str:
    """Return the module that a key names; report any other text."""
    module = top.text(key, default=default).removesuffix(".py")
    if module == default or is_dotted(module):
        return module
    message = f"{key!r} is {quoted(module)}, which is not a module of this folder"
    top.report_invalid(key, message, fix)
    return default


def _listed_tool(
    top: ManifestBlock, number: int, item: YamlValue
) -> tuple[ToolReference | None, ContractReference | None]:
    """Read one item of the list: a tool's name, or a mapping of its fields."""
    at = ("tools", str(number))
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, dict):
        message = f"a tool is {yaml_type_name(item)}, not a name"
        fix = "Write a name, or 'name:' and 'function: module:function'."
        top.collector.add("plugin-field-type", message, fix, top.yaml.lines.get(at))
        return None, None
    block = replace(top, values=item, at=at)
    block.report_unknown(("name", "function", "contract", "runner"))
    module, function = _parts(block.text("function"), DEFAULT_TOOLS)
    name = block.text("name") or function
    is_function = not function or (is_dotted(module) and function.isidentifier())
    if not is_function:
        message = f"'function' is {quoted(block.text('function'))}, which is not a function"
        block.report_invalid(
            "function", message, "Write 'module:function', such as 'tools:forecast'."
        )
    elif "function" in item and not function:
        block.report_invalid(
            "function", "'function' is empty", "Write 'module:function', or remove it."
        )
    if fault := tool_name_fault(name):
        problem = f"the tool's name {quoted(name)} {fault}" if name else "a tool has no name"
        block.report_invalid("name", problem, "Choose another name." if name else "Add 'name:'.")
    contract = _contract(block, block.text("contract"), (*at, "contract"), module)
    tool = ToolReference(
        name=name, module=module, function=function, runner=block.text("runner"), at=at
    )
    return tool if is_function else None, contract and replace(contract, tool=name)


def _contracts(top: ManifestBlock, module: str) -> Iterable[ContractReference]:
    """Read `contract`, one or a list of them."""
    is_list = isinstance(top.values.get("contract"), list)
    for number, text in enumerate(top.names("contract")):
        at = ("contract", str(number)) if is_list else ("contract",)
        if contract := _contract(top, text, at, module):
            yield contract


def _contract(
    block: ManifestBlock, text: str, at: KeyPath, default_module: str
) -> ContractReference | None:
    """Read `module:NAME`, or NAME alone in the default module."""
    module, name = _parts(text, default_module)
    if is_dotted(module) and name.isidentifier():
        return ContractReference(module=module, name=name, at=at)
    if text:
        message = f"'contract' is {quoted(text)}, which is not a contract"
        fix = "Write 'module:NAME', such as 'contracts:SEARCH'."
        block.collector.add("plugin-field-type", message, fix, block.yaml.lines.get(at))
    elif isinstance(block.values.get("contract"), str):
        block.report_invalid(
            "contract", "'contract' is empty", "Write 'module:NAME', or remove it."
        )
    return None


def _unique(contracts: Iterable[ContractReference]) -> tuple[ContractReference, ...]:
    first: dict[tuple[str, str], ContractReference] = {}
    for contract in contracts:
        first.setdefault((contract.module, contract.name), contract)
    return tuple(first.values())


def _parts(text: str, default_module: str) -> tuple[str, str]:
    module, colon, name = text.rpartition(":")
    return (module.removesuffix(".py") if colon else default_module), name
