"""Read the module table of an editable install from the finder it installed."""

import ast
from collections.abc import Iterator, Mapping


def mapped_modules(source: bytes) -> Mapping[str, str]:
    """Return the modules that an import finder maps, each with its path, with or without `.py`.

    Supports the `MAPPING` of setuptools and the `map_module(name, path)` of the library
    editables, which hatchling and others use. The code is parsed, not run.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return dict(_mapped(tree))


def _mapped(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Name("MAPPING")], value=ast.Dict() as table)
                | ast.AnnAssign(target=ast.Name("MAPPING"), value=ast.Dict() as table)
            ):
                for key, value in zip(table.keys, table.values, strict=True):
                    match key, value:
                        case ast.Constant(str(name)), ast.Constant(str(path)):
                            yield name, path
            case ast.Call(
                func=ast.Attribute(attr="map_module"),
                args=[ast.Constant(str(name)), ast.Constant(str(path))],
            ):
                yield name, path
