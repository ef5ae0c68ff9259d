"""The rules of two providers, written from their documentation and not from our code."""

from satchel.tools.dialects.schema_walk import schemas_in

STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname"} | {
    *("ipv4", "ipv6", "uuid"),
}
STRICT_BY_TYPE = {
    "string": {"pattern", "format"},
    "number": {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
    "integer": {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"},
    "boolean": set(),
    "null": set(),
}


def against_strict(root):
    """Say what OpenAI would refuse in a schema with strict set."""
    faults = [] if root.get("type") == "object" else ["the root is no object"]
    for name, schema in root.get("$defs", {}).items():
        faults += _strict(schema, root, f"$defs.{name}")
    top = {key: value for key, value in root.items() if key != "$defs"}
    return faults + _strict(top, root, "root")


def _strict(schema, root, where):
    keys = schema.keys() - {"description", "title"}
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        is_known = name == "#" or name in root.get("$defs", {})
        return [] if is_known and schema.keys() == {"$ref"} else [f"{where}: {schema}"]
    if "anyOf" in schema:
        faults = [] if keys == {"anyOf"} and schema["anyOf"] else [f"{where}: {keys}"]
        for at, item in enumerate(schema["anyOf"]):
            faults += _strict(item, root, f"{where}|{at}")
        return faults
    if schema.get("type") == "object":
        return _strict_object(schema, keys, root, where)
    if schema.get("type") == "array":
        extra = keys - {"type", "items", "minItems", "maxItems"}
        return [f"{where}: {extra}"] * bool(extra) + _strict(schema["items"], root, f"{where}[]")
    return _strict_scalar(schema, keys, where)


def _strict_scalar(schema, keys, where):
    if schema.get("type") not in STRICT_BY_TYPE:
        return [f"{where}: type {schema.get('type')!r}"]
    extra = keys - {"type", "enum", "const"} - STRICT_BY_TYPE[schema["type"]]
    if schema.get("format", "date") not in STRICT_FORMATS:
        extra.add("format")
    if "(?" in schema.get("pattern", "").replace("(?:", ""):
        extra.add("pattern")
    return [f"{where}: {key}" for key in extra]


def _strict_object(schema, keys, root, where):
    extra = keys - {"type", "properties", "required", "additionalProperties"}
    faults = [f"{where}: {key}" for key in extra]
    if schema.get("additionalProperties") is not False:
        faults.append(f"{where}: is open")
    if schema.get("required") != list(schema.get("properties", "?")):
        faults.append(f"{where}: not all are required")
    for name, item in schema.get("properties", {}).items():
        faults += _strict(item, root, f"{where}.{name}")
    return faults


def against_gemini(root):
    """Say for what Gemini would refuse the schema of a declaration with the whole request."""
    faults = [] if root.get("type") == "object" and root.get("properties") else ["no object"]
    for node in schemas_in(root):
        if "$ref" in node:
            name = node["$ref"].removeprefix("#/$defs/")
            if name not in root.get("$defs", {}):
                faults.append(f"{node['$ref']} leads nowhere")
            if node.keys() - {"$ref", "description", "default"}:
                faults.append(f"{sorted(node)} beside a reference")
    return faults
