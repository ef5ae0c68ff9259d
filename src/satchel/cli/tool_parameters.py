"""The parameters of a tool for `satchel show`, from its schema or from its source."""

import ast
from typing import TYPE_CHECKING, Any

from satchel.formats.python_source import Function, arguments_of, statements_of, texts_in
from satchel.tools.docstrings import read_docstring

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import ToolEntry

Parameter = dict[str, Any]


def parameters_of(entry: "ToolEntry", source: bytes, function: str) -> list[Parameter]:
    """Return what is known of each parameter, in order; `source` counts if no code was run."""
    if entry.tool is not None:
        return _from_schema(entry.tool)
    functions = (node for node in statements_of(source) or () if isinstance(node, Function))
    # As in the module's namespace, a later definition replaces an earlier one.
    same_name = [node for node in functions if node.name == function]
    return _from_source(same_name[-1]) if same_name else []


def parameter_line(parameter: Parameter) -> tuple[str, str]:
    """Return the name of a parameter, and what `show` prints about it."""
    facts = [parameter["type"], "required" if parameter["required"] else "optional"]
    if parameter["hidden"]:
        facts[1] = "hidden from the model"
    about = f": {parameter['description']}" if parameter["description"] else ""
    return parameter["name"], ", ".join(filter(None, facts)) + about


def _from_schema(tool: Any) -> list[Parameter]:
    try:
        schema = tool.parameters
        properties, required = schema.get("properties", {}), schema.get("required", ())
        shown = [
            _parameter(
                name,
                _type_of(part),
                str(part.get("description", "")) if isinstance(part, dict) else "",
                is_required=name in required,
            )
            for name, part in properties.items()
        ]
    except Exception:  # the tool's class may raise anything
        return []
    hidden = sorted(getattr(tool, "hidden", ()))
    return [*shown, *(_parameter(name, "", "", is_required=True, hidden=True) for name in hidden)]


def _type_of(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if options := schema.get("anyOf"):
        return " or ".join(dict.fromkeys(filter(None, map(_type_of, options))))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "")
    if kind == "array" and (item := _type_of(schema.get("items"))):
        return f"array of {item}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _from_source(function: Function) -> list[Parameter]:
    _, about = read_docstring(ast.get_docstring(function))
    hidden = _hidden_names(function)
    return [
        _parameter(
            argument.arg,
            ast.unparse(argument.annotation) if argument.annotation else "",
            about.get(argument.arg, ""),
            is_required=not has_default,
            hidden=argument.arg in hidden,
        )
        for argument, has_default in arguments_of(function)
    ]


def _hidden_names(function: Function) -> set[str]:
    """Return the parameters that the model does not see: state fields, presets and the context."""
    calls = (node for node in function.decorator_list if isinstance(node, ast.Call))
    keywords = [keyword for call in calls for keyword in call.keywords]
    listed = (item.value for item in keywords if item.arg in {"state", "presets"})
    contexts = (
        argument.arg
        for argument, _ in arguments_of(function)
        if argument.annotation and ast.unparse(argument.annotation).endswith("ToolContext")
    )
    return {name for value in listed for name in texts_in(value)}.union(contexts)


def _parameter(
    name: str, kind: str, description: str, *, is_required: bool, hidden: bool = False
) -> Parameter:
    return {
        "name": name,
        "type": kind,
        "description": " ".join(description.split()),
        "required": is_required,
        "hidden": hidden,
    }
